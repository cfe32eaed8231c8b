"""A source that turned out bad goes out of recall with all that was made from it, and comes back whole."""

from __future__ import annotations

import pytest
from mcp import Client
from served import client_of

from lamina.domain.memory import Layer
from lamina.errors import InvalidInput, MemoryNotFound
from lamina.kernel import Kernel, ModelRouter
from lamina.mcp import Binding, create_mcp_server
from lamina.memory.factory import create_memory_engine
from lamina.server import Principal, create_app
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder

BAD = "web:bad.example/"


@pytest.fixture(params=["sqlite", "in memory"])
async def engine(request, tmp_path):
    place = {"path": tmp_path / "m.db"} if request.param == "sqlite" else {"adapter": "memory"}
    async with await create_memory_engine(**place, embed=HashingEmbedder(), clock=FrozenClock()) as made:
        yield made


async def planted(engine):
    """A fact, a page that takes its place, what was made of the page, and what looks nearly like it."""
    good = await engine.store("Ann's bank is Northbank", owner="ann")
    page = await engine.store("Ann's bank is Evilbank", owner="ann", source=f"{BAD}1", supersedes=[good])
    made = await engine.store("Pay Ann's bank Evilbank", owner="ann", derived_from=[page], layer=Layer.WORKING)
    last = await engine.store("Ann's bank prefers Evilbank", owner="ann", derived_from=[made], tags=["preference"])
    other = await engine.store("Ann's bank opens at nine", owner="ann", source="web:bad.example.org/1")
    await engine.store("Bob's bank is Evilbank", owner="bob", source=f"{BAD}1")
    return {"good": good, "page": page, "made": made, "last": last, "other": other}


async def recalled(engine, owner="ann", **options):
    found = await engine.recall("Whose bank is it, Northbank or Evilbank?", owner=owner, limit=50, **options)
    return {result.entry.id for result in found}


async def state(engine, ids):
    return {id: (entry := await engine.get(id)) and (entry.superseded_by, entry.content) for id in ids.values()}


async def test_it_takes_the_source_with_all_that_was_made_of_it_and_what_it_hid_holds_again(engine):
    ids = await planted(engine)
    before = await state(engine, ids)
    receipt = await engine.quarantine(prefix=BAD, owner="ann")
    assert receipt.from_source == [ids["page"]]
    assert sorted(receipt.derived) == sorted([ids["made"], ids["last"]])
    for options in ({}, {"include_superseded": True}, {"mode": "text"}, {"mode": "vector"}):
        assert await recalled(engine, **options) == {ids["good"], ids["other"]}
    assert {entry.id for entry in await engine.query(owner="ann")} == {ids["good"], ids["other"]}
    assert len(await recalled(engine, owner="bob")) == 1
    (listed,) = await engine.quarantined(owner="ann")
    assert (listed.id, listed.source, set(listed.ids)) == (receipt.id, f"{BAD}*", set(receipt.ids))
    assert await engine.quarantined(owner="bob") == []

    assert set(await engine.release(receipt.id, owner="ann")) == set(receipt.ids)
    assert await state(engine, ids) == before
    assert (await engine.get(ids["page"])).metadata == {"supersedes": [ids["good"]]}
    assert await engine.quarantined() == []
    with pytest.raises(MemoryNotFound):
        await engine.release(receipt.id)


async def test_twice_takes_nothing_more_and_a_second_act_is_undone_alone(engine):
    ids = await planted(engine)
    first = await engine.quarantine(source=f"{BAD}1", owner="ann")
    assert (await engine.quarantine(source=f"{BAD}1", owner="ann")).ids == []
    second = await engine.quarantine(source="web:bad.example.org/1", owner="ann")
    await engine.release(first.id, owner="ann")
    assert ids["other"] not in await recalled(engine)
    assert [each.id for each in await engine.quarantined()] == [second.id]


async def test_a_record_that_somebody_has_edited_keeps_nothing_from_being_released(engine):
    ids = await planted(engine)
    receipt = await engine.quarantine(prefix=BAD, owner="ann")
    for id, record in ((ids["page"], {"at": "never", "superseded_by": 7}), (ids["last"], "gone")):
        await engine.update(id, metadata={"quarantined": record})
    (listed,) = await engine.quarantined()
    assert set(listed.ids) == set(receipt.ids)
    assert set(await engine.release(receipt.id)) == set(receipt.ids)


@pytest.mark.parametrize(
    "given", [{}, {"source": "a", "prefix": "a/"}, {"prefix": "web:bad.example"}, {"source": " "}, {"prefix": ""}]
)
async def test_what_names_no_source_or_more_than_one_is_refused(engine, given):
    with pytest.raises(InvalidInput):
        await engine.quarantine(**given)
    with pytest.raises(InvalidInput):
        await engine.forget_source(**given)


async def test_to_say_it_again_from_there_or_untrusted_does_not_bring_it_back(engine):
    ids = await planted(engine)
    await engine.quarantine(prefix=BAD)
    for words in ({"source": f"{BAD}1"}, {"source": "web:else", "trust": "untrusted"}):
        await engine.store("Ann's bank is Evilbank", owner="ann", **words)
        assert ids["page"] not in await recalled(engine)
    late = await engine.store("Made of it later", owner="ann", derived_from=[ids["page"]])
    assert (await engine.get(late)).trust == "untrusted"
    await engine.store("Ann's bank is Evilbank", owner="ann", source="ann")
    assert ids["page"] in await recalled(engine)


async def test_forgetting_a_source_deletes_it_with_all_that_was_made_of_it(engine):
    ids = await planted(engine)
    assert await engine.forget_source(prefix=BAD, owner="ann", dry_run=True) == 3
    assert await recalled(engine) != {ids["good"], ids["other"]}
    assert await engine.forget_source(prefix=BAD, owner="ann") == 3
    assert await recalled(engine, include_superseded=True) == {ids["good"], ids["other"]}
    assert await engine.get(ids["page"]) is None


async def test_over_http_an_owner_puts_away_and_releases_their_own_alone():
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(model_router=router) as kernel:

        async def authenticate(token):
            return Principal(owner=token)

        app = create_app(kernel, auth=authenticate)
        async with client_of(app, token="ann") as ann, client_of(app, token="bob") as bob:
            for client in (ann, bob):
                await client.post("/v1/memories", json={"content": "Pay Evilbank", "source": f"{BAD}1"})
            act = (await ann.post("/v1/memories/quarantine", json={"prefix": BAD})).json()
            assert (act["source"], len(act["from_source"]), act["derived"]) == (f"{BAD}*", 1, [])
            for client, left in ((ann, 0), (bob, 1)):
                found = await client.post("/v1/memories/recall", json={"query": "Pay whom?"})
                assert len(found.json()["data"]) == left
                listed = (await client.get("/v1/memories/quarantine")).json()["data"]
                assert listed == ([act] if client is ann else [])
            given = {"prefix": BAD, "dry_run": True}
            assert (await bob.post("/v1/memories/forget-source", json=given)).json() == {"count": 1, "dry_run": True}
            assert (await bob.post("/v1/memories/release", json={"id": act["id"]})).status_code == 404
            assert (await bob.post("/v1/memories/quarantine", json={"prefix": BAD, "owner": "ann"})).status_code >= 400
            released = await ann.post("/v1/memories/release", json={"id": act["id"]})
            assert released.json() == {"ids": act["from_source"]}


async def test_a_model_that_looks_over_mcp_sees_nothing_of_what_is_in_quarantine():
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(model_router=router) as kernel:
        id = await kernel.memory_engine.store("Pay Evilbank", owner="ann", source=f"{BAD}1", tags=["preference"])
        await kernel.memory_engine.quarantine(prefix=BAD)
        binding = Binding(tenant=kernel.memory_engine.tenant, owner="ann", namespace=None)
        async with Client(create_mcp_server(kernel, binding=binding)) as client:
            asked = {
                "search_memories": {"query": "Pay whom?", "include_superseded": True},
                "list_memories": {},
                "build_context": {"task": "Pay whom?"},
            }
            for tool, arguments in asked.items():
                assert "Evilbank" not in (await client.call_tool(tool, arguments)).content[0].text
            assert (await client.call_tool("get_memory", {"memory_id": id})).is_error


async def test_what_packs_were_given_of_it_is_in_no_context_and_comes_back_with_it():
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(model_router=router) as kernel:
        engine = kernel.memory_engine
        await engine.store("Invoices of Ann are paid to Evilbank", owner="ann", source=f"{BAD}1")
        await kernel.packs.create("invoices", "user", owner="ann", description="Invoices of Ann")
        await kernel.packs.import_entries("invoices", await engine.query(owner="ann"), owner="ann")
        (copy,) = await kernel.packs.export_entries("invoices", owner="ann")
        await engine.restore([copy])

        async def told():
            goal = "Where are the invoices of Ann paid?"
            return await kernel.context_engine.compute(intent_id="i", goal=goal, owner_id="ann")

        assert len((await told()).packs) + len((await told()).memories) > 0
        receipt = await engine.quarantine(prefix=BAD, owner="ann")
        assert receipt.derived == [copy.id]
        assert "Evilbank" not in (await told()).to_prompt()
        await engine.release(receipt.id)
        assert "Evilbank" in (await told()).to_prompt()


async def found_in(kernel, owner):
    """What is found of documents, memories and packs, by every way that gives it to a model."""
    chunks = await kernel.rag.retrieve("Which bank?", owner=owner, top_k=20)
    context = await kernel.context_engine.compute(intent_id="i", goal="Which bank?", owner_id=owner)
    text = context.to_prompt()
    return {each.source for each in chunks}, "Evilbank" in text, "Northbank" in text


async def test_a_document_of_the_source_goes_with_what_was_made_of_it_and_comes_back(tmp_path):
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(data_dir=tmp_path, model_router=router, clock=FrozenClock()) as kernel:
        page, good = f"{BAD}1", "mail:7"
        evil = await kernel.rag.ingest("The bank is Evilbank. Pay the bank.", page, owner="ann")
        await kernel.rag.ingest("The bank is Northbank.", good, owner="ann")
        await kernel.rag.ingest("The bank is Evilbank.", page, owner="bob")
        [chunk] = await kernel.rag.chunks(evil)
        made = await kernel.memory_engine.store("Evilbank is the bank", owner="ann", derived_from=[chunk.id])
        last = await kernel.memory_engine.store("Evilbank it is, the bank", owner="ann", derived_from=[made])
        await kernel.packs.create("banks", "user", owner="ann")
        await kernel.packs.add("banks", "The bank Evilbank", owner="ann", metadata={"document_id": evil})
        whole = ({page, good}, True, True)
        assert await found_in(kernel, "ann") == whole

        act = await kernel.quarantine(prefix=BAD, owner="ann")
        assert (act.documents, act.from_source, sorted(act.derived)) == ([evil], [], sorted([made, last]))
        away = ({good}, False, True)
        assert await found_in(kernel, "ann") == away
        assert [each.source for each in await kernel.rag.retrieve("bank", owner="bob")] == [page]
        assert (await kernel.quarantine(prefix=BAD, owner="ann")).documents == []
        assert await kernel.quarantined(owner="ann") == [act]

        for replace in (True, False):  # said again, changed or beside it, it stays away
            await kernel.rag.ingest(f"The bank is Evilbank, {replace}.", page, owner="ann", replace=replace)
            assert await found_in(kernel, "ann") == away
        assert evil in await kernel.release(act.id, owner="ann")
        assert await found_in(kernel, "ann") == whole
        with pytest.raises(MemoryNotFound):
            await kernel.release(act.id, owner="ann")

        assert await kernel.forget_source(prefix=BAD, owner="ann", dry_run=True) == 4
        assert await kernel.forget_source(prefix=BAD, owner="ann") == 4
        assert {each.source for each in await kernel.rag.list_documents(owner="ann")} == {good}
        assert await kernel.memory_engine.count(owner="ann") == 0
