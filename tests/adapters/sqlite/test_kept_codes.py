from datetime import timedelta

import numpy as np
import pytest

from lamina.adapters.sqlite import SqliteAdapter, kept_words, reading_codes
from lamina.adapters.sqlite.kept_codes import Codes, Kept, Key
from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import SearchOptions
from lamina.testing.memory_contract.material import LIVE, NOW, by_vector, ids, memory

EVERYONE = Scope("acme")


def codes(number: int, state: int = 1) -> Codes:
    flat = np.zeros(number, np.float32)
    rows = np.zeros((number, 84), np.int8)  # with what stands beside them 100 bytes each
    return Codes(state, np.arange(number), rows, flat, flat, np.empty(0, np.int64), np.empty((0, 0), np.float32))


def key(partition: int) -> Key:
    return "codes", partition


def test_what_was_used_last_stays_within_the_budget() -> None:
    kept = Kept(1000)
    for partition in (1, 2, 3):
        kept.put(key(partition), codes(3))
    assert kept.get(key(1), 1) is not None
    kept.put(key(4), codes(3))
    assert [kept.get(key(partition), 1) is not None for partition in (1, 2, 3, 4)] == [True, False, True, True]
    assert kept.size == 900
    kept.put(key(1), codes(5, state=2))
    assert kept.size == 800
    assert (kept.get(key(1), 1), kept.get(key(3), 1)) == (None, None)
    kept.put(key(5), codes(11))
    assert (kept.get(key(5), 1), kept.size) == (None, 800)
    kept.clear()
    assert (kept.get(key(4), 1), kept.size) == (None, 0)


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


async def test_words_in_memory_say_what_the_file_says_whoever_changes_texts(opened, monkeypatch) -> None:
    reads = []
    read = kept_words._read
    monkeypatch.setattr(kept_words, "_read", lambda *args: reads.append(args) or read(*args))
    keeping, reading, writer = await opened(), await opened(kept_bytes=0), await opened()
    later = NOW + timedelta(days=1)
    texts = [f"red {'apple ' * (n % 4)}tree{n % 7} in a {'garden' if n % 3 else 'meadow ' * n}" for n in range(120)]
    entries = [memory(f"m{n:03}", text, owner=f"o{n % 2}") for n, text in enumerate(texts)]
    entries[5] = entries[5].replace(expires_at=NOW + timedelta(hours=1))
    entries[8] = entries[8].replace(superseded_by="m009")
    await writer.store_many(EVERYONE, entries)

    async def compare() -> None:
        for scope in (EVERYONE, Scope("acme", owner="o1")):
            for filter in (LIVE, MemoryFilter(now=later, current=True), MemoryFilter(now=NOW, tags=("none",))):
                options = SearchOptions(scope=scope, filter=filter, limit=7)
                for query in ("apples or apple tree3", "meadow", "Red gardens, trees?", "nothing of it"):
                    found, expected = [await each.search_by_text(query, options) for each in (keeping, reading)]
                    assert [(hit.entry, hit.similarity) for hit in found] == [
                        (hit.entry, hit.similarity) for hit in expected
                    ]

    await compare()
    assert len(reads) == 2  # each partition once
    await writer.update(EVERYONE, "m010", {"content": "apple apple apples"})
    await compare()
    await writer.delete_many(EVERYONE, ["m011", "m013"])
    await compare()
    await writer.store(EVERYONE, memory("new", "an apple in the meadow", owner="o1"))
    await compare()
    assert len(reads) == 5  # and each that was changed, once more


@pytest.mark.parametrize("kept_bytes", [-1, 2**50])
def test_a_budget_that_cannot_be_is_refused(kept_bytes: int) -> None:
    with pytest.raises(InvalidInput, match="kept_bytes"):
        SqliteAdapter(":memory:", kept_bytes=kept_bytes)
