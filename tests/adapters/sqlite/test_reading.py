import sqlite3
from pathlib import Path

from lamina.adapters.sqlite.reading import list_entries
from lamina.adapters.sqlite.tables import Collection, Tables
from lamina.domain.filters import MemoryFilter
from lamina.ports.memory_adapter import ListOptions, Order
from lamina.testing.memory_contract.material import MINE, NOW, memory


async def test_a_listing_by_tags_takes_as_many_steps_whatever_else_there_is(opened, file: Path) -> None:
    adapter = await opened(file)

    def steps(order: Order, **tags: tuple[str, ...]) -> int:
        counted: list[int] = []
        connection = sqlite3.connect(file)
        connection.set_progress_handler(lambda: counted.append(1) or 0, 10)
        options = ListOptions(scope=MINE, filter=MemoryFilter(now=NOW, **tags), limit=10, order=order)
        found = list_entries(Collection(connection, Tables("lamina_memories")), options)
        connection.close()
        assert [each.id for each in found] == ["wanted"]
        return 10 * len(counted)

    await adapter.store_many(MINE, [memory("wanted", "tea, not coffee", tags=["preference"])])
    asked = [
        (order, tags) for order in Order for tags in ({"tags": ("preference",)}, {"tags_any": ("preference", "x")})
    ]
    before = [steps(order, **tags) for order, tags in asked]
    await adapter.store_many(MINE, [memory(f"m{number}", f"note {number}") for number in range(500)])
    assert [steps(order, **tags) for order, tags in asked] == before
