from __future__ import annotations

import asyncio

import pytest

ANN = {"name": "Ann", "entityType": "person", "observations": ["drinks tea", "lives in Izmir"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Ann", "to": "Acme", "relationType": "works_at"}


@pytest.fixture
def graph(connected):
    return lambda **options: connected(profile="knowledge-graph", **options)


async def test_entities_are_created_once_and_those_that_are_new_are_given(graph):
    async with graph() as call:
        assert await call("create_entities", entities=[ANN, ACME, ANN]) == {"entities": [ANN, ACME]}
        again = {**ANN, "observations": ["something else"]}
        assert await call("create_entities", entities=[again]) == {"entities": []}
        assert await call("read_graph") == {"entities": [ANN, ACME], "relations": []}


async def test_relations_need_both_ends_and_are_created_once(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN])
        assert "there is no entity 'Acme'" in await call.refused("create_relations", relations=[WORKS])
        await call("create_entities", entities=[ACME])
        assert await call("create_relations", relations=[WORKS, WORKS]) == {"relations": [WORKS]}
        assert await call("create_relations", relations=[WORKS]) == {"relations": []}


async def test_observations_are_added_and_deleted(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN])
        added = await call(
            "add_observations", observations=[{"entityName": "Ann", "contents": ["drinks tea", "has a cat"]}]
        )
        assert added == {"results": [{"entityName": "Ann", "addedObservations": ["has a cat"]}]}
        told = await call.said(
            "delete_observations",
            deletions=[
                {"entityName": "Ann", "observations": ["drinks tea", "never was"]},
                {"entityName": "Bob", "observations": ["x"]},
            ],
        )
        assert told == "Deleted 1 of 3 observations. No such entities: Bob."
        assert (await call("open_nodes", names=["Ann"]))["entities"][0]["observations"] == [
            "lives in Izmir",
            "has a cat",
        ]


async def test_adding_to_several_entities_adds_to_none_if_one_is_missing(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN])
        told = await call.refused(
            "add_observations",
            observations=[{"entityName": "Ann", "contents": ["new"]}, {"entityName": "Bob", "contents": ["new"]}],
        )
        assert "there is no entity 'Bob'" in told
        assert (await call("read_graph"))["entities"] == [ANN]


async def test_an_entity_may_be_named_twice_in_one_call(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN])
        twice = [{"entityName": "Ann", "contents": ["a", "b"]}, {"entityName": "Ann", "contents": ["b", "c"]}]
        added = (await call("add_observations", observations=twice))["results"]
        assert [each["addedObservations"] for each in added] == [["a", "b"], ["c"]]
        gone = [{"entityName": "Ann", "observations": ["a"]}, {"entityName": "Ann", "observations": ["c"]}]
        assert await call.said("delete_observations", deletions=gone) == "Observations deleted"
        (entity,) = (await call("read_graph"))["entities"]
        assert entity["observations"] == [*ANN["observations"], "b"]


async def test_relations_that_read_the_same_are_refused_and_none_is_made(graph):
    names = ["a", "a b", "b c", "c"]
    async with graph() as call:
        await call(
            "create_entities", entities=[{"name": name, "entityType": "x", "observations": []} for name in names]
        )
        alike = [
            {"from": "a", "to": "c", "relationType": "b"},
            {"from": "a b", "to": "c", "relationType": "to"},
            {"from": "a", "to": "c", "relationType": "b to"},
        ]
        assert "reads exactly the same" in await call.refused("create_relations", relations=alike)
        assert (await call("read_graph"))["relations"] == []
        assert len((await call("create_relations", relations=alike[:2]))["relations"]) == 2


async def test_an_entity_goes_with_its_relations(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN, ACME])
        await call("create_relations", relations=[WORKS])
        done = await call("delete_entities", entityNames=["Acme", "Nobody"])
        assert done == {"success": True, "message": "Deleted 1 of 2 entities. No such entities: Nobody."}
        assert await call("read_graph") == {"entities": [ANN], "relations": []}


async def test_relations_are_deleted(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN, ACME])
        await call("create_relations", relations=[WORKS])
        assert (await call("delete_relations", relations=[WORKS]))["message"] == "Relations deleted"
        assert (await call("delete_relations", relations=[WORKS]))["message"].startswith("Deleted 0 of 1")
        assert (await call("read_graph"))["relations"] == []


async def test_nodes_are_found_by_words_and_shown_with_their_relations(graph):
    async with graph() as call:
        await call("create_entities", entities=[ANN, ACME, {"name": "Zed", "entityType": "robot", "observations": []}])
        await call("create_relations", relations=[WORKS])
        for query in ("izmir", "PERSON", "drinks"):
            found = await call("search_nodes", query=query)
            assert "Ann" in [each["name"] for each in found["entities"]]
            assert found["relations"] == [WORKS]
        assert len((await call("search_nodes", query=""))["entities"]) == 3


async def test_what_the_graph_holds_is_found_by_ordinary_searches_and_the_other_way_round_is_not(connected, graph):
    async with graph() as call, connected() as ordinary:
        await call("create_entities", entities=[ANN, ACME])
        await call("create_relations", relations=[WORKS])
        await ordinary("add_memory", text="Ann likes rain", metadata={"knowledge_graph": {"is": "nonsense"}})
        found = await ordinary("search_memories", query="Who works_at Acme?")
        assert "Ann works_at Acme" in [each["memory"]["text"] for each in found["results"]]
        assert await call("read_graph") == {"entities": [ANN, ACME], "relations": [WORKS]}


async def test_names_are_compared_as_they_are_shown(graph):
    async with graph() as call:
        composed, apart = "Ren\u00e9 M", "Rene\u0301  M "
        await call("create_entities", entities=[{"name": composed, "entityType": "x", "observations": []}])
        made = await call("create_entities", entities=[{"name": apart, "entityType": "x", "observations": []}])
        assert made == {"entities": []}
        assert len((await call("open_nodes", names=[apart]))["entities"]) == 1


async def test_two_things_that_read_the_same_are_refused_and_not_made_one(graph):
    async with graph() as call:
        await call("create_entities", entities=[{"name": "A (b)", "entityType": "c", "observations": ["x - y"]}])
        told = await call.refused(
            "create_entities",
            entities=[
                {"name": "A (b)", "entityType": "c", "observations": []},
                {"name": "A", "entityType": "b) (c", "observations": ["x - y"]},
            ],
        )
        assert "reads exactly the same" in told
        assert [each["name"] for each in (await call("read_graph"))["entities"]] == ["A (b)"]


async def test_graphs_of_two_owners_are_apart(graph):
    async with graph() as ann, graph(owner="bob") as bob:
        await ann("create_entities", entities=[ANN])
        assert await bob("read_graph") == {"entities": [], "relations": []}
        assert await bob("create_entities", entities=[{**ANN, "observations": []}]) == {
            "entities": [{**ANN, "observations": []}]
        }
        await bob("delete_entities", entityNames=["Ann"])
        assert (await ann("read_graph"))["entities"] == [ANN]


async def test_changes_at_once_lose_nothing(graph):
    async with graph() as call:
        made = await asyncio.gather(*(call("create_entities", entities=[ANN]) for _ in range(5)))
        assert sum(len(each["entities"]) for each in made) >= 1
        await asyncio.gather(
            *(
                call("add_observations", observations=[{"entityName": "Ann", "contents": [f"fact {each}"]}])
                for each in range(10)
            )
        )
        (entity,) = (await call("read_graph"))["entities"]
        assert sorted(entity["observations"]) == sorted(ANN["observations"] + [f"fact {each}" for each in range(10)])


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("create_entities", {"entities": [{"name": "A", "type": "b", "observations": []}]}, "entityType is missing"),
        ("create_entities", {"entities": [{**ANN, "name": " "}]}, "entities.0.name"),
        ("create_relations", {"relations": [{"source": "a", "to": "b", "relationType": "c"}]}, "from is missing"),
        ("search_nodes", {"query": "x" * 2049}, "at most 2048"),
        ("read_graph", {"owner": "bob"}, "owner is not known"),
    ],
)
async def test_what_cannot_be_taken_is_refused(graph, tool, arguments, told):
    async with graph() as call:
        assert told in await call.refused(tool, **arguments)
