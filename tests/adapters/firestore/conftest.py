from collections.abc import AsyncIterator

import pytest
from real_firestore import FirestoreServer

from lamina.adapters.firestore import FirestoreAdapter


@pytest.fixture
async def adapter(firestore: FirestoreServer, firestore_project: str) -> AsyncIterator[FirestoreAdapter]:
    adapter = FirestoreAdapter(firestore.url, project_id=firestore_project)
    await adapter.initialize()
    yield adapter
    await adapter.close()
