"""Pages over several stores."""

from datetime import UTC, datetime, timedelta

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import MemoryFilter
from lamina.memory.reading import listing
from lamina.testing.memory_contract.material import MINE, ids, memory


async def test_a_listing_of_two_stores_tells_the_last_instants_apart():
    last = datetime.max.replace(tzinfo=UTC)
    older, newer = InMemoryAdapter(), InMemoryAdapter()
    await older.store(MINE, memory("a", created_at=last - timedelta(microseconds=1), updated_at=last))
    await newer.store(MINE, memory("b", created_at=last, updated_at=last))
    page = await listing([older, newer], MINE, MemoryFilter(now=last), limit=2, offset=0)
    assert ids(page) == ["b", "a"]
