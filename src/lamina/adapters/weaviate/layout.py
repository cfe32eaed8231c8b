"""The collection: its properties and how each is indexed, found or made.

Each tenant of ours is a tenant of Weaviate's own, with a shard and indexes that no other tenant's
request reaches; its history and the controls of the table lie in tenants beside. Vectors of each length
have a named vector, and so an index of their own.
"""

from __future__ import annotations

import threading
from typing import Final

import weaviate
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.collections import Collection
from weaviate.collections.classes.config_vectors import VectorConfigCreate
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateInvalidInputError

from lamina.adapters.weaviate.failures import NAME
from lamina.errors import AdapterError, ConfigError

__all__ = ["Vectors", "opened_collection", "vector_name"]


def _kept(name: str, kind: DataType = DataType.TEXT) -> Property:
    """Only kept, in no index."""
    if kind is DataType.BLOB:
        return Property(name=name, data_type=kind, index_filterable=False)
    return Property(name=name, data_type=kind, index_filterable=False, index_searchable=False)


def _exact(name: str, kind: DataType = DataType.TEXT) -> Property:
    """Compared whole."""
    whole = Tokenization.FIELD
    return Property(name=name, data_type=kind, index_filterable=True, index_searchable=False, tokenization=whole)


def _number(name: str, kind: DataType = DataType.INT) -> Property:
    """Compared for equality and by order."""
    return Property(name=name, data_type=kind, index_filterable=True, index_range_filters=True)


def _words(name: str) -> Property:
    """Terms with spaces in between: searched by them, and compared with each."""
    at_spaces = Tokenization.WHITESPACE
    return Property(
        name=name, data_type=DataType.TEXT, index_filterable=True, index_searchable=True, tokenization=at_spaces
    )


PROPERTIES: Final = (
    _kept("memory"),
    _kept("embedding", DataType.BLOB),
    _kept("value"),
    _kept("id_hex"),
    _exact("owner"),
    _exact("namespace"),
    _exact("layer"),
    _exact("digest"),
    _exact("version_of"),
    _exact("labels", DataType.TEXT_ARRAY),
    _words("words"),
    Property(name="is_indexed", data_type=DataType.BOOL, index_filterable=True),
    _number("relevance", DataType.NUMBER),
    _number("confidence", DataType.NUMBER),
    *map(_number, ("order", "place", "revision", "length")),
    *(_number(f"{name}_{unit}") for name in ("created", "updated", "expires") for unit in ("s", "us")),
)

_ADDED: Final = tuple(_number(f"holds_{unit}") for unit in ("s", "us"))
"""What a collection that an earlier Lamina made does not have yet."""

_PATIENCE: Final = 20
"""How often an index is added anew, if others add theirs: the definition is written whole."""


class Vectors:
    """The named vectors of a collection, which are added when the first vector of a length comes."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._known: frozenset[str] = frozenset()
        self._adding = threading.Lock()

    def has(self, length: int) -> bool:
        """Whether vectors of this length have an index."""
        name = vector_name(length)
        return name in self._known or name in self._read()

    def need(self, length: int) -> None:
        """Add an index for vectors of this length, if there is none."""
        name = vector_name(length)
        if name in self._known:
            return
        with self._adding:
            for _ in range(_PATIENCE):
                before = self._read()
                if name in before:
                    return
                try:
                    self._collection.config.add_vector(vector_config=_named(length))
                except UnexpectedStatusCodeError:
                    if self._read() == before:  # or else others added theirs, which must not get lost
                        raise
        raise AdapterError(NAME, "others kept changing the collection's definition", "Try again.")

    def _read(self) -> frozenset[str]:
        self._known = frozenset(self._collection.config.get().vector_config or ())
        return self._known


def vector_name(length: int) -> str:
    """What vectors of this length are named."""
    return f"of_{length}"


def opened_collection(client: weaviate.WeaviateClient, name: str, option: str) -> Collection:
    """The collection, which is made if it is not there.

    Raises:
        ConfigError: it is somebody else's, or one is there that differs in nothing but case.
    """
    if not client.collections.exists(name):
        try:
            _create(client, name)
        except UnexpectedStatusCodeError:
            if not client.collections.exists(name):  # or else somebody else was faster
                _check_case(client, name, option)
                raise
    collection = client.collections.use(name)
    config = collection.config.get()
    present = {each.name for each in config.properties}
    if not config.multi_tenancy_config.enabled or not present.issuperset(each.name for each in PROPERTIES):
        raise ConfigError(option, f"names the collection {name!r}, which is none of Lamina's", "Name another one.")
    for each in _ADDED:
        if each.name not in present:
            _add(collection, each)
    return collection


def _add(collection: Collection, new: Property) -> None:
    try:
        collection.config.add_property(new)
    except (UnexpectedStatusCodeError, WeaviateInvalidInputError):  # which it is also if somebody else was faster
        if new.name not in {each.name for each in collection.config.get().properties}:
            raise


def _check_case(client: weaviate.WeaviateClient, name: str, option: str) -> None:
    for other in client.collections.list_all(simple=True):
        if other.lower() == name.lower():
            problem = f"names {name!r}, and there is {other!r}: Weaviate does not tell them apart"
            raise ConfigError(option, problem, "Name another one.")


def _create(client: weaviate.WeaviateClient, name: str) -> None:
    client.collections.create(
        name,
        properties=[*PROPERTIES, *_ADDED],
        vector_config=[_named(1)],  # others can be added later only to a collection that has one
        multi_tenancy_config=Configure.multi_tenancy(
            enabled=True, auto_tenant_creation=True, auto_tenant_activation=True
        ),
        inverted_index_config=Configure.inverted_index(
            bm25_b=0,  # long memories are as good as short ones: similarity is reckoned here
            bm25_k1=1.2,
            stopwords_preset=StopwordsPreset.NONE,
        ),
    )


def _named(length: int) -> VectorConfigCreate:
    index = Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
    config: VectorConfigCreate = Configure.Vectors.self_provided(name=vector_name(length), vector_index_config=index)
    return config
