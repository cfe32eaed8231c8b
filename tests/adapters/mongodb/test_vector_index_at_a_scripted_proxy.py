"""Vector search of Atlas, which no server here has: a proxy before the emulator takes its part, message by message.

It checks what the adapter asks by the rules of
https://www.mongodb.com/docs/vector-search/query/aggregation-stages/vector-search-stage/
and answers from the emulator's documents, but those that the index "does not have yet".
"""

import random
import time

import pytest
from bson.timestamp import Timestamp
from real_mongodb import MongoDBProxy

from lamina.domain.filters import And, MemoryFilter, Not, Or, Where
from lamina.domain.scope import Scope
from lamina.errors import ConfigError
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, memory, put

DIMENSIONS = 4
FILTERS = ["tenant", "owner", "namespace", "layer", "ends", "tags", "tokens", "relevance", "confidence"]
FILTERS += ["created", "updated", "dims"]
OPERATORS = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$and", "$or", "$nor"}
REFUSED = {"ok": 0.0, "code": 9, "codeName": "FailedToParse"}


class VectorSearchProxy:
    """Before a proxy's server: an index `near_vectors`, its state, and what it was asked."""

    def __init__(self, proxy: MongoDBProxy) -> None:
        self.url = proxy.url
        self.asked = []
        self.native_products = 0
        self.version = None
        self.status = "READY"
        self.names = ["near_vectors"]
        self.lacking = []
        """Ids that the index does not have yet."""
        self.outdated = []
        """Ids for which the index has other values than the collection."""
        proxy.command = self.command

    def command(self, command):
        if "buildInfo" in command or "buildinfo" in command:
            return self.version and {"ok": 1.0, "version": "8.3.0", "versionArray": self.version}
        for document in command.get("documents", ()) if "insert" in command else ():
            if document.get("written") == Timestamp(0, 0):  # as a server of MongoDB does, and the emulator does not
                document["written"] = Timestamp(int(time.time()), 1)
        return self.pipeline(command) if "aggregate" in command and command["pipeline"] else None

    def pipeline(self, command):
        stages = command["pipeline"]
        if any("$vectorSearch" in stage for stage in stages[1:]):
            return {**REFUSED, "errmsg": "$vectorSearch is only valid as the first stage in a pipeline"}
        if "$listSearchIndexes" in stages[0]:
            return self.described(stages[0]["$listSearchIndexes"]["name"])
        if "$vectorSearch" in stages[0]:
            asked = stages[0]["$vectorSearch"]
            self.asked.append(asked)
            wrong = self.wrong_in(asked)
            if wrong:
                return {**REFUSED, "errmsg": wrong}
            command["pipeline"] = [*self.ranked(asked), *stages[1:]]
        for stage in command["pipeline"]:
            score = stage.get("$project", {}).get("score")
            if isinstance(score, dict) and "$similarityDotProduct" in score:
                self.native_products += 1
                stage["$project"]["score"] = product(score["$similarityDotProduct"][1])
        return None

    def described(self, name):
        fields = [{"type": "vector", "path": "near", "numDimensions": DIMENSIONS, "similarity": "dotProduct"}]
        fields += [{"type": "filter", "path": path} for path in FILTERS]
        index = {"id": "1", "name": name, "type": "vectorSearch", "status": self.status}
        index |= {"queryable": self.status != "BUILDING", "latestDefinition": {"fields": fields}}
        found = [index] if name in self.names else []
        return {"ok": 1.0, "cursor": {"id": 0, "ns": "lamina.memories", "firstBatch": found}}

    def wrong_in(self, asked):
        if len(asked["queryVector"]) != DIMENSIONS:
            return "vector field is indexed with another number of dimensions"
        if not 1 <= asked["limit"] <= asked["numCandidates"] <= 10_000:
            return "numCandidates must be from limit to 10000"
        return wrong_in_filter(asked["filter"])

    def ranked(self, asked):
        admitted = {"$or": [asked["filter"], {"id": {"$in": self.outdated}}]}
        match = {"$and": [admitted, {"dims": DIMENSIONS}, {"id": {"$nin": self.lacking}}]}
        score = {"$set": {"score": product(asked["queryVector"])}}
        return [{"$match": match}, score, {"$sort": {"score": -1}}, {"$limit": asked["limit"]}]


def product(vector):
    return {"$add": [{"$multiply": [{"$arrayElemAt": ["$near", at]}, each]} for at, each in enumerate(vector)]}


def wrong_in_filter(filter):
    for key, value in filter.items():
        if key in {"$and", "$or", "$nor"}:
            wrong = next((each for each in map(wrong_in_filter, value) if each), None)
            if wrong:
                return wrong
        elif key not in FILTERS:
            return f"Path '{key}' needs to be indexed as filter"
        elif isinstance(value, dict) and not value.keys() <= OPERATORS:
            return f"operators {sorted(value)} are not supported"
        elif isinstance(value, dict) and any(value.get(name) == [] for name in ("$in", "$nin")):
            return "cannot be empty"
    return None


@pytest.fixture
def atlas(mongodb_proxy):
    return VectorSearchProxy(mongodb_proxy)


@pytest.fixture
async def indexed(atlas, mongodb, mongodb_table, opened):
    adapter = opened(atlas.url, table=mongodb_table, vector_index="near_vectors")
    await adapter.initialize()
    await put(
        adapter,
        memory("m1", embedding=[1.0, 0.0, 0.0, 0.0], metadata={"kind": "fact", "n": 1}, tags=["red"]),
        memory("m2", embedding=[1.0, 1.0, 0.0, 0.0], metadata={"kind": "event", "n": 2}),
        memory("m3", embedding=[0.0, 1.0, 0.0, 0.0], metadata={"kind": "fact", "n": 3}),
        memory("bobs", embedding=[1.0, 0.0, 0.0, 0.0], owner="bob"),
        memory("zero", embedding=[0.0, 0.0, 0.0, 0.0]),
        memory("bare"),
    )
    let_settle(mongodb, mongodb_table)
    return adapter


def let_settle(mongodb, table):
    """As if all that is there had been written long ago, so that the index alone finds it."""
    with mongodb.client() as client:
        client.lamina[table].update_many({}, {"$set": {"written": Timestamp(1_000_000_000, 1)}})


TOWARDS = [1.0, 0.1, 0.0, 0.0]


async def test_the_index_ranks_and_the_scope_holds_before(atlas, indexed):
    hits = await by_vector(indexed, TOWARDS)
    assert ids(hits) == ["m1", "m2", "m3", "zero"]
    assert [hit.similarity for hit in hits][3] == 0
    [asked] = atlas.asked
    assert asked["index"] == "near_vectors"
    parts = asked["filter"]["$and"]
    assert all(part in parts for part in ({"tenant": "acme"}, {"owner": "ada"}, {"namespace": "notes"}))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Where("kind").eq("fact"), ["m1", "m3"]),
        (Where("kind").ne("fact"), ["m2"]),
        (Where("kind").is_in(["event", "none"]), ["m2"]),
        (Where("kind").not_in(["event"]), ["m1", "m3"]),
        (Where("kind").exists(False), ["zero"]),
        (Not(Or((Where("n").eq(1), Where("n").exists(False)))), ["m2", "m3"]),
        (And((Where("n").contains(1), Where("n").eq(1))), []),
    ],
)
async def test_conditions_that_the_index_knows_hold_before_it_ranks(atlas, indexed, where, found):
    assert ids(await by_vector(indexed, TOWARDS, MINE, MemoryFilter(now=NOW, where=where))) == found
    assert len(atlas.asked) == 1


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Where("n").gte(2), ["m2", "m3"]),
        (Where("kind").contains("ac"), ["m1", "m3"]),
        (Not(Where("n").lt(3)), ["m3", "zero"]),
        (Or((Where("kind").is_in([]), Where("n").eq(2))), ["m2"]),
        (And(()), ["m1", "m2", "m3", "zero"]),
        (Where("n").not_in([]), ["m1", "m2", "m3"]),
    ],
)
async def test_conditions_that_the_index_does_not_know_are_compared_exactly(atlas, indexed, where, found):
    assert ids(await by_vector(indexed, TOWARDS, MINE, MemoryFilter(now=NOW, where=where))) == found
    assert atlas.asked == []


async def test_every_other_condition_is_one_of_the_index(atlas, indexed):
    filter = MemoryFilter(
        now=NOW,
        layers=frozenset({memory().layer}),
        tags=("red",),
        tags_any=("red", "blue"),
        min_relevance=0.1,
        min_confidence=0.1,
        created_before=NOW.replace(year=2100),
        updated_before=NOW.replace(year=2100),
        has_embedding=True,
    )
    assert ids(await by_vector(indexed, TOWARDS, Scope("acme", "ada", "notes", include_shared=True), filter)) == ["m1"]
    assert len(atlas.asked) == 1
    assert await by_vector(indexed, TOWARDS, MINE, MemoryFilter(now=NOW, has_embedding=False)) == []


async def test_what_was_just_written_is_found_though_the_index_lags(atlas, indexed):
    atlas.lacking = ["m3", "new"]
    await put(indexed, memory("new", embedding=TOWARDS))
    await indexed.update(MINE, "m3", {"embedding": [1.0, 0.2, 0.0, 0.0]})
    assert ids(await by_vector(indexed, TOWARDS, limit=3)) == ["new", "m3", "m1"]
    assert len(atlas.asked) == 1


async def test_what_was_written_long_ago_comes_from_the_index_alone(atlas, indexed):
    atlas.lacking = ["m1"]
    assert ids(await by_vector(indexed, TOWARDS)) == ["m2", "m3", "zero"]


async def test_what_the_index_still_has_and_the_collection_has_not_is_not_found(atlas, indexed):
    atlas.outdated = ["bobs", "m1", "m2"]
    await indexed.update(MINE, "m1", {"tags": ["blue"]})
    await indexed.delete(MINE, "m2")
    red = MemoryFilter(now=NOW, tags=("red",))
    assert await by_vector(indexed, TOWARDS, MINE, red) == []
    assert ids(await by_vector(indexed, TOWARDS)) == ["m1", "m3", "zero"]


@pytest.mark.parametrize("status", ["STALE", "BUILDING", "FAILED", "DOES_NOT_EXIST"])
async def test_an_index_that_does_not_follow_the_collection_is_not_asked(atlas, indexed, status):
    atlas.status = status
    assert ids(await by_vector(indexed, TOWARDS)) == ["m1", "m2", "m3", "zero"]
    assert atlas.asked == []


async def test_what_the_index_cannot_answer_is_compared_exactly(atlas, indexed):
    assert sorted(ids(await by_vector(indexed, [0.0] * 4))) == ["m1", "m2", "m3", "zero"]
    assert len(await by_vector(indexed, TOWARDS, limit=1_000)) == 4
    other = Scope("other")
    await put(indexed, memory(tenant="other", embedding=[1.0, 0.0]))
    assert len(await by_vector(indexed, [1.0, 0.0], other)) == 1
    assert atlas.asked == []


async def test_the_index_and_the_exact_ranking_agree(atlas, indexed, mongodb, mongodb_table, opened):
    seeded = random.Random(7)
    vectors = [[seeded.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(200)]
    await indexed.store_many(MINE, [memory(f"v{at}", embedding=vector) for at, vector in enumerate(vectors)])
    let_settle(mongodb, mongodb_table)
    exact = opened(mongodb.url, table=mongodb_table)
    await exact.initialize()
    for query in vectors[:5]:
        by_index = await by_vector(indexed, query, limit=10)
        by_all = await by_vector(exact, query, limit=10)
        assert ids(by_index) == ids(by_all)
        assert [hit.similarity for hit in by_index] == [hit.similarity for hit in by_all]
    assert len(atlas.asked) == 5


async def test_a_server_that_multiplies_vectors_is_left_to_it(atlas, mongodb_table, opened):
    atlas.version = [8, 3, 0, 0]
    adapter = opened(atlas.url, table=mongodb_table)
    await adapter.initialize()
    await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m2", embedding=[0.0, 1.0]))
    assert ids(await by_vector(adapter, [0.1, 1.0], MINE, LIVE)) == ["m2", "m1"]
    assert atlas.native_products == 1


async def test_an_index_that_is_not_there_is_said_to_be_missing(atlas, mongodb, mongodb_table, opened):
    atlas.names = []
    with pytest.raises(ConfigError, match="not among the collection's indexes"):
        await opened(atlas.url, table=mongodb_table, vector_index="near_vectors").initialize()
    with pytest.raises(ConfigError, match="no vector search indexes"):
        await opened(mongodb.url, table=mongodb_table, vector_index="near_vectors").initialize()
