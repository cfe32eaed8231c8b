from collections.abc import AsyncIterator

import pytest

from lamina.state.postgres import PostgresStateStore


@pytest.fixture
async def store(postgres_url: str, postgres_schema: str) -> AsyncIterator[PostgresStateStore]:
    async with PostgresStateStore(postgres_url, schema=postgres_schema) as store:
        yield store
