"""What a call to a memory adapter asks for and gets, and what it is refused for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.domain.text import check_name, is_blank, is_clean
from lamina.domain.validation import check_entry, check_whole_number
from lamina.errors import Conflict, InvalidInput, InvalidType, ScopeError

__all__ = [
    "ACCESS_FIELDS",
    "HISTORY_FIELDS",
    "HISTORY_KEPT",
    "MAX_LIMIT",
    "META_TENANT",
    "UNREVISED_FIELDS",
    "UPDATABLE",
    "BothLegs",
    "Capability",
    "ListOptions",
    "Order",
    "PoolEntry",
    "PoolHit",
    "SearchHit",
    "SearchOptions",
    "TermStatistics",
    "Update",
    "check_all_written",
    "check_batch",
    "check_digest",
    "check_in_scope",
    "check_meta",
    "check_meta_value",
    "check_revision",
    "check_updated",
    "check_updates",
]

META_TENANT: Final = "lamina:meta"
"""The tenant under which the default `load_meta` and `save_meta` keep their entries; refused to users."""

ACCESS_FIELDS: Final = frozenset({"access_count", "last_accessed_at"})
"""Fields that count reading."""

UNREVISED_FIELDS: Final = ACCESS_FIELDS | {"embedding"}
"""Fields that say nothing of their own: an update of nothing else leaves the revision alone."""

UPDATABLE: Final = ACCESS_FIELDS | frozenset(
    {
        "content",
        "layer",
        "tags",
        "metadata",
        "relevance",
        "base_relevance",
        "confidence",
        "ttl",
        "expires_at",
        "embedding",
        "updated_at",
        "occurred_at",
        "valid_until",
        "superseded_by",
        "source",
        "trust",
        "derived_from",
    }
)
"""Fields that `update` may change. Identity, order and creation are not among them."""

HISTORY_FIELDS: Final = UPDATABLE - ACCESS_FIELDS - {"relevance", "base_relevance", "embedding", "updated_at"}
"""Fields that say something, or decide how it may be found: what was before an update of one is history."""

HISTORY_KEPT: Final = 50
"""How many of an entry's earlier versions, the latest ones, an adapter with a history keeps at least."""

MAX_LIMIT: Final = 1_000_000_000
"""The greatest `limit` and `offset`."""


_DIGEST: Final = re.compile("[0-9a-f]{64}")


class Capability(StrEnum):
    """What an adapter may do natively. Undeclared means refused with `Unsupported`, never emulated in silence."""

    VECTOR = "vector search"
    TEXT = "text search"
    FILTER = "metadata filters"
    """Evaluates `MemoryFilter.where` itself; without it, a read with `where` is refused."""
    COMPARE_AND_SET = "compare and set"
    """What expects or looks before it writes is atomic, between processes too.

    That is: expected revisions and meta values, `touch`, `store_many(if_new=True)`, `delete_many` with a filter.
    """
    TRANSACTIONS = "transactions"
    """A batch is written whole or not at all, and a deletion takes row, text and vector together."""
    EXPIRY = "native expiry"
    """The backend itself removes expired entries some time after their instant."""
    HISTORY = "history"
    """Keeps what an entry was before each update that changes what it says or how it is found."""
    PERSISTENCE = "persistence"
    """What was acknowledged is there after the process has ended."""


class Order(StrEnum):
    """How `list` sorts."""

    INSERTION = "insertion"
    """By `seq`, oldest first; pages with `after`."""
    RELEVANCE = "relevance"
    """By stored relevance, best first, then newest `created_at`, then id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Whose, which and how many entries a search may return."""

    scope: Scope
    filter: MemoryFilter
    limit: int
    include_embeddings: bool = False

    def __post_init__(self) -> None:
        check_whole_number("limit", self.limit, 1, MAX_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Whose, which and how many entries `list` returns, from where on and in which order."""

    scope: Scope
    filter: MemoryFilter
    limit: int
    offset: int = 0
    after: int | None = None
    """Only entries with a greater `seq`; only for `Order.INSERTION`. Stays right while rows are added."""
    order: Order = Order.INSERTION
    include_embeddings: bool = False

    def __post_init__(self) -> None:
        check_whole_number("limit", self.limit, 1, MAX_LIMIT)
        check_whole_number("offset", self.offset, 0, MAX_LIMIT)
        if self.after is not None:
            check_whole_number("after", self.after, 0, 2**63 - 1)
        if self.after is not None and self.order is not Order.INSERTION:
            raise InvalidInput("after", "goes with insertion order only", "Page by offset in other orders.")


@dataclass(slots=True)
class SearchHit:
    """One search result.

    `similarity` is the cosine, in [-1, 1], for a vector search, and the lexical similarity of
    `lamina.domain.lexical`, in [0, 1], for a text search; higher is closer in both.
    `native` is False on hits of the engine's fallback scan.
    """

    entry: MemoryEntry
    similarity: float
    native: bool = True


class PoolEntry(Protocol):
    """What a ranking reads of an entry that is made whole only if it comes out among the best."""

    id: str
    content: str
    tenant: str
    owner: str
    namespace: str
    relevance: float
    access_count: int
    seq: int
    source: str | None

    @property
    def metadata(self) -> dict[str, Any]:
        """To be read only."""
        ...

    @property
    def last_changed_at(self) -> datetime:
        """When it was created, changed or confirmed last, in UTC."""
        ...

    @property
    def occurred_at(self) -> datetime | None:
        """As `MemoryEntry.occurred_at`."""
        ...

    @property
    def embedding(self) -> Vector | None:
        """The vector, if it was asked for."""
        ...

    def whole(self) -> MemoryEntry:
        """A new entry with every field but the embedding."""
        ...


@dataclass(slots=True)
class PoolHit:
    """As `SearchHit`, of an entry that is not made whole yet."""

    entry: PoolEntry
    similarity: float
    native: bool = True


@dataclass(slots=True)
class BothLegs:
    """What `search_by_vector` and `search_by_text` give, each with what it would say of the other's finds."""

    by_vector: list[PoolHit]
    by_text: list[PoolHit]
    cosines: Mapping[str, float]
    """By id, of whatever either found and has a vector; empty without a query vector."""
    similarities: Mapping[str, float]
    """By id, of whatever either found, 0 where it holds no word; empty without a word to look for."""
    statistics: TermStatistics | None
    """Of all forms of the query's words, if they were looked for."""
    meta: str | None
    """What `load_meta` gives for the key, at the moment of the search."""


@dataclass(frozen=True, slots=True)
class Update:
    """One change for `update_many`: nothing is changed if the revision differs from the expected one."""

    id: str
    changes: Mapping[str, Any]
    expected_revision: int | None = None


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """How many live entries a scope has, and in how many of them each term stands."""

    documents: int
    frequencies: Mapping[str, int]


def check_in_scope(scope: Scope, entry: MemoryEntry) -> None:
    """Refuse an entry that lies outside the scope."""
    if not scope.admits(entry):
        raise ScopeError(f"The entry {entry.id!r} lies outside the scope of this call, so it was not written.")


def check_batch(scope: Scope, entries: Iterable[MemoryEntry]) -> None:
    """Refuse what cannot be an entry or lies outside the scope: before any look-up, which would show a twin there."""
    for entry in entries:
        check_entry(entry)
        check_in_scope(scope, entry)


def check_updates(updates: Mapping[str, Any]) -> None:
    """Refuse an update of nothing, and of a field that is not updatable."""
    if not updates:
        raise InvalidInput("updates", "is empty", "Name at least one field.")
    for field in updates:
        if field not in UPDATABLE:
            raise InvalidInput("updates", f"{field!r} cannot be updated", f"Use: {', '.join(sorted(UPDATABLE))}.")


def check_revision(entry: MemoryEntry, expected: int | None) -> None:
    """Refuse to change or delete an entry of another revision than the expected one; None expects none."""
    if expected not in {None, entry.revision}:
        raise Conflict(f"The memory {entry.id!r}", f"it has the revision {entry.revision}, not {expected}")


def check_all_written(twins: Iterable[MemoryEntry | None]) -> None:
    """Refuse to go on where an entry was not written, because one says the same already."""
    for twin in twins:
        if twin is not None:
            raise Conflict(f"The memory {twin.id!r}", "it says the same as an entry that was to be written as new")


def check_updated(id: str, done: bool) -> None:
    """Refuse to go on where an update met no entry."""
    if not done:
        raise Conflict(f"The memory {id!r}", "it is not there any more")


def check_digest(digest: object) -> None:
    """Refuse what is the digest of no content."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidInput("digest", "is no SHA-256 in hex", "Give what MemoryEntry.digest gives.")


def check_meta(key: str, value: str) -> None:
    """Refuse what `save_meta` could not keep: a key that is no name, and a blank or unclean text."""
    check_name("key", key)
    if not isinstance(value, str):
        raise InvalidType("value", f"must be text, not {type(value).__name__}", "Give a str.")
    if is_blank(value) or not is_clean(value):
        remedy = "Give text that is not blank and holds no NUL and no lone surrogate."
        raise InvalidInput("value", "is no text that can be kept", remedy)


def check_meta_value(key: str, value: str | None, expected: str | None) -> None:
    """Refuse a write that expects another value, or None for none, under this key."""
    if value != expected:
        raise Conflict(f"The meta value {key!r}", f"it is {_quoted(value)}, not {_quoted(expected)}")


def _quoted(value: str | None) -> str:
    return "absent" if value is None else repr(value)
