import numpy as np
import pytest

from lamina.adapters.sqlite import SqliteAdapter, reading_codes
from lamina.adapters.sqlite.kept_codes import Codes, KeptCodes
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.testing.memory_contract.material import LIVE, by_vector, ids, memory

EVERYONE = Scope("acme")


def codes(number: int, state: int = 1) -> Codes:
    flat = np.zeros(number, np.float32)
    rows = np.zeros((number, 84), np.int8)  # with what stands beside them 100 bytes each
    return Codes(state, np.arange(number), rows, flat, flat, np.empty(0, np.int64), np.empty((0, 0), np.float32))


def test_what_was_used_last_stays_within_the_budget() -> None:
    kept = KeptCodes(1000)
    for partition in (1, 2, 3):
        kept.put(partition, codes(3))
    assert kept.get(1, 1) is not None
    kept.put(4, codes(3))
    assert [kept.get(partition, 1) is not None for partition in (1, 2, 3, 4)] == [True, False, True, True]
    assert kept.size == 900
    kept.put(1, codes(5, state=2))
    assert kept.size == 800
    assert (kept.get(1, 1), kept.get(3, 1)) == (None, None)
    kept.put(5, codes(11))
    assert (kept.get(5, 1), kept.size) == (None, 800)
    kept.clear()
    assert (kept.get(4, 1), kept.size) == (None, 0)


@pytest.mark.parametrize("kept_bytes", [0, 3000, 10_000_000])
async def test_whoever_changes_vectors_every_search_sees_it(opened, kept_bytes: int, monkeypatch) -> None:
    reads = []
    read = reading_codes._read
    monkeypatch.setattr(reading_codes, "_read", lambda *args: reads.append(args) or read(*args))
    reader = await opened(kept_bytes=kept_bytes)
    writer = await opened()

    async def closest(number: float) -> list[str]:
        return ids(await by_vector(reader, [number, 1.0], EVERYONE, LIVE, limit=1))

    entries = [memory(f"m{n:03}", "note", owner=f"o{n % 2}", embedding=[float(n), 1.0]) for n in range(400)]
    await writer.store_many(EVERYONE, entries)
    for _ in range(3):
        assert await closest(7.0) == ["m007"]
    if kept_bytes == 10_000_000:
        assert len(reads) == 2  # each partition once
    await writer.update(EVERYONE, "m007", {"embedding": [-5.0, 1.0]})
    assert await closest(7.0) != ["m007"]
    assert await closest(-5.0) == ["m007"]
    await writer.delete(EVERYONE, "m007")
    assert await closest(-5.0) != ["m007"]
    await writer.delete_many(EVERYONE, [entry.id for entry in entries])
    assert await closest(7.0) == []
    anew = [memory(f"n{n:03}", "note", owner="o0", embedding=[float(-n), 1.0]) for n in range(200)]
    await writer.store_many(EVERYONE, anew)
    assert await closest(-9.0) == ["n009"]
    assert await reader.check() == []


@pytest.mark.parametrize("kept_bytes", [-1, 2**50])
def test_a_budget_that_cannot_be_is_refused(kept_bytes: int) -> None:
    with pytest.raises(InvalidInput, match="kept_bytes"):
        SqliteAdapter(":memory:", kept_bytes=kept_bytes)
