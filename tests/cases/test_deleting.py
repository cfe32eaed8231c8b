"""What is deleted is gone, in all that was made of it; nothing else goes with it; nothing brings it back."""

from __future__ import annotations

import sqlite3

import pytest

from lamina.domain.scope import Scope
from lamina.errors import InvalidInput

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)
CANARY = "zyzzogeton"


@pytest.mark.case("B68")
@EVERYWHERE
async def test_deleting_all_of_one_owner_leaves_the_others_and_no_condition_deletes_nothing(engine):
    for owner in ("mira", "mira-2", "tomas"):
        await engine.store_many([{"content": f"fact {number}", "owner": owner} for number in range(3)])
    for call in (engine.forget_where, engine.clear, lambda: engine.forget_where(tags=[], where={})):
        with pytest.raises(InvalidInput):
            await call()
    assert await engine.forget_where(owner="mira", dry_run=True) == 3
    assert await engine.forget_where(owner="mira") == 3
    assert {entry.owner for entry in await engine.query(limit=100)} == {"mira-2", "tomas"}


@pytest.mark.case("B68")
async def test_deleting_without_a_condition_is_refused_through_every_interface(http, tools, kernel):
    await kernel.memory_engine.store("fact", owner="ann")
    for body in ({}, {"tags": []}, {"where": {}}, {"dry_run": False}):
        assert (await http.post("/v1/memories/forget", json=body)).status_code == 422
    assert (await http.delete("/v1/memories")).status_code == 405
    async with tools() as call:
        with pytest.raises(AssertionError):
            await call("delete_memory")
    assert await kernel.memory_engine.count() == 1


@pytest.mark.case("B70")
@EVERYWHERE
async def test_nothing_leads_to_a_deleted_memory_any_more(engine):
    kept = await engine.store("Elif has a boat")
    gone = await engine.store("Elif works with Can", metadata={"with": "Can"}, supersedes=[kept])
    await engine.update(gone, content="Elif works with Can again")
    assert await engine.forget(gone) is True
    for mode in ("hybrid", "vector", "text"):
        assert gone not in [hit.entry.id for hit in await engine.recall("Elif works with Can", mode=mode, min_match=0)]
    assert await engine.get(gone) is None
    assert await engine.query(where={"with": "Can"}) == []
    assert await engine.history(gone) == []
    assert (await engine.get(kept)).superseded_by is None
    assert (await engine.stats()).memories == 1
    assert await engine.forget(gone) is False


@pytest.mark.case("B70")
async def test_an_entity_of_the_graph_goes_with_its_relations(tools):
    async with tools(profile="knowledge-graph") as call:
        entities = [{"name": name, "entityType": "person", "observations": []} for name in ("Elif", "Can")]
        await call("create_entities", entities=entities)
        await call("create_relations", relations=[{"from": "Elif", "to": "Can", "relationType": "works with"}])
        await call("delete_entities", entityNames=["Elif"])
        graph = await call("read_graph")
        assert [each["name"] for each in graph["entities"]] == ["Can"]
        assert graph["relations"] == []


@pytest.mark.case("B71")
async def test_the_index_of_words_shrinks_with_the_rows_and_writing_costs_what_it_did(tmp_path, open_engine):
    path = tmp_path / "lamina.db"
    engine = await open_engine(path=path)
    await engine.store_many([f"kept note {number}" for number in range(50)])
    before = sizes(path)
    ids = await engine.store_many([f"passing words {number} {number * 7}" for number in range(400)])
    for id in ids[:100]:
        await engine.forget(id)
    assert all(await engine.adapter.delete_many(Scope("default"), ids[100:]))
    assert sizes(path) == before
    assert await engine.recall("passing", mode="text") == []


def sizes(path):
    """How many rows each table has, and how many terms the index of words."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA query_only = ON")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - the schema's own name
            for name in tables
            if name.startswith("lamina") and not name.endswith(("_data", "_idx", "_config"))
        }
    connection.close()
    left_out = "block", "_meta"  # a block is shared by 64, and each deletion leaves a mark among the meta values
    return {name: count for name, count in rows.items() if not any(part in name for part in left_out)}


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.case("B73", "B74")
async def test_no_byte_of_what_was_deleted_is_left_in_any_file(kernel, tmp_path):
    folder = tmp_path / "data"
    talk, engine, packs, rag = kernel.conversation, kernel.memory_engine, kernel.packs, kernel.rag
    await talk.add_messages("kept", [{"role": "user", "content": f"filler {number}"} for number in range(80)])
    await talk.add_messages("gone", [{"role": "user", "content": f"{CANARY} {number}"} for number in range(80)])
    id = await engine.store(f"{CANARY} is a word", metadata={CANARY: 1}, tags=[CANARY])
    await engine.update(id, content="another text")
    document = await rag.ingest(f"# {CANARY}\n\nof a document", "x.md")
    await packs.create("notes", "domain")
    memory = await packs.add("notes", f"{CANARY} of a pack")
    assert CANARY.encode() in bytes_of(folder)
    assert await talk.delete("gone") is True
    assert await engine.forget(id) is True
    assert await rag.remove(document) is True
    await packs.delete_memory(memory.id, permanent=True)
    await engine.adapter.scrub()
    await packs.scrub()
    await rag.scrub()
    await kernel.stop()
    assert CANARY.encode() not in bytes_of(folder)
    await kernel.start()
    assert len(await kernel.conversation.history("kept")) == 80


@pytest.mark.case("B77")
async def test_what_two_threads_use_outlives_one_of_them(kernel):
    await kernel.packs.create("shared", "domain", description="harbour rules")
    await kernel.packs.add("shared", "boats keep right")
    for thread in ("one", "two"):
        await kernel.conversation.add_message_to_thread(thread, "user", "hello", owner="ann")
    fact = await kernel.memory_engine.store("Ann rows", owner="ann", derived_from=["one"])
    assert await kernel.conversation.delete("one", owner="ann") is True
    assert [hit.memory.content for hit in await kernel.packs.retrieve(["shared"], "boats")] == ["boats keep right"]
    assert (await kernel.memory_engine.get(fact)).content == "Ann rows"
    assert len(await kernel.conversation.history("two", owner="ann")) == 1
