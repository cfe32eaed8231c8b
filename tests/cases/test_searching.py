"""What is searched for is data: in every mode, on every store, through every interface, in every script."""

from __future__ import annotations

import pytest

from lamina.domain.recall import Leg, Reason
from lamina.errors import InvalidInput, ProviderUnavailable
from lamina.testing import HashingEmbedder

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)

NOTES = {
    "lamp": "the harbour-lamp bracket is cracked",
    "shipped": 'status: shipped, he said "later, so the repair waits or not',
    "refund": "ping @tomas_k about 50% refund #q4, where a=b and why?",
    "order": "order zx-blue-77 was added",
    "map": "路線図は灯台の隣の壁に貼った",
    "meeting": "会议改到周五",
    "korean": "오늘 회의는 세시로 옮겼다",
    "vietnamese": "Nguyễn đến lúc 3h",
    "decomposed": "chie\u0302\u0301c be\u0302\u0323nh vie\u0323\u0302n mo\u031b\u0301i",
    "thai": "น้ำแข็งอยู่ในตู้",
    "hindi": "किताब मेज़ पर है",
    "persian": "کتاب روی میز",
    "right to left": "\u200fהפגישה \u202bמחר\u202c בתשע",
    "marks": "the end mark is <|endoftext|>, then <|im_start|>",
}

QUERIES = [
    ("lamp", "harbour-lamp"),
    ("lamp", "-bracket"),
    ("shipped", "status: shipped"),
    ("shipped", 'he said "later'),
    ("shipped", "repair OR"),
    ("shipped", "NOT repair AND"),
    ("refund", "@tomas_k"),
    ("refund", "50%"),
    ("refund", "#q4"),
    ("refund", "refund why?"),
    ("order", "zx-blue-77 add"),
    ("map", "路線図"),
    ("map", "灯台の隣"),
    ("meeting", "周五"),
    ("meeting", "五"),
    ("korean", "회의"),
    ("korean", "세시"),
    ("vietnamese", "Nguye\u0302\u0303n"),
    ("vietnamese", "nguyen den"),
    ("decomposed", "bệnh viện mới"),
    ("thai", "น้ำ"),
    ("hindi", "किताब"),
    ("persian", "كتاب"),
    ("right to left", "הפגישה"),
    ("marks", "<|endoftext|>"),
]


@pytest.mark.case("B01", "B02", "B04", "B07", "B10", "B11", "B13", "B14", "B16", "B17")
@EVERYWHERE
@pytest.mark.parametrize("embedding", ["hashed", "none"])
async def test_each_query_finds_its_note_first_and_as_it_was_stored(open_engine, place, embedding):
    engine = await open_engine(**place, **({"embedding": "none"} if embedding == "none" else {}))
    await engine.store_many([{"content": content, "id": id} for id, content in NOTES.items()])
    for id, query in QUERIES:
        modes = ("hybrid", "text") if embedding == "hashed" else (None,)
        for mode in modes:
            found = await engine.recall(query, mode=mode, limit=3)
            assert (found[0].entry.id, found[0].entry.content) == (id, NOTES[id]), (query, mode)


@pytest.mark.case("B16")
@EVERYWHERE
async def test_a_mark_that_makes_another_word_is_not_passed_over(engine):
    await engine.store(NOTES["thai"])
    assert await engine.recall("นำ", mode="text") == []


@pytest.mark.case("B01", "B02", "B04", "B22")
async def test_each_query_finds_its_note_through_every_interface(kernel, http, tools):
    asked = [(id, query) for id, query in QUERIES if id in ("lamp", "shipped", "refund", "marks", "meeting", "korean")]
    await kernel.memory_engine.store_many([{"content": NOTES[id], "owner": "ann"} for id in {id for id, _ in asked}])
    for id in {id for id, _ in asked}:
        await kernel.rag.ingest(NOTES[id], f"{id}.md", owner="ann")
    await kernel.packs.create("notes", "user", owner="ann")
    await kernel.packs.add_many("notes", [NOTES[id] for id in {id for id, _ in asked}], owner="ann")
    async with tools() as call:
        for id, query in asked:
            note = NOTES[id]
            answer = await http.post("/v1/memories/recall", json={"query": query, "owner": "ann", "mode": "text"})
            assert answer.json()["data"][0]["memory"]["content"] == note, query
            answer = await http.post("/v1/documents/retrieve", json={"query": query, "owner": "ann", "mode": "text"})
            assert answer.json()["data"][0]["content"] == note, query
            found = await kernel.packs.retrieve(["notes"], query=query, mode="text", owner="ann")
            assert found[0].memory.content == note, query
            assert note in str((await call("search_memories", query=query))["results"][0]), query


@pytest.mark.case("B05")
@EVERYWHERE
@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
async def test_a_blank_question_is_refused_and_a_blank_query_lists(engine, blank):
    id = await engine.store("the harbour lamp")
    with pytest.raises(InvalidInput, match="query"):
        await engine.recall(blank)
    assert [entry.id for entry in await engine.query(blank)] == [id]


@pytest.mark.case("B05")
@EVERYWHERE
@pytest.mark.parametrize("signs", ["***", '""', '"', "--", "?!"])
async def test_a_question_of_signs_alone_has_no_answer_in_words(engine, signs):
    await engine.store("the harbour lamp")
    assert await engine.recall(signs, mode="text") == []


@pytest.mark.case("B05")
async def test_a_blank_question_is_refused_through_every_interface(http, tools):
    for route in ("memories/recall", "documents/retrieve"):
        answer = await http.post(f"/v1/{route}", json={"query": "  "})
        assert (answer.status_code, "query" in answer.text) == (422, True), route
    async with tools() as call:
        with pytest.raises(AssertionError, match="query"):
            await call("search_memories", query="  ")


@pytest.mark.case("B07")
@pytest.mark.parametrize("place", ["memory", "sqlite"], indirect=True)
async def test_a_leg_that_cannot_answer_is_named_and_the_other_answers(open_engine, place):
    class Down(HashingEmbedder):
        async def embed_query(self, text):
            raise ProviderUnavailable("The embedder", "it is down")

    engine = await open_engine(**place, embed=Down())
    await engine.store(NOTES["order"])
    found = await engine.recall("zx-blue-77 add")
    assert [hit.entry.content for hit in found] == [NOTES["order"]]
    assert [(mark.leg, mark.reason) for mark in found.degraded] == [(Leg.VECTOR, Reason.EMBEDDER_FAILED)]


@pytest.mark.case("B08")
@EVERYWHERE
@pytest.mark.parametrize(
    "name", ["6f0c1c1e-22aa-4b1e-9d7e-0a1b2c3d4e5f", "a b", 'o"brien', "x' OR 1=1 --", "team:1/a%_", "名前", "*"]
)
async def test_every_name_that_is_accepted_is_searched_by(engine, name):
    id = await engine.store("the harbour lamp", owner=name, namespace=name, tags=[name], metadata={name: name})
    await engine.store("the harbour lamp", owner="other")
    given = {"owner": name, "namespace": name, "tags": [name]}
    for mode in ("hybrid", "text", "vector"):
        assert [hit.entry.id for hit in await engine.recall("lamp", mode=mode, **given)] == [id]
    assert [entry.id for entry in await engine.query(**given)] == [id]
    assert await engine.count(**given) == 1
    assert await engine.forget_where(**given) == 1
