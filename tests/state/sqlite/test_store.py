# ruff: noqa: ASYNC240 - tests may wait for their own files
import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.domain.message import Role
from lamina.domain.thread import ThreadEvent, ThreadRef
from lamina.errors import AdapterError, StoreDamaged
from lamina.state.sqlite import SqliteStateStore
from lamina.testing.state_contract.material import NOW, REF, begin, document, event, fill, said, summary

CANARY = "zweihundertneunundneunzig"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lamina.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqliteStateStore]:
    async with SqliteStateStore(file) as store:
        yield store


def change(file: Path, statement: str, *parameters: object) -> None:
    """Change what is kept, past the store."""
    connection = sqlite3.connect(file)
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def bytes_kept(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in file.parent.iterdir())


async def steps(store: SqliteStateStore, *calls) -> list[int]:
    """How many rows and pages SQLite works through for each call, in its own steps."""
    counts = []
    for call in calls:
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        await store._opened().alone(lambda c, count=count: c.set_progress_handler(count, 1))
        await call()
        await store._opened().alone(lambda c: c.set_progress_handler(None, 1))
        counts.append(taken)
    return counts


async def test_adding_to_a_long_thread_and_reading_its_end_costs_what_it_does_in_a_short_one(file: Path) -> None:
    async with SqliteStateStore(file, readers=0) as store:  # one connection, whose steps are counted
        short, long = ThreadRef("acme", "short"), ThreadRef("acme", "long")
        for ref, number in ((short, 60), (long, 5000)):
            await begin(store, ref)
            await store.append(ref, [event(f"m{n}", role=Role.USER) for n in range(number)], now=NOW)
        costs = [
            await steps(
                store,
                lambda ref=ref: store.append(ref, [event("new")], now=NOW),
                lambda ref=ref: store.events(ref, limit=50, newest=True),
                lambda ref=ref: store.live_size(ref),
                lambda ref=ref: store.system_events(ref, before=4000),
                lambda ref=ref: store.find_events(ref, ["m7"]),
            )
            for ref in (short, long)
        ]
        assert all(each > 0 for each in costs[0])
        assert costs[1] == costs[0]


async def test_listing_heads_costs_the_same_however_long_the_threads_are(file: Path) -> None:
    async with SqliteStateStore(file, readers=0) as store:
        for number in range(20):
            await begin(store, ThreadRef("acme", f"t{number}"), owner="ada")
        [before] = await steps(store, lambda: store.list_threads("acme", owner="ada"))
        for number in range(20):
            await store.append(ThreadRef("acme", f"t{number}"), [event(f"m{n}") for n in range(100)], now=NOW)
        [after] = await steps(store, lambda: store.list_threads("acme", owner="ada"))
        assert after == before


@pytest.mark.parametrize("deed", ["delete the thread", "delete the message", "replace it", "delete the document"])
async def test_nothing_of_what_was_erased_is_left_in_the_file(file: Path, deed: str) -> None:
    async with SqliteStateStore(file) as store:
        await fill(store, 3)
        [said_it] = await store.append(REF, [event("c", f"my word is {CANARY}").replace(state={"x": CANARY})], now=NOW)
        await store.append(REF, [event("large", f"{CANARY} " * 3000)], now=NOW)
        await store.save_document(
            document(source=CANARY, owner=CANARY, metadata={"x": CANARY}), expected_generation=None
        )
        if deed == "delete the thread":
            await store.fold(REF, summary(4, f"said {CANARY}", facts=[CANARY]), expected_folded_through=0, now=NOW)
            await store.delete_thread(REF)
            await store.delete_document("acme", "d1")
        elif deed == "replace it":
            short = said_it.replace(message=said_it.message.replace(content="gone"), state={})
            assert await store.replace_events(REF, [short], expected=[said_it])
            await store.delete_events(REF, ["large"])
            assert await store.save_document(document(), expected_generation=1)
        else:
            await store.delete_events(REF, ["c", "large"])
            await store.delete_document("acme", "d1")
        await store.scrub()
        assert CANARY.encode() not in bytes_kept(file)
        assert await store.check() == []


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
async def test_the_file_is_for_its_owner_only(file: Path, store: SqliteStateStore) -> None:
    await fill(store, 1)
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE lamina_threads SET live_count = 7", "1 threads count their live messages wrongly"),
        ("UPDATE lamina_threads SET live_tokens = 7", "1 threads count their live messages wrongly"),
        ("DELETE FROM lamina_messages WHERE id = 'm3'", "1 threads count their live messages wrongly"),
        ("DELETE FROM lamina_summaries", "1 threads are folded through another index than their summary"),
        ("UPDATE lamina_threads SET last_index = 3", "1 messages have an index that their thread has not given"),
        ("UPDATE lamina_threads SET metadata = '[]'", "the row of the thread 't1' cannot be read"),
        ("UPDATE lamina_threads SET kind = 'other'", "the row of the thread 't1' cannot be read"),
        ("UPDATE lamina_messages SET message = '{' WHERE id = 'm2'", "the row of the message 2 cannot be read"),
        ("UPDATE lamina_messages SET message = '[]' WHERE id = 'm2'", "the row of the message 2 cannot be read"),
        ("UPDATE lamina_summaries SET facts = '{}'", "the row of the summary up to 1 cannot be read"),
        ("UPDATE lamina_documents SET options = ''", "the row of the document 'd1' cannot be read"),
    ],
)
async def test_a_file_that_contradicts_itself_is_found_out(
    file: Path, store: SqliteStateStore, statement: str, finding: str
) -> None:
    await fill(store, 4)
    await store.fold(REF, summary(1), expected_folded_through=0, now=NOW)
    await store.save_document(document(), expected_generation=None)
    assert await store.check() == []
    change(file, statement)
    findings = await store.check()
    assert findings[0] == finding
    assert len(findings) <= 2  # what follows from it
    done = await store.repair()
    if "cannot be read" in finding:
        assert finding in await store.check()  # which only a backup mends
    else:
        assert done
        assert await store.check() == []
        assert await store.repair() == []


async def test_a_message_that_cannot_be_read_is_told_without_its_content_and_hides_no_other(
    file: Path, store: SqliteStateStore, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(store, 4)
    change(file, "UPDATE lamina_messages SET state = ? WHERE id IN ('m2', 'm3')", f'"{CANARY}"')
    for options, ids in (({}, ["m1", "m4"]), ({"limit": 2, "newest": True}, ["m1", "m4"]), ({"limit": 1}, ["m1"])):
        found = await store.events(REF, **options)
        assert [each.message.id for each in found] == ids
        assert found.unreadable == ([] if options == {"limit": 1} else [2, 3])
    with pytest.raises(StoreDamaged) as refusal:
        await store.find_events(REF, ["m2"])
    assert CANARY not in str(refusal.value) + caplog.text
    assert refusal.value.__cause__ is None


async def test_text_that_is_no_text_is_found_out(file: Path, store: SqliteStateStore) -> None:
    await fill(store, 2)
    change(file, "UPDATE lamina_messages SET counter = CAST(x'ff' AS TEXT) WHERE id = 'm2'")
    assert await store.check() == [f"{file} holds text that is no UTF-8"]
    with pytest.raises(StoreDamaged):
        await store.events(REF)


async def test_messages_of_a_newer_version_are_read_and_what_is_unknown_is_kept(
    file: Path, store: SqliteStateStore
) -> None:
    [read] = await fill(store, 1)
    change(file, """UPDATE lamina_messages SET message = json_set(message, '$.mood', 'calm')""")
    [back] = await store.events(REF)
    assert back.message.extra == {"mood": "calm"}
    assert await store.replace_events(REF, [back.replace(tokens=1)], expected=[back])
    [again] = await store.events(REF)
    assert (again.message.extra, again.message.content) == ({"mood": "calm"}, read.message.content)


async def test_a_closed_store_says_how_to_open_it(file: Path) -> None:
    store = SqliteStateStore(file)
    with pytest.raises(AdapterError, match=r"Call `await store.initialize\(\)` first"):
        await store.get_thread(REF)
    assert not file.exists()


def test_a_store_can_be_used_from_one_event_loop_after_another(file: Path) -> None:
    store = SqliteStateStore(file)

    async def use(number: int) -> list[str]:
        await store.initialize()
        await begin(store)
        await store.append(REF, [event(f"m{number}")], now=NOW)
        return await said(store)

    assert asyncio.run(use(1)) == ["m1"]
    assert asyncio.run(use(2)) == ["m1", "m2"]
    asyncio.run(store.close())
    asyncio.run(store.close())


async def test_ten_thousand_messages_added_at_once_are_all_there(store: SqliteStateStore) -> None:
    await begin(store)
    batches: list[list[ThreadEvent]] = [[event(f"m{n}-{each}") for each in range(100)] for n in range(100)]
    await asyncio.gather(*(store.append(REF, batch, now=NOW) for batch in batches))
    assert await store.live_size(REF) == (10_000, 20_000)
    assert len(await store.events(REF)) == 10_000
    assert await store.check() == []
