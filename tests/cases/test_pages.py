"""Limits, pages and the order of results: the same in each call, and whole."""

from __future__ import annotations

import sqlite3

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.memory import reading
from lamina.ports.memory_requests import ListOptions

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


@pytest.mark.case("B41")
@EVERYWHERE
@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3", 10**10])
async def test_a_limit_that_is_none_is_refused_alike_by_lists_and_searches(engine, limit):
    await engine.store_many(["one lamp", "two lamps", "three lamps"])
    for call in (engine.query, lambda **o: engine.query("lamp", **o), lambda **o: engine.recall("lamp", **o)):
        with pytest.raises((InvalidInput, TypeError), match="limit"):
            await call(limit=limit)


@pytest.mark.case("B41")
async def test_a_limit_of_nothing_is_refused_alike_through_every_interface(http, tools, kernel):
    await kernel.memory_engine.store_many([{"content": f"lamp {n}", "owner": "ann"} for n in range(3)])
    for answer in (
        await http.get("/v1/memories", params={"limit": 0}),
        await http.post("/v1/memories/recall", json={"query": "lamp", "limit": 0}),
        await http.post("/v1/documents/retrieve", json={"query": "lamp", "top_k": 0}),
        await http.get("/v1/threads", params={"limit": 0}),
    ):
        assert answer.status_code == 422, answer.text
    async with tools() as call:
        for name, given in (("search_memories", {"query": "lamp", "top_k": 0}), ("list_memories", {"page_size": 0})):
            with pytest.raises(AssertionError):
                await call(name, **given)


@pytest.mark.case("B43")
async def test_the_last_three_messages_are_the_newest_three_in_order(manager, kernel):
    said = [{"role": "user", "content": f"message {number}"} for number in range(1, 21)]
    await manager.add_messages("t", said)
    newest = ["message 18", "message 19", "message 20"]
    context = await manager.get_thread_context("t", max_messages=3)
    assert [message.content for message in context.messages] == newest
    sessions = kernel.sessions("ann")
    await sessions.add_list(said, "s")
    shown = await sessions.list(session_id="s", order="desc", limit=3)
    assert [event.message.content for event in shown] == newest[::-1]


@pytest.mark.case("B44")
async def test_rows_that_cannot_be_read_are_told_and_those_before_them_are_still_there(kernel, tmp_path):
    talk = kernel.conversation
    await talk.add_messages("t", [{"role": "user", "content": f"good {number}"} for number in range(5)])
    bad = await talk.add_messages("t", [{"role": "user", "content": f"bad {number}"} for number in range(2)])
    await kernel.stop()
    [path] = (tmp_path / "data").rglob("*.db")
    with sqlite3.connect(path) as connection:
        for message in bad:
            connection.execute("UPDATE lamina_messages SET message = '{broken' WHERE id = ?", (message.id,))
    connection.close()
    await kernel.start()
    context = await kernel.conversation.get_thread_context("t", max_messages=3)
    assert [message.content for message in context.messages] == ["good 2", "good 3", "good 4"]
    assert context.warnings == ["messages cannot be read and were left out (#6, #7); `lamina check` says what is wrong"]
    good = await kernel.conversation.history("t", limit=5)
    assert [message.content for message in good] == [f"good {number}" for number in range(5)]
    await kernel.conversation.add_messages("t", [{"role": "user", "content": "after"}])
    assert (await kernel.conversation.history("t"))[-1].content == "after"
    told = [each.found for each in (await kernel.check_integrity()).problems]
    assert told == [f"the row of the message {number} cannot be read" for number in (6, 7)]


@pytest.mark.case("B46")
@EVERYWHERE
@pytest.mark.parametrize("query", [None, "lamp"])
async def test_pages_of_two_tile_all_of_eight(engine, query):
    stored = await engine.store_many([{"content": f"lamp {'post ' * (number % 3)}{number}"} for number in range(8)])
    pages = [await engine.query(query, limit=2, offset=offset) for offset in range(0, 10, 2)]
    assert [len(page) for page in pages] == [2, 2, 2, 2, 0]
    assert sorted(entry.id for page in pages for entry in page) == sorted(stored)


@pytest.mark.case("B46")
async def test_one_document_of_many_chunks_leaves_none_of_the_others_out(kernel):
    long = "\n\n".join(f"The harbour lamp number {number} is lit every night at nine. " * 20 for number in range(10))
    await kernel.rag.ingest(long, "long.md")
    for number in range(7):
        await kernel.rag.ingest(f"A harbour lamp, note {number}.", f"note-{number}.md")
    found = await kernel.rag.retrieve("harbour lamp", top_k=100)
    assert {chunk.source for chunk in found} == {"long.md", *(f"note-{number}.md" for number in range(7))}


@pytest.mark.case("B47", "B49")
async def test_more_memories_than_any_page_are_walked_listed_and_exported_whole(kernel, http):
    engine = kernel.memory_engine
    stored = await engine.store_many([f"fact number {number}" for number in range(1137)])
    assert [entry.id async for entry in engine.scan()] == stored
    pages = [await engine.query(limit=500, offset=offset) for offset in (0, 500, 1000)]
    assert {entry.id for page in pages for entry in page} == set(stored)
    assert await engine.count() == 1137
    walked, cursor = [], None
    while True:
        params = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = (await http.get("/v1/memories", params=params)).json()
        walked += [each["id"] for each in page["data"]]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
        if len(walked) == 300:
            await engine.forget(stored[0])
    assert walked == stored
    assert (await http.get("/v1/memories", params={"limit": 100_000})).status_code == 422


@pytest.mark.case("B47")
@EVERYWHERE
async def test_a_walk_in_many_pages_has_everything_once(engine, monkeypatch):
    monkeypatch.setattr(reading, "PAGE", 7)
    stored = await engine.store_many([f"fact number {number}" for number in range(50)])
    assert [entry.id async for entry in engine.scan()] == stored


@pytest.mark.case("B49", "B133")
async def test_a_page_and_a_deletion_cost_the_same_in_a_large_store_as_in_a_small_one(tmp_path, open_engine, clock):
    small, large = [await costs(open_engine, tmp_path / f"{number}.db", number, clock.now) for number in (300, 3000)]
    for cost_in_small, cost_in_large in zip(small, large, strict=True):
        assert 0 < cost_in_large <= cost_in_small * 1.5


async def costs(open_engine, path, number, now):
    """What a page far behind and a deletion cost where there are so many memories."""
    engine = await open_engine(path=path, embedding="none")
    ids = await engine.store_many([f"fact number {each}" for each in range(number)])
    last = (await engine.get(ids[-101])).seq
    await engine.close()
    adapter = SqliteAdapter(path, readers=0)  # one connection, whose steps are counted
    await adapter.initialize()
    scope = Scope("default")
    options = ListOptions(scope=scope, filter=MemoryFilter(now=now), limit=50, after=last)
    found = [
        await steps(adapter, lambda: adapter.list(options)),
        await steps(adapter, lambda: adapter.delete(scope, ids[number // 2])),
    ]
    await adapter.close()
    return found


async def steps(adapter, call):
    """In how many of its own steps SQLite answers the call."""
    taken = 0

    def count():
        nonlocal taken
        taken += 1
        return 0

    database = adapter._opened()
    await database.alone(lambda connection: connection.set_progress_handler(count, 1))
    await call()
    await database.alone(lambda connection: connection.set_progress_handler(None, 1))
    return taken
