"""Whatever is asked of an adapter, in whatever order, it does what the reference does.

The reference is the adapter for this process's memory, which takes filters, words and cosines straight from the
domain. Both are told the same, step by step, and must answer the same; what they hold is compared after each write.
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
from real_dynamodb import KEYS

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
from lamina.domain.filters import And, Expiry, MemoryFilter, Not, Or, Where
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import content_digest
from lamina.errors import LaminaError, Unsupported
from lamina.ports.memory_adapter import Capability, ListOptions, MemoryAdapter, Order, SearchHit, SearchOptions, Update
from lamina.testing.memory_contract.material import fields_of, second

THOROUGHNESS: Final = settings(
    max_examples=int(__import__("os").environ.get("EX", 5)),
    stateful_step_count=int(__import__("os").environ.get("ST", 20)),
    deadline=None,
    phases=[Phase.generate, Phase.shrink] if not __import__("os").environ.get("NOSHRINK") else [Phase.generate],
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)

# What is made of the words below: names and texts that backends would like to read in their own way.

LOOK_ALIKES: Final = ("a", "a_", "a%", "A", "a:1", "é", "e\u0301", "🦉", "a' OR \"1\"='1", "{a}|-@*\n\\", "a" * 512)
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
TAGS: Final = ("a", "A", "é", "e\u0301", "a,b", "{a}", "*", "x" * 300)
VALUES: Final = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    -0.0,
    0.1,
    2**63 - 1,
    -(2**63),
    2.0**63,
    1e308,
    5e-324,
    "",
    "a",
    "é",
    "1",
)
KEYS_OF_METADATA: Final = ("a", "a.b", "", "$a", "é", "a'\"]", "_id")
VECTORS: Final = (
    [1.0, 0.0],
    [2.0, 0.0],
    [0.0, 1.0],
    [-1.0, 0.0],
    [0.5, 0.75],
    [0.0, 0.0],
    [1e38, -3e38],
    [1e-30, 3e-30],
)
INSTANTS: Final = tuple(map(second, (-1e9, 0, 1, 2, 3.000001, 1e9)))


names = st.sampled_from(LOOK_ALIKES)
ids = st.sampled_from(LOOK_ALIKES[:6])
owners = st.sampled_from(("a", "a", "a_", "A"))
namespaces = st.sampled_from(("é", "é", "e\u0301"))
instants = st.sampled_from(INSTANTS)
later = st.sampled_from((None, None, None, *INSTANTS))
layers = st.sampled_from(Layer)
units = st.sampled_from((0.0, 0.1, 0.3, 0.1 + 0.2, 1.0))
scalars = st.sampled_from(VALUES)
keys = st.sampled_from(KEYS_OF_METADATA)
metadata = st.dictionaries(keys, scalars | st.lists(scalars, max_size=3) | st.dictionaries(keys, scalars, max_size=2))
vectors = st.sampled_from(VECTORS) | st.sampled_from([np.array(each, dtype=np.float32) for each in VECTORS])
limits = st.sampled_from((1, 2, 3, 100, 10**9))

paths = st.lists(keys.filter(bool), min_size=1, max_size=2).map(tuple)
listed_values = st.lists(scalars, max_size=3)
comparisons = st.builds(
    lambda path, make: make(Where(path)),
    paths,
    st.one_of(
        scalars.map(lambda value: lambda where: where.eq(value)),
        scalars.map(lambda value: lambda where: where.ne(value)),
        scalars.map(lambda value: lambda where: where.contains(value)),
        listed_values.map(lambda values: lambda where: where.is_in(values)),
        listed_values.map(lambda values: lambda where: where.not_in(values)),
        st.booleans().map(lambda present: lambda where: where.exists(present)),
        st.builds(
            lambda name, value: lambda where: getattr(where, name)(value),
            st.sampled_from(("gt", "gte", "lt", "lte")),
            scalars.filter(lambda value: value is not None and not isinstance(value, bool)),
        ),
    ),
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        inner.map(Not) | st.lists(inner, max_size=2).map(tuple).flatmap(lambda p: st.sampled_from([And(p), Or(p)]))
    ),
    max_leaves=3,
)
WANTED: Final = {
    "layers": st.frozensets(layers),
    "tags": st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    "tags_any": st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    "where": conditions,
    "min_relevance": units,
    "min_confidence": units,
    "created_before": instants,
    "updated_before": instants,
    "has_embedding": st.booleans(),
}
wanted = st.one_of([values.map(partial(lambda name, value: (name, value), name)) for name, values in WANTED.items()])
filters = st.builds(
    lambda now, expiry, few: MemoryFilter(now=now, expiry=expiry, **dict(few)),
    instants,
    st.sampled_from((Expiry.ANY, Expiry.ANY, *Expiry)),
    st.just([]) | st.lists(wanted, max_size=2),  # with more, nothing would be left
)
fields = {
    "content": st.sampled_from(CONTENTS),
    "layer": layers,
    "tags": st.lists(st.sampled_from(TAGS), max_size=3),
    "metadata": metadata,
    "relevance": units,
    "confidence": units,
    "expires_at": later,
    "embedding": st.none() | vectors,
    "updated_at": instants,
    "occurred_at": later,
    "source": st.none() | names,
    "derived_from": st.lists(names, max_size=2),
}
changes = st.fixed_dictionaries({}, optional=fields).filter(bool)


scopes = st.builds(
    Scope,
    tenant=st.sampled_from(("a", "a", "a", "a", "a_", "A")),
    owner=st.none() | owners,
    namespace=st.none() | namespaces,
    include_shared=st.booleans(),
)


entries = st.builds(
    MemoryEntry,
    id=ids,
    owner=owners,
    namespace=namespaces,
    created_at=instants,
    revision=st.sampled_from((1, 1, 5)),
    base_relevance=units,
    **fields,
)
updates = st.builds(Update, ids, changes, st.none() | st.integers(1, 3))
metas = st.none() | st.sampled_from(LOOK_ALIKES[:3])
expected_metas = st.none() | st.dictionaries(st.sampled_from(LOOK_ALIKES[:2]), metas, max_size=2)


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
    def begin(self, batch: list[MemoryEntry]) -> None:
        self.store_many(Scope("a"), batch, if_new=False, metas=None)

    # Writes, after each of which all that the tenant has is compared

    @rule(scope=scopes, entry=entries)
    def store(self, scope: Scope, entry: MemoryEntry) -> None:
        self.write("store", scope, self.within(scope, entry))

    @rule(scope=scopes, entry=entries)
    def store_a_vector_of_another_length(self, scope: Scope, entry: MemoryEntry) -> None:
        """Which is fine where the tenant has no others. It does not stay: in batches, adapters may be stricter."""
        entry = entry.replace(id="another", embedding=[1.0, 0.0, 0.0])
        self.both("store", self.mine(scope), self.within(scope, entry))
        self.write("delete", Scope(scope.tenant), "another")

    @rule(scope=scopes, batch=st.lists(entries, max_size=4), if_new=st.booleans(), metas=expected_metas)
    def store_many(self, scope: Scope, batch: list[MemoryEntry], if_new: bool, metas: Any) -> None:
        batch = [self.within(scope, entry) for entry in batch]
        self.write("store_many", scope, batch, if_new=if_new, expected_meta=metas)

    @rule(scope=scopes, update=updates)
    def update(self, scope: Scope, update: Update) -> None:
        self.write("update", scope, update.id, update.changes, expected_revision=update.expected_revision)

    @rule(scope=scopes, batch=st.lists(updates, max_size=4), metas=expected_metas)
    def update_many(self, scope: Scope, batch: list[Update], metas: Any) -> None:
        self.write("update_many", scope, batch, expected_meta=metas)

    @rule(scope=scopes, batch=st.lists(ids, max_size=3), filter=st.none() | filters)
    def delete_many(self, scope: Scope, batch: list[str], filter: MemoryFilter | None) -> None:
        self.write("delete_many", scope, batch, filter=filter)

    @rule(scope=scopes, batch=st.lists(ids, max_size=4), now=instants)
    def touch(self, scope: Scope, batch: list[str], now: Any) -> None:
        self.write("touch", scope, batch, now)

    @rule(scope=scopes)
    def drop_embeddings(self, scope: Scope) -> None:
        self.write("drop_embeddings", scope)

    @rule(scope=scopes, key=names, value=st.sampled_from(LOOK_ALIKES[:3]), expected=metas)
    def save_meta(self, scope: Scope, key: str, value: str, expected: str | None) -> None:
        self.write("save_meta", scope, key, value, INSTANTS[1], expected=expected)
        self.both("load_meta", self.mine(scope), key)

    @rule()
    def reopen(self) -> None:
        self.wait(self.adapter.close())
        self.wait(self.adapter.initialize())

    # Reads

    @rule(scope=scopes, filter=filters, limit=limits, offset=st.integers(0, 3), by_relevance=st.booleans())
    def page(self, scope: Scope, filter: MemoryFilter, limit: int, offset: int, by_relevance: bool) -> None:
        order = Order.RELEVANCE if by_relevance else Order.INSERTION
        options = ListOptions(scope=self.mine(scope), filter=filter, limit=limit, offset=offset, order=order)
        self.both("list", options, gap=filter)

    @rule(scope=scopes, filter=filters, limit=limits, number=st.integers(0, 5))
    def page_after_the_first(self, scope: Scope, filter: MemoryFilter, limit: int, number: int) -> None:
        options = ListOptions(scope=self.mine(scope), filter=filter, limit=limit)
        everything = ListOptions(scope=self.mine(Scope(scope.tenant)), filter=ANYTHING, limit=100)

        async def page(adapter: MemoryAdapter) -> Any:
            seqs = [each.seq for each in await adapter.list(everything)]
            assert seqs == sorted(set(seqs))
            after = seqs[number] if number < len(seqs) else 2**63 - 1
            return await adapter.list(replace(options, after=after))

        self.compare(page, "list after", options, number, gap=filter)

    @rule(scope=scopes, id=ids)
    def get(self, scope: Scope, id: str) -> None:
        self.both("get", self.mine(scope), id)
        if Capability.HISTORY in self.adapter.capabilities:
            self.both("history", self.mine(scope), id)

    @rule(scope=scopes, filter=filters)
    def count(self, scope: Scope, filter: MemoryFilter) -> None:
        self.both("count", self.mine(scope), filter, gap=filter)

    @rule(scope=scopes, layer=layers, content=st.sampled_from(CONTENTS), now=instants)
    def find_duplicate(self, scope: Scope, layer: Layer, content: str, now: Any) -> None:
        self.both("find_duplicate", self.mine(scope), layer, content_digest(content), now)

    @rule(scope=scopes, batch=st.lists(entries, max_size=3))
    def find_twins(self, scope: Scope, batch: list[MemoryEntry]) -> None:
        self.both("find_twins", self.mine(scope), [self.within(scope, entry) for entry in batch])

    @rule(scope=scopes, filter=filters, limit=limits, vector=vectors, shown=st.booleans())
    def search_by_vector(self, scope: Scope, filter: MemoryFilter, limit: int, vector: Any, shown: bool) -> None:
        options = SearchOptions(scope=self.mine(scope), filter=filter, limit=limit, include_embeddings=shown)
        if Capability.VECTOR in self.adapter.capabilities:
            self.both("search_by_vector", vector, options, gap=filter)

    @rule(scope=scopes, filter=filters, limit=limits, query=st.sampled_from(QUERIES), shown=st.booleans())
    def search_by_text(self, scope: Scope, filter: MemoryFilter, limit: int, query: str, shown: bool) -> None:
        options = SearchOptions(scope=self.mine(scope), filter=filter, limit=limit, include_embeddings=shown)
        if Capability.TEXT in self.adapter.capabilities:
            self.both("search_by_text", query, options, gap=filter)
            self.both("term_statistics", self.mine(scope), ["lamp", "é", "nothing"], filter.now)

    # How both are told, and compared

    def mine(self, scope: Scope) -> Scope:
        return replace(scope, tenant=f"{self.run} {scope.tenant}")

    def within(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry:
        """The entry where the scope lets one be stored."""
        names = {"owner": scope.owner or entry.owner, "namespace": scope.namespace or entry.namespace}
        return entry.replace(tenant=self.mine(scope).tenant, **names)

    def write(self, deed: str, scope: Scope, *arguments: Any, **options: Any) -> None:
        self.both(deed, self.mine(scope), *arguments, **options)
        whole = self.mine(Scope(scope.tenant))
        self.both("list", ListOptions(scope=whole, filter=ANYTHING, limit=100, include_embeddings=True))

    def both(self, deed: str, *arguments: Any, gap: MemoryFilter | None = None, **options: Any) -> None:
        def done(adapter: MemoryAdapter) -> Any:
            return getattr(adapter, deed)(*copy.deepcopy(arguments), **copy.deepcopy(options))

        self.compare(done, deed, *arguments, options, gap=gap)

    def compare(self, work: Callable[[MemoryAdapter], Any], *told: Any, gap: MemoryFilter | None) -> None:
        ours = self.outcome(work(self.adapter))
        if ours is Unsupported and gap is not None and gap.where is not None:
            assert self.adapter.filter_gap(gap.where)
            return
        theirs = self.outcome(work(self.reference))
        assert ours == theirs, told

    def outcome(self, answer: Any) -> Any:
        try:
            return plain(self.wait(answer))
        except LaminaError as error:
            return type(error)


def plain(answer: Any) -> Any:
    """The answer, without what adapters are free to choose."""
    match answer:
        case list():
            return [plain(each) for each in answer]
        case SearchHit(entry, similarity):
            return fields_of(entry), round(similarity, 6)
        case MemoryEntry():
            return fields_of(answer)
    return answer


ANYTHING: Final = MemoryFilter(now=INSTANTS[1], expiry=Expiry.ANY)


# The adapters


@pytest.fixture
def postgres_role_url(postgres: Any) -> Iterator[str]:
    """A database with pgvector, as a role for which the policies of rows hold."""
    name = f"test_{secrets.token_hex(6)}"
    url = postgres.make_database(name, owner="lamina_app")
    postgres.run("CREATE EXTENSION vector", url=postgres.url_of(name))
    yield url
    postgres.drop_database(name)


@pytest.fixture
def pinecone_index(pinecone_service: Any) -> Any:
    if not pinecone_service.indexes:
        pinecone_service.create("memories", 32)
    return pinecone_service


def named() -> str:
    """A collection that no other test uses."""
    return f"t{secrets.token_hex(6)}"


MADE: Final[dict[str, tuple[str, Callable[[Any], MemoryAdapter]]]] = {
    "dynamodb": ("dynamodb", lambda at: DynamoDBAdapter(at.url, table=named(), **KEYS)),
    "firestore": ("firestore", lambda at: FirestoreAdapter(at.url, project_id="test-side-by-side", table=named())),
    "mongodb": ("mongodb", lambda at: MongoDBAdapter(at.url, table=named())),
    "pinecone": ("pinecone_index", lambda at: PineconeAdapter("memories", api_key=API_KEY, host=at.url, table=named())),
    "postgres": ("postgres_role_url", PostgresAdapter),
    "qdrant": ("qdrant", lambda at: QdrantAdapter(at.url, table=named())),
    "redis": ("redis_server", lambda at: RedisAdapter(at.url, table=named())),
    "redis without the query engine": ("plain_redis_server", lambda at: RedisAdapter(at.url, table=named())),
    "sqlite": ("tmp_path", lambda folder: SqliteAdapter(folder / "lamina.db")),
    "supabase": (
        "supabase",
        lambda at: SupabaseAdapter(at.url, service_key=at.service_key, database_url=at.database_url, table=named()),
    ),
    "turso": ("turso", lambda at: TursoAdapter(at.url, table=named())),
    "turso on a file": ("tmp_path", lambda folder: TursoAdapter(path=folder / "lamina.db")),
}


@pytest.mark.parametrize("name", MADE)
def test_an_adapter_answers_as_the_reference_does(name: str, request: pytest.FixtureRequest) -> None:
    place, make = MADE[name]
    adapter = make(request.getfixturevalue(place))
    with asyncio.Runner() as runner:
        runner.run(adapter.initialize())
        try:
            machine = type("Told", (SideBySide,), {"adapter": adapter, "wait": staticmethod(runner.run)})
            run_state_machine_as_test(machine, settings=THOROUGHNESS)
        finally:
            runner.run(adapter.close())
