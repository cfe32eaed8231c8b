"""Whatever is asked of an adapter, in whatever order, it does what the reference does.

The reference is the adapter for this process's memory, which takes filters, words and cosines straight from the
domain. Both are told the same, step by step, and must answer the same; after each write all that is there is compared.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

import numpy as np
import pytest
from fake_pinecone import API_KEY
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from mutants.changing import RevisionsSkip
from mutants.scoping import NamesAreNormalised
from real_dynamodb import KEYS
from services import IN_CI

from lamina.adapters.dynamodb import DynamoDBAdapter
from lamina.adapters.firestore import FirestoreAdapter
from lamina.adapters.in_memory import InMemoryAdapter
from lamina.adapters.mongodb import MongoDBAdapter
from lamina.adapters.pinecone import PineconeAdapter
from lamina.adapters.postgres import PostgresAdapter
from lamina.adapters.qdrant import QdrantAdapter
from lamina.adapters.redis import RedisAdapter
from lamina.adapters.sqlite import SqliteAdapter
from lamina.adapters.supabase import SupabaseAdapter
from lamina.adapters.turso import TursoAdapter
from lamina.adapters.weaviate import WeaviateAdapter
from lamina.domain.filters import And, Expiry, MemoryFilter, Not, Or, Where
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import content_digest
from lamina.errors import LaminaError, Unsupported
from lamina.ports.memory_adapter import Capability, ListOptions, MemoryAdapter, Order, SearchHit, SearchOptions, Update
from lamina.testing.memory_contract.material import fields_of, second

THOROUGHNESS: Final = settings(
    max_examples=10,
    stateful_step_count=20,
    derandomize=IN_CI,  # so that a run there depends on nothing but the code; elsewhere each run asks for other things
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

# What the requests are made of: names, texts and numbers that backends would like to read in their own way.

NAMES: Final = ("a", "a_", "a%", "A", "a:1", "é", "e\u0301", "🦉", "a' OR \"1\"='1", "{a}|-@*\n\\", "a" * 512)
KEYS_OF_METADATA: Final = ("a", "a.b", "", "$a", "é", "a'\"]", "_id")
NUMBERS: Final = (0, 1, 1.0, -0.0, 0.1, 2**63 - 1, -(2**63), 2.0**63, 1e308, 5e-324)
VALUES: Final = (None, True, False, "", "a", "é", "1", *NUMBERS)
# Where two have one direction, their lengths differ by powers of two: so they tie to the last bit, and go by id.
DIRECTIONS: Final = (
    [1.0, 0.0],
    [2.0, 0.0],
    [0.0, 1.0],
    [-1.0, 0.0],
    [0.5, 0.75],
    [0.0, 0.0],
    [1e38, -3e38],
    [0, 2.0**-100],
)
INSTANTS: Final = tuple(map(second, (-1e9, 0, 1, 2, 3.000001, 1e9)))
CONTENTS: Final = (
    "the harbour lamp is lit",
    "the  harbour lamp\nis lit ",  # which says the same
    "The Harbour lamp is LIT",
    "lamps, harbours and 'quotes' {of} \"all\" | kinds*",
    "é is e\u0301 here",
    "港口的灯亮着 🦉",
    "%s_%d\\n -- /* ;",
)
QUERIES: Final = ("harbour", "LAMPS lit", "e\u0301", "港口", 'kinds* | {of} -- "all', "% _", "🦉", "nothing of it")
ANYTHING: Final = MemoryFilter(now=INSTANTS[1], expiry=Expiry.ANY)

names, values, keys, instants = map(st.sampled_from, (NAMES, VALUES, KEYS_OF_METADATA, INSTANTS))
contents, layers, limits = map(st.sampled_from, (CONTENTS, Layer, (1, 2, 3, 100, 10**9)))
units = st.sampled_from((0.0, 0.1, 0.3, 0.1 + 0.2, 1.0))
vectors = st.sampled_from([*DIRECTIONS, *(np.array(each, dtype=np.float32) for each in DIRECTIONS)])
lists_of_tags = st.lists(st.sampled_from(("a", "A", "é", "e\u0301", "a,b", "{a}", "*", "x" * 300)), max_size=3)
metadata = st.dictionaries(keys, values | st.lists(values, max_size=3) | st.dictionaries(keys, values, max_size=2))
some_day = st.sampled_from((None, None, None, *INSTANTS))
# Few ids and places, so that requests meet.
IDS: Final = NAMES[:6]
ids, owners, namespaces = map(st.sampled_from, (IDS, ("a", "a", "a_", "A"), ("é", "é", "e\u0301")))
tenants = st.sampled_from(("a", "a", "a", "a", "a_", "A"))
scopes = st.builds(Scope, tenants, st.none() | owners, st.none() | namespaces, st.booleans())


def called(*methods: str, on: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Comparisons of `Where` by one of these methods."""
    paths = st.lists(keys.filter(bool), min_size=1, max_size=2)
    return st.builds(lambda path, name, value: getattr(Where(path), name)(value), paths, st.sampled_from(methods), on)


comparisons = st.one_of(
    called("eq", "ne", "contains", on=values),
    called("gt", "gte", "lt", "lte", on=st.sampled_from((*NUMBERS, "", "a", "é"))),
    called("is_in", "not_in", on=st.lists(values, max_size=3)),
    called("exists", on=st.booleans()),
)
pairs = st.lists(comparisons, max_size=2).map(tuple)
CONDITIONS: Final = {
    "where": st.one_of(comparisons, comparisons.map(Not), pairs.map(And), pairs.map(Or), pairs.map(Or).map(Not)),
    "layers": st.frozensets(layers),
    "tags": lists_of_tags.map(tuple),
    "tags_any": lists_of_tags.map(tuple),
    "min_relevance": units,
    "min_confidence": units,
    "created_before": instants,
    "updated_before": instants,
    "has_embedding": st.booleans(),
}
condition = st.one_of([each.map(partial(lambda name, value: (name, value), name)) for name, each in CONDITIONS.items()])
filters = st.builds(
    lambda now, expiry, few: MemoryFilter(now=now, expiry=expiry, **dict(few)),
    instants,
    st.sampled_from((Expiry.ANY, Expiry.ANY, *Expiry)),
    st.just([]) | st.lists(condition, max_size=2),  # with more, nothing would be left
)
FIELDS: Final = {
    "content": contents,
    "layer": layers,
    "tags": lists_of_tags,
    "metadata": metadata,
    "relevance": units,
    "confidence": units,
    "expires_at": some_day,
    "embedding": st.none() | vectors,
    "updated_at": instants,
    "occurred_at": some_day,
    "source": st.none() | names,
    "derived_from": st.lists(names, max_size=2),
}
entries = st.builds(
    MemoryEntry,
    id=ids,
    owner=owners,
    namespace=namespaces,
    created_at=instants,
    revision=st.sampled_from((1, 1, 5)),
    base_relevance=units,
    **FIELDS,
)
updates = st.builds(Update, ids, st.fixed_dictionaries({}, optional=FIELDS).filter(bool), st.none() | st.integers(1, 3))
metas = st.none() | st.sampled_from(NAMES[:3])
expected_metas = st.none() | st.dictionaries(st.sampled_from(NAMES[:2]), metas, max_size=2)


class SideBySide(RuleBasedStateMachine):
    """The adapter and the reference; each run keeps to tenants of its own."""

    adapter: MemoryAdapter
    wait: Callable[..., Any]
    runs = count()

    def __init__(self) -> None:
        super().__init__()
        self.reference = InMemoryAdapter()
        self.run = next(self.runs)

    @initialize(batch=st.lists(entries, min_size=6, max_size=12))
    def begin(self, batch):
        self.write("store_many", Scope("a"), self.within(Scope("a"), batch))

    # Writes

    @rule(scope=scopes, entry=entries)
    def store(self, scope, entry):
        self.write("store", scope, *self.within(scope, [entry]))

    @rule(scope=scopes, entry=entries)
    def store_a_vector_of_another_length(self, scope, entry):
        """Which is fine where the tenant has no others. It does not stay: in batches, adapters may be stricter."""
        self.both("store", self.mine(scope), *self.within(scope, [entry.replace(id="another", embedding=[1.0] * 3)]))
        self.write("delete", Scope(scope.tenant), "another")

    @rule(scope=scopes, batch=st.lists(entries, max_size=4), if_new=st.booleans(), expected=expected_metas)
    def store_many(self, scope, batch, if_new, expected):
        self.write("store_many", scope, self.within(scope, batch), if_new=if_new, expected_meta=expected)

    @rule(scope=scopes, update=updates)
    def update(self, scope, update):
        self.write("update", scope, update.id, update.changes, expected_revision=update.expected_revision)

    @rule(scope=scopes, batch=st.lists(updates, max_size=4), expected=expected_metas)
    def update_many(self, scope, batch, expected):
        self.write("update_many", scope, batch, expected_meta=expected)

    @rule(scope=scopes, batch=st.lists(ids, max_size=3), filter=st.none() | filters)
    def delete_many(self, scope, batch, filter):
        self.write("delete_many", scope, batch, filter=filter)

    @rule(scope=scopes, batch=st.lists(ids, max_size=4), now=instants)
    def touch(self, scope, batch, now):
        self.write("touch", scope, batch, now)

    @rule(scope=scopes)
    def drop_embeddings(self, scope):
        self.write("drop_embeddings", scope)

    @rule(scope=scopes, key=names, value=st.sampled_from(NAMES[:3]), expected=metas)
    def save_meta(self, scope, key, value, expected):
        self.write("save_meta", scope, key, value, INSTANTS[1], expected=expected)
        self.both("load_meta", self.mine(scope), key)

    @rule()
    def reopen(self):
        self.wait(self.adapter.close())
        self.wait(self.adapter.initialize())

    # Reads

    @rule(scope=scopes)
    def get(self, scope):
        for id in IDS:
            self.both("get", self.mine(scope), id)
            if Capability.HISTORY in self.adapter.capabilities:
                self.both("history", self.mine(scope), id)

    @rule(scope=scopes, filter=filters, limit=limits, offset=st.integers(0, 3), order=st.sampled_from(Order))
    def page(self, scope, filter, limit, offset, order):
        for where in (scope, Scope(scope.tenant)):
            options = ListOptions(scope=self.mine(where), filter=filter, limit=limit, offset=offset, order=order)
            self.both("list", options)
            self.both("count", options.scope, filter)

    @rule(scope=scopes, filter=filters, limit=limits, number=st.integers(0, 5))
    def page_after(self, scope, filter, limit, number):
        """What comes after the first so many of the tenant: their numbers are each adapter's own."""
        everything = ListOptions(scope=self.mine(Scope(scope.tenant)), filter=ANYTHING, limit=100)

        async def page(adapter: MemoryAdapter) -> Any:
            seqs = [each.seq for each in await adapter.list(everything)]
            assert seqs == sorted(set(seqs))
            after = seqs[number] if number < len(seqs) else 2**63 - 1
            return await adapter.list(ListOptions(scope=self.mine(scope), filter=filter, limit=limit, after=after))

        self.compare(page, filter, number)

    @rule(scope=scopes, layer=layers, now=instants, batch=st.lists(entries, max_size=3))
    def find_what_says_the_same(self, scope, layer, now, batch):
        for content in CONTENTS:
            self.both("find_duplicate", self.mine(scope), layer, content_digest(content), now)
        self.both("find_twins", self.mine(scope), self.within(scope, batch))

    @rule(
        scope=scopes, filter=filters, limit=limits, vector=vectors, words=st.sampled_from(QUERIES), shown=st.booleans()
    )
    def search(self, scope, filter, limit, vector, words, shown):
        everywhere = Scope(scope.tenant)
        for where, which in ((scope, filter), (everywhere, filter), (everywhere, ANYTHING)):
            options = SearchOptions(scope=self.mine(where), filter=which, limit=limit, include_embeddings=shown)
            if Capability.VECTOR in self.adapter.capabilities:
                self.both("search_by_vector", vector, options)
            if Capability.TEXT in self.adapter.capabilities:
                self.both("search_by_text", words, replace(options, limit=10**9))
                self.both("term_statistics", options.scope, ["lamp", "é", "nothing"], filter.now)

    # How both are told, and compared

    def mine(self, scope: Scope) -> Scope:
        return replace(scope, tenant=f"{self.run} {scope.tenant}")

    def within(self, scope: Scope, batch: list[MemoryEntry]) -> list[MemoryEntry]:
        """The entries where the scope lets them be stored."""
        fixed = {name: getattr(self.mine(scope), name) for name in ("tenant", "owner", "namespace")}
        fixed = {name: value for name, value in fixed.items() if value is not None}
        return [entry.replace(**fixed) for entry in batch]

    def write(self, deed: str, scope: Scope, *arguments: Any, **options: Any) -> None:
        self.both(deed, self.mine(scope), *arguments, **options)
        whole = self.mine(Scope(scope.tenant))
        self.both("list", ListOptions(scope=whole, filter=ANYTHING, limit=100, include_embeddings=True))

    def both(self, deed: str, *arguments: Any, **options: Any) -> None:
        def done(adapter: MemoryAdapter) -> Any:
            return getattr(adapter, deed)(*copy.deepcopy(arguments), **copy.deepcopy(options))

        self.compare(done, deed, *arguments, options)

    def compare(self, work: Callable[[MemoryAdapter], Any], *told: Any) -> None:
        ours = self.outcome(work(self.adapter))
        if ours is Unsupported:
            filter = next(getattr(each, "filter", each) for each in told if "MemoryFilter" in repr(each))
            assert self.adapter.filter_gap(filter.where)
            return
        assert ours == self.outcome(work(self.reference)), told

    def outcome(self, answer: Any) -> Any:
        try:
            return plain(self.wait(answer))
        except LaminaError as error:
            return type(error)


def plain(answer: Any) -> Any:
    """The answer, without what adapters are free to choose."""
    match answer:
        case [SearchHit(), *_]:  # SQLite orders what ties in words by its index's measure before the id
            return sorted(map(plain_hit, answer), key=lambda hit: (-hit[1], hit[0]["id"]))
        case list():
            return [plain(each) for each in answer]
        case MemoryEntry():
            return fields_of(answer)
    return answer


def plain_hit(hit: SearchHit) -> tuple[dict[str, Any], float]:
    return fields_of(hit.entry), round(hit.similarity, 6)


# The adapters, each where its contract runs


Found = Callable[[str], Any]
"""Gives the fixture of that name."""


def on_pinecone(found: Found, table: str) -> PineconeAdapter:
    service = found("pinecone_service")
    if not service.indexes:
        service.create("memories", 32)
    return PineconeAdapter("memories", api_key=API_KEY, url=service.url, table=table)


def on_supabase(found: Found, table: str) -> SupabaseAdapter:
    project = found("supabase")
    return SupabaseAdapter(project.url, service_key=project.service_key, database_url=project.database_url, table=table)


def on_weaviate(found: Found, table: str) -> WeaviateAdapter:
    service = found("weaviate_service")
    return WeaviateAdapter(service.url, grpc_port=service.grpc_port, table=table)


ADAPTERS: Final[dict[str, Callable[[Found, str], MemoryAdapter]]] = {
    "dynamodb": lambda found, table: DynamoDBAdapter(found("dynamodb").url, table=table, **KEYS),
    "firestore": lambda found, table: FirestoreAdapter(
        found("firestore").url, project_id=found("firestore_project"), table=table
    ),
    "mongodb": lambda found, table: MongoDBAdapter(found("mongodb").url, table=table),
    "pinecone": on_pinecone,
    "postgres": lambda found, table: PostgresAdapter(found("database_of_a_role"), table=table),
    "qdrant": lambda found, table: QdrantAdapter(found("qdrant").url, table=table),
    "redis": lambda found, table: RedisAdapter(found("redis_server").url, table=table, query_engine=True),
    "redis without the query engine": lambda found, table: RedisAdapter(found("plain_redis_server").url, table=table),
    "sqlite": lambda found, table: SqliteAdapter(found("tmp_path") / "lamina.db", table=table),
    "supabase": on_supabase,
    "turso": lambda found, table: TursoAdapter(found("turso").url, table=table),
    "turso on a file": lambda found, table: TursoAdapter(path=found("tmp_path") / "lamina.db", table=table),
    "weaviate": on_weaviate,
}


@pytest.fixture
def database_of_a_role(postgres: Any) -> Iterator[str]:
    """A database with pgvector, as a role for which the policies of rows hold."""
    name = f"test_{secrets.token_hex(6)}"
    url = postgres.make_database(name, owner="lamina_app")
    postgres.run("CREATE EXTENSION vector", url=postgres.url_of(name))
    yield url
    postgres.drop_database(name)


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_answers_as_the_reference_does(name: str, request: pytest.FixtureRequest) -> None:
    tell(ADAPTERS[name](request.getfixturevalue, f"t{secrets.token_hex(6)}"), THOROUGHNESS)


@pytest.mark.parametrize("broken", [NamesAreNormalised, RevisionsSkip])
def test_an_adapter_that_answers_otherwise_is_found(broken: type[MemoryAdapter]) -> None:
    plainly = settings(THOROUGHNESS, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        tell(broken(), plainly)


def tell(adapter: MemoryAdapter, thoroughness: settings) -> None:
    """Ask the adapter and the reference, on one event loop, as Hypothesis makes it up."""
    with asyncio.Runner() as runner:
        runner.run(adapter.initialize())
        try:
            machine = type("Told", (SideBySide,), {"adapter": adapter, "wait": staticmethod(runner.run)})
            run_state_machine_as_test(machine, settings=thoroughness)
        finally:
            runner.run(adapter.close())
