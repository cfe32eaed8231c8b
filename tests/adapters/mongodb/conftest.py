from collections.abc import AsyncIterator, Callable

import pytest

from lamina.adapters.mongodb import MongoDBAdapter


@pytest.fixture
async def adapter(mongodb, mongodb_table) -> AsyncIterator[MongoDBAdapter]:
    adapter = MongoDBAdapter(mongodb.url, table=mongodb_table)
    await adapter.initialize()
    yield adapter
    await adapter.close()


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., MongoDBAdapter]]:
    """Makes adapters, and closes them at the end."""
    made = []

    def make(*arguments, **options) -> MongoDBAdapter:
        made.append(MongoDBAdapter(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()
