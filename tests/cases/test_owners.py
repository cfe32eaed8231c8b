"""Owners, namespaces and tenants are apart in every way of reading; what is shared is found by id and by name."""

from __future__ import annotations

import pytest
from served import client_of

from lamina.errors import InvalidInput, LaminaError, PackNotFound, ScopeError
from lamina.server import Principal, create_app

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)
LOOK_ALIKE = ["a", "a_", "a%", "A", "a:1", "a:10", "team:1", "team:10", "ａ", "é", "e\u0301", "a b", "a  b"]


@pytest.mark.case("B61", "B62")
@EVERYWHERE
@pytest.mark.parametrize("part", ["namespace", "owner", "id"])
async def test_a_name_is_never_the_beginning_or_the_likeness_of_another(engine, part):
    for number, name in enumerate(LOOK_ALIKE):
        await engine.store(f"lamp {number}", **{part: name})
    for number, name in enumerate(LOOK_ALIKE):
        content = f"lamp {number}"
        if part == "id":
            assert (await engine.get(name)).content == content
            continue
        given = {part: name}
        assert [entry.content for entry in await engine.query(**given)] == [content]
        for mode in ("hybrid", "text", "vector"):
            assert [hit.entry.content for hit in await engine.recall("lamp", mode=mode, **given)] == [content]
        assert await engine.count(**given) == 1
        assert [entry.content async for entry in engine.scan(**given)] == [content]


@pytest.mark.case("B61")
@EVERYWHERE
async def test_the_empty_name_is_refused_everywhere_and_means_nobody(engine):
    await engine.store("lamp")
    for part in ("owner", "namespace"):
        for call in (engine.recall, engine.query):
            with pytest.raises(LaminaError, match=part):
                await call("lamp", **{part: ""})
        with pytest.raises(LaminaError, match=part):
            await engine.store("lamp two", **{part: ""})
        with pytest.raises(LaminaError, match=part):
            await engine.forget_where(**{part: ""})
    assert await engine.count() == 1


@pytest.mark.case("B62")
async def test_ids_of_threads_documents_and_packs_are_whole_names(kernel):
    for name in ("plan-a", "plan-a-final"):
        await kernel.conversation.add_message_to_thread(name, "user", f"about {name}")
        await kernel.rag.ingest(f"about {name}", name)
        await kernel.packs.create(name, "domain", description=f"about {name}")
    assert (await kernel.conversation.history("plan-a"))[0].content == "about plan-a"
    assert (await kernel.packs.get("plan-a")).description == "about plan-a"
    await kernel.rag.ingest("about plan-a, again", "plan-a")
    assert sorted(each.source for each in await kernel.rag.list_documents()) == ["plan-a", "plan-a-final"]
    assert await kernel.conversation.delete("plan-a") is True
    assert [thread.id for thread in await kernel.conversation.list_threads()] == ["plan-a-final"]


@pytest.mark.case("B64", "B65")
@EVERYWHERE
@pytest.mark.parametrize("settings", [{}, {"embedding": "none"}], ids=["both legs", "words alone"])
async def test_a_choice_of_owner_or_namespace_holds_in_every_mode_and_setting(open_engine, place, settings):
    engine = await open_engine(**place, **settings)
    words = {"mira": "quince", "tomas": "walnut"}
    for name, word in words.items():
        await engine.store(f"Charlie likes {word} cake", owner=name, namespace=name)
    for name, word in words.items():
        for mode in ("hybrid", "vector", "text"):
            for given in ({"owner": name}, {"namespace": name}, {"owner": name, "include_superseded": True}):
                for query in ("what does Charlie like?", "quince walnut"):
                    found = await engine.recall(query, mode=mode, min_match=0, **given)
                    assert [hit.entry.content for hit in found] == [f"Charlie likes {word} cake"]


@pytest.mark.case("B64", "B65")
async def test_facts_of_two_owners_about_one_person_stay_apart_in_every_part_and_interface(kernel, http, tools):
    words = {"mira": "quince", "tomas": "walnut"}
    for name, word in words.items():
        said = f"Charlie likes {word} cake"
        await kernel.memory_engine.store(said, owner=name)
        await kernel.rag.ingest(said, "charlie.md", owner=name)
        await kernel.conversation.add_message_to_thread(f"t-{name}", "user", said, owner=name)
        await kernel.packs.create("charlie", "user", owner=name, description=f"Charlie and {word}")
        await kernel.packs.add("charlie", said, owner=name)
    for name, word in words.items():
        other = words["tomas" if name == "mira" else "mira"]
        seen = []
        for mode in ("hybrid", "vector", "text"):
            seen.append(await kernel.rag.retrieve("what does Charlie like?", owner=name, mode=mode, top_k=50))
            body = {"query": "what does Charlie like?", "owner": name, "mode": mode}
            seen.append((await http.post("/v1/memories/recall", json=body)).json())
            seen.append((await http.post("/v1/documents/retrieve", json=body)).json())
            seen.append(await kernel.packs.retrieve(["charlie"], "what does Charlie like?", mode=mode, owner=name))
        seen.append(await kernel.packs.search("what does Charlie like?", owner=name))
        given = {"intent_id": "i", "goal": "what does Charlie like?", "owner_id": name, "thread_id": f"t-{name}"}
        seen.append(await kernel.context_engine.compute(**given))
        async with tools(name) as call:
            seen.append(await call("search_memories", query="what does Charlie like?"))
            seen.append(await call("list_memories"))
        for each in seen:
            assert (word in repr(each), other in repr(each)) == (True, False)
        with pytest.raises(ScopeError):
            await kernel.conversation.history(f"t-{'tomas' if name == 'mira' else 'mira'}", owner=name)


@pytest.mark.case("B67")
async def test_what_is_shared_is_found_by_its_name_and_by_its_id_and_ones_own_comes_first(kernel):
    packs = kernel.packs
    shared = await packs.create("handbook", "domain", description="for everybody")
    await packs.add("handbook", "the lamp is lit at nine")
    app = create_app(kernel, auth={"bobs": Principal(tenant="default", owner="bob")})
    async with client_of(app, token="bobs") as http:
        assert shared.id in (await http.get("/utils/context-packs/handbook")).text
        own = await packs.create("handbook", "user", owner="bob")
        assert (await packs.get("handbook", owner="bob")).id == own.id
        assert (await packs.get("handbook")).id == shared.id
        with pytest.raises(PackNotFound):
            await packs.get("charlies", owner="bob")
        by_id = await packs.retrieve([shared.id], "lamp", owner="bob", by="id")
        assert [hit.memory.content for hit in by_id] == ["the lamp is lit at nine"]


@pytest.mark.case("B61")
async def test_the_empty_owner_is_nobody_in_threads_packs_and_documents(kernel):
    await kernel.conversation.add_message_to_thread("t", "user", "hello", owner="ann")
    with pytest.raises(InvalidInput, match="owner"):
        await kernel.conversation.list_threads(owner="")
    with pytest.raises(InvalidInput, match="owner"):
        await kernel.rag.retrieve("hello", owner="")
    with pytest.raises(InvalidInput, match="owner"):
        await kernel.packs.list(owner="")
