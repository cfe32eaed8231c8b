import asyncio
import sqlite3
import unicodedata
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.adapters.sqlite.partitions import resolve
from lamina.adapters.sqlite.reading import find_duplicate
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.domain.text import content_digest
from lamina.errors import AdapterError, AdapterUnavailable, InvalidInput, ScopeError
from lamina.ports.memory_adapter import Order, Update
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, by_vector, ids, listed, memory, put

TWINS = [
    *("a", "a_", "a%", "A", "a:1", "a:10", "a/b", "a' OR '1'='1", 'a"', "a*", "a--", "ａ", "а", "a b", "a.b", "ä"),
    *(
        unicodedata.normalize("NFD", "ä"),
        "[a]",
        "a\\",
        "a;b",
        "6f0c1c1e-22aa-4b1e-9d7e-0a1b2c3d4e5f",
        "灯台",
        "a" * 512,
    ),
]


async def test_names_that_look_alike_share_nothing(adapter: SqliteAdapter) -> None:
    for field in ("tenant", "owner", "namespace"):
        for name in TWINS:
            entry = memory(f"{field}{TWINS.index(name)}", f"lamp {field}", embedding=[1.0, 0.0], **{field: name})
            await put(adapter, entry)
    for field in ("tenant", "owner", "namespace"):
        for name in TWINS:
            scope = Scope(**{"tenant": "acme", "owner": "ada", "namespace": "notes", field: name})
            expected = [f"{field}{TWINS.index(name)}"]
            assert ids(await listed(adapter, scope)) == expected
            assert ids(await by_text(adapter, "lamp", scope)) == expected
            assert ids(await by_vector(adapter, [1.0, 0.0], scope)) == expected
            assert await adapter.count(scope, LIVE) == 1
            assert (await adapter.term_statistics(scope, ["lamp"], NOW)).frequencies == {"lamp": 1}
    assert await adapter.check() == []


@pytest.mark.parametrize("owners", [1, 7, 60])  # one partition, a few, and more than are merged one by one
async def test_pages_tile_while_others_add_and_delete(adapter: SqliteAdapter, owners: int) -> None:
    everyone = Scope("acme", namespace="notes")
    for number in range(300):
        await put(adapter, memory(f"m{number:03}", owner=f"owner{number % owners}"))
    seen: list[str] = []
    after, added = 0, 300
    while page := await listed(adapter, everyone, limit=17, after=after):
        seen += ids(page)
        after = page[-1].seq
        if added < 360:
            await put(adapter, memory(f"m{added:03}", owner=f"owner{added % owners}"))
            added += 1
            await adapter.delete(everyone, seen[len(seen) // 2])
    assert seen == [f"m{number:03}" for number in range(added)]


@pytest.mark.parametrize("owners", [3, 40])
async def test_offsets_tile_in_both_orders(adapter: SqliteAdapter, owners: int) -> None:
    entries = [memory(f"m{n:02}", owner=f"owner{n % owners}", relevance=n % 5 / 5) for n in range(90)]
    await put(adapter, *entries)
    for order in Order:
        whole = ids(await listed(adapter, Scope("acme"), order=order))
        pages = [
            ids(await listed(adapter, Scope("acme"), order=order, limit=13, offset=offset))
            for offset in range(0, 104, 13)
        ]
        assert [id for page in pages for id in page] == whole
        assert len(set(whole)) == 90


async def test_a_seq_is_never_given_twice(adapter: SqliteAdapter, opened) -> None:
    given: list[int] = []
    for number in range(5):
        await put(adapter, memory(f"m{number}"))
        given += [entry.seq for entry in await listed(adapter)]
        await adapter.delete(MINE, f"m{number}")
    other = await opened()
    await put(other, memory("last"))
    given += [entry.seq for entry in await listed(other)]
    assert given == sorted(set(given))


async def test_a_memory_that_changes_its_layer_moves_whole(adapter: SqliteAdapter) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1.0]) for n in range(70)])
    before = await adapter.get(MINE, "m3")
    assert before is not None
    assert await adapter.update(MINE, "m3", {"layer": Layer.SESSION})
    after = await adapter.get(MINE, "m3")
    assert after == before.replace(layer=Layer.SESSION, revision=2)
    only = MemoryFilter(now=NOW, layers=frozenset({Layer.SESSION}))
    assert ids(await by_text(adapter, "note 3", filter=only)) == ["m3"]
    assert ids(await by_vector(adapter, [3.0, 1.0], filter=only)) == ["m3"]
    rest = MemoryFilter(now=NOW, layers=frozenset({Layer.LONGTERM}))
    assert "m3" not in ids(await by_vector(adapter, [3.0, 1.0], filter=rest))
    assert [entry.layer for entry in await adapter.history(MINE, "m3")] == [Layer.LONGTERM]
    assert ids(await listed(adapter))[3] == "m3"
    assert await adapter.check() == []


async def test_a_replacement_may_change_owner_and_namespace_inside_the_scope(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("m1", "first", embedding=[1.0, 0.0]))
    moved = memory("m1", "second", owner="bob", namespace="other", embedding=[0.0, 1.0])
    with pytest.raises(ScopeError):
        await adapter.store(MINE, moved)
    with pytest.raises(ScopeError):
        await adapter.store(Scope("acme", "bob"), moved)
    await adapter.store(Scope("acme"), moved)
    assert await listed(adapter) == []
    assert ids(await by_text(adapter, "second", Scope("acme", "bob"))) == ["m1"]
    assert [entry.owner for entry in await adapter.history(Scope("acme"), "m1")] == ["ada"]
    assert await adapter.check() == []


async def test_a_shared_memory_cannot_be_pushed_out_of_the_callers_scope(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("m1", owner="team", layer=Layer.ORGANIZATIONAL))
    mine = Scope("acme", "ada", "notes", include_shared=True)
    assert await adapter.update(mine, "m1", {"relevance": 0.5})
    with pytest.raises(ScopeError):
        await adapter.update(mine, "m1", {"layer": Layer.LONGTERM})
    assert ids(await listed(adapter, mine)) == ["m1"]


async def test_the_names_of_an_owner_go_with_the_last_memory(adapter: SqliteAdapter, rows) -> None:
    await put(adapter, memory("m1", owner="gone"), memory("m2", owner="gone"), memory("m3", owner="stays"))
    await adapter.delete(Scope("acme"), "m1")
    assert rows("SELECT owner FROM lamina_memories_partitions ORDER BY owner") == [("gone",), ("stays",)]
    await adapter.delete(Scope("acme"), "m2")
    assert rows("SELECT owner FROM lamina_memories_partitions") == [("stays",)]
    await put(adapter, memory("m4", owner="gone"))
    assert ids(await listed(adapter, Scope("acme", "gone"))) == ["m4"]
    assert await adapter.check() == []


async def test_history_copies_nothing_for_vectors_and_decay_and_keeps_the_latest_fifty(
    adapter: SqliteAdapter, rows
) -> None:
    await put(adapter, memory("m1", "first", tags=["a"]), memory("m2", "beside"))
    for cycle in range(20):
        decay = [Update(id, {"relevance": 1 / (cycle + 2), "updated_at": NOW}) for id in ("m1", "m2")]
        await adapter.update_many(MINE, decay)
    await adapter.update(MINE, "m1", {"embedding": [1.0, 0.0]})
    await adapter.drop_embeddings(MINE)
    assert rows("SELECT count(*) FROM lamina_memories_history") == [(0,)]
    for number in range(60):
        await adapter.update(MINE, "m1", {"content": f"text {number}"})
    past = await adapter.history(MINE, "m1")
    assert [entry.content for entry in past] == [f"text {number}" for number in range(9, 59)]
    assert rows("SELECT count(*) FROM lamina_memories_history") == [(50,)]
    past[0].tags.append("changed by the caller")
    assert (await adapter.history(MINE, "m1"))[0].tags == ["a"]


async def test_a_batch_with_one_bad_entry_writes_nothing_of_it(adapter: SqliteAdapter) -> None:
    batch = [
        memory("m1", "good lamp", embedding=[1.0, 0.0], owner="new"),
        memory("m2", "bad", relevance=7, owner="new"),
    ]
    with pytest.raises(InvalidInput):
        await adapter.store_many(Scope("acme"), batch)
    await put(adapter, memory("m0", "old lamp"))
    with pytest.raises(InvalidInput):
        await adapter.update_many(MINE, [Update("m0", {"content": "new lamp"}), Update("m0", {"relevance": 7})])
    assert [entry.content for entry in await listed(adapter, Scope("acme"))] == ["old lamp"]
    assert ids(await by_text(adapter, "lamp", Scope("acme"))) == ["m0"]
    assert await adapter.check() == []


async def test_one_id_many_times_in_one_batch_ends_as_its_last(adapter: SqliteAdapter) -> None:
    layers = list(Layer)
    batch = [
        memory("m1", f"version {n}", layer=layers[n % 5], embedding=[n, 1.0] if n % 2 else None) for n in range(12)
    ]
    await adapter.store_many(MINE, batch)
    entry = await adapter.get(MINE, "m1")
    assert entry is not None
    assert (entry.content, entry.layer, entry.revision, list(entry.embedding or [])) == (
        "version 11",
        layers[1],
        12,
        [11, 1],
    )
    assert ids(await by_text(adapter, "version")) == ["m1"]
    assert len(await adapter.history(MINE, "m1")) == 11
    assert await adapter.check() == []


async def test_racing_stores_of_the_same_text_end_as_one_in_two_adapters(opened) -> None:
    one, other = await opened(), await opened()
    calls = [
        adapter.store_many(MINE, [memory(f"{name}{n}", "the very same")], if_new=True)
        for n in range(20)
        for name, adapter in (("one", one), ("other", other))
    ]
    found = await asyncio.gather(*calls)
    assert len(await listed(one)) == 1
    assert sum(twin is None for (twin,) in found) == 1
    assert len({twin.id for (twin,) in found if twin is not None}) == 1


async def test_a_row_that_was_tampered_with_is_an_error_and_no_gap(adapter: SqliteAdapter, rows) -> None:
    await put(adapter, memory("m1"), memory("m2"))
    rows("UPDATE lamina_memories SET tags = '[broken' WHERE id = 'm1'")
    with pytest.raises(AdapterError, match="'m1' cannot be read"):
        await listed(adapter)
    assert (await adapter.get(MINE, "m2")) is not None


async def test_what_is_kept_about_a_tenant_is_no_memory(adapter: SqliteAdapter, opened) -> None:
    await adapter.save_meta(MINE, "fingerprint", "one", NOW)
    await adapter.save_meta(Scope("rival"), "fingerprint", "two", NOW)
    await adapter.save_meta(MINE, "fingerprint", "three", NOW)
    other = await opened()
    assert await other.load_meta(Scope("acme"), "fingerprint") == "three"
    assert await other.load_meta(Scope("rival"), "fingerprint") == "two"
    assert await other.load_meta(MINE, "absent") is None
    assert await other.load_meta(MINE, "\ud800") is None
    assert await listed(other, Scope("acme")) == []
    for value in ("", " ", "a\0b", "\ud800"):
        with pytest.raises(InvalidInput):
            await adapter.save_meta(MINE, "fingerprint", value, NOW)


async def test_looking_for_a_twin_does_not_read_the_whole_scope(adapter: SqliteAdapter) -> None:
    async def steps() -> int:
        """How often SQLite's machine has taken ten instructions, for a look-up that finds nothing."""
        taken = []

        def look(connection: sqlite3.Connection) -> None:
            collection = Collection(connection, adapter._tables)
            reach = resolve(collection, MINE, frozenset({Layer.LONGTERM}))
            connection.set_progress_handler(lambda: taken.append(1), 10)
            try:
                assert find_duplicate(collection, reach, content_digest("unheard of"), NOW) is None
            finally:
                connection.set_progress_handler(None, 0)

        await adapter._opened().read(look)
        return len(taken)

    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}") for n in range(100)])
    few = await steps()
    await adapter.store_many(MINE, [memory(f"n{n}", f"more {n}") for n in range(3000)])
    assert await steps() <= few + 2


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the collection's own statements are, as they are run."""
    seen: list[str] = []
    for name in ("execute", "execute_many"):
        run = getattr(Collection, name)

        def noted(self, template, rows=(), *, run=run, **parts):
            seen.append(template)
            return run(self, template, rows, **parts)

        monkeypatch.setattr(Collection, name, noted)
    return seen


async def test_a_batch_takes_few_statements_however_many_memories_it_holds(adapter, statements: list[str]) -> None:
    counts = []
    for size in (1, 40, 400):
        statements.clear()
        batch = [memory(f"{size}-{n}", f"text {size} {n}", embedding=[1.0, n / size]) for n in range(size)]
        assert await adapter.store_many(MINE, batch, if_new=True) == [None] * size
        counts.append(len(statements))
    assert counts[0] <= 12
    assert counts[1] <= counts[0]
    assert counts[2] <= 24  # six blocks are sealed
    assert await adapter.check() == []


async def test_within_a_batch_what_comes_later_meets_what_came_before(adapter: SqliteAdapter) -> None:
    old = memory("old", "the lamp is lit", embedding=[1.0, 0.0])
    await put(adapter, old)
    batch = [
        memory("a", "the door is shut", embedding=[0.0, 1.0]),
        memory("b", "the  lamp is lit"),
        memory("c", "the door is  shut"),
        memory("a", "something else"),
        memory("d", "the door is shut", owner="bob"),
        memory("e", "the last one"),
    ]
    found = await adapter.store_many(Scope("acme"), batch, if_new=True)
    assert [twin and twin.id for twin in found] == [None, "old", "a", "a", None, None]
    assert list(found[2].embedding) == [0.0, 1.0]
    assert ids(await listed(adapter, Scope("acme"))) == ["old", "a", "d", "e"]
    assert await adapter.check() == []


async def test_a_batch_puts_memories_in_the_place_of_their_namesakes_once_for_each(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("a", "first"), memory("b", "other"))
    await adapter.store_many(MINE, [memory("a", "second"), memory("new", "new"), memory("a", "third")])
    stored = await adapter.get(MINE, "a")
    assert (stored.content, stored.revision) == ("third", 3)
    assert [old.content for old in await adapter.history(MINE, "a")] == ["first", "second"]
    assert ids(await by_text(adapter, "second", MINE)) == []
    assert await adapter.check() == []


async def test_what_a_count_of_missing_vectors_reads_does_not_hang_on_how_many_there_are(
    adapter: SqliteAdapter, statements: list[str]
) -> None:
    await put(adapter, *(memory(f"m{n}", f"text {n}", embedding=[1.0, n]) for n in range(5)))
    lacking = MemoryFilter(now=NOW, has_embedding=False)
    statements.clear()
    assert await adapter.count(MINE, lacking) == 0
    assert not [each for each in statements if "{memories}" in each]
    await adapter.delete(MINE, "m3")
    assert await adapter.count(MINE, lacking) == 0
    await put(adapter, memory("bare", "no vector"))
    assert await adapter.count(MINE, lacking) == 1


async def test_a_vacuum_gives_back_the_room_of_what_was_deleted_and_keeps_the_rest(adapter: SqliteAdapter) -> None:
    batch = [memory(f"m{n}", f"text {n}", embedding=[1.0 + n] * 100) for n in range(1000)]
    await adapter.store_many(MINE, batch)
    await adapter.delete_many(MINE, [f"m{n}" for n in range(900)])
    done = await adapter.vacuum()
    assert done.after < done.before / 4
    assert await adapter.check() == []
    assert ids(await by_text(adapter, "950", MINE)) == ["m950"]


async def test_a_vacuum_is_refused_while_another_process_writes_or_reads(opened, file: Path) -> None:
    adapter = await opened(busy_timeout=0.05)
    await put(adapter, memory("a"))
    for begin in ("BEGIN IMMEDIATE", "BEGIN"):
        other = sqlite3.connect(file, isolation_level=None)
        other.execute(begin)
        other.execute("SELECT count(*) FROM sqlite_master").fetchone()
        await put(adapter, memory("b")) if begin == "BEGIN" else None
        with pytest.raises(AdapterUnavailable):
            await adapter.vacuum()
        other.close()
    assert (await adapter.vacuum()).after > 0
