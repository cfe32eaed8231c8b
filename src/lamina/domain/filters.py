"""Filters over memories: how a condition on metadata is written, and what else an entry must be.

`lamina.domain.conditions` has the rules of the conditions, which are the same on every backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lamina.domain.conditions import (
    INT64,
    MAX_COMPARISONS,
    MAX_NESTING,
    MAX_PATH,
    MAX_VALUES,
    And,
    Compare,
    Filter,
    Not,
    Operator,
    Or,
    Scalar,
    check_where,
)
from lamina.domain.text import is_clean
from lamina.errors import InvalidInput, InvalidType

if TYPE_CHECKING:
    from lamina.domain.memory import Layer, MemoryEntry
    from lamina.domain.scope import Scope

__all__ = [
    "INT64",
    "MAX_COMPARISONS",
    "MAX_NESTING",
    "MAX_PATH",
    "MAX_VALUES",
    "And",
    "Compare",
    "Expiry",
    "Filter",
    "MemoryFilter",
    "Not",
    "Operator",
    "Or",
    "Scalar",
    "Where",
    "check_where",
]


class Where:
    """Starts a comparison: `Where("geo.city").eq("Izmir")`, `Where("due").lte(5)`.

    Combine with `And((a, b))`, `Or((a, b))` and `Not(a)`, or read a mapping with `Where.parse`.
    """

    __slots__ = ("_path",)

    def __init__(self, key: str | Sequence[str]) -> None:
        self._path = tuple(key.split(".")) if isinstance(key, str) else tuple(key)

    def eq(self, value: Scalar) -> Compare:
        """Equal, and of the same kind."""
        return Compare(self._path, Operator.EQ, value)

    def ne(self, value: Scalar) -> Compare:
        """Present and not equal."""
        return Compare(self._path, Operator.NE, value)

    def gt(self, value: str | float) -> Compare:
        """Greater, and of the same kind."""
        return Compare(self._path, Operator.GT, value)

    def gte(self, value: str | float) -> Compare:
        """Greater or equal, and of the same kind."""
        return Compare(self._path, Operator.GTE, value)

    def lt(self, value: str | float) -> Compare:
        """Less, and of the same kind."""
        return Compare(self._path, Operator.LT, value)

    def lte(self, value: str | float) -> Compare:
        """Less or equal, and of the same kind."""
        return Compare(self._path, Operator.LTE, value)

    def is_in(self, values: Iterable[Scalar]) -> Compare:
        """Equal to one of the values; never true for an empty list."""
        return Compare(self._path, Operator.IN, tuple(values))

    def not_in(self, values: Iterable[Scalar]) -> Compare:
        """Present and equal to none of the values."""
        return Compare(self._path, Operator.NOT_IN, tuple(values))

    def contains(self, value: Scalar) -> Compare:
        """A stored list has the value as an element, or a stored text has it as a part."""
        return Compare(self._path, Operator.CONTAINS, value)

    def exists(self, present: bool = True) -> Compare:
        """Whether the key is there; a stored null is there."""
        return Compare(self._path, Operator.EXISTS, present)

    @staticmethod
    def parse(source: object) -> Filter:
        """Read a filter from a mapping.

        `{"status": "open", "due": {"lte": 5, "exists": True}}` is the conjunction of its
        entries; `"and"` and `"or"` take a list of mappings and `"not"` takes one. A list as a
        value means `in`. To compare a metadata key that is named `and`, `or` or `not`, build the
        filter with `Where`.

        Raises:
            InvalidInput: it is larger or deeper than a filter may be, or something in it cannot be compared.
        """
        parsed = _parse(source, 1)
        check_where(parsed)
        return parsed


def _parse(source: object, depth: int) -> Filter:
    if isinstance(source, And | Or | Not | Compare):
        return source
    if not isinstance(source, Mapping):
        raise InvalidType("where", f"must be a mapping, not {type(source).__name__}", "See Where.parse.")
    if depth > MAX_NESTING:
        raise InvalidInput("where", f"is nested deeper than {MAX_NESTING} levels", "Flatten it.")
    parts = [part for key, value in source.items() for part in _parse_entry(key, value, depth)]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _parse_entry(key: str, value: Any, depth: int) -> Iterable[Filter]:
    if key in {"and", "or"}:
        if not isinstance(value, list | tuple):
            raise InvalidType("where", f"{key!r} takes a list of mappings", "Wrap the parts in a list.")
        parts = tuple(_parse(each, depth + 1) for each in value)
        return [And(parts) if key == "and" else Or(parts)]
    if key == "not":
        return [Not(_parse(value, depth + 1))]
    if not isinstance(key, str):
        raise InvalidType("where", f"the key {key!r} is not text", "Build the filter with Where for other keys.")
    path = Where(key)._path  # noqa: SLF001 - the parser is part of the class
    if isinstance(value, Mapping):
        if not value:
            raise InvalidInput("where", f"{key!r} has no operator", "Name one, such as eq, or leave the key out.")
        return [Compare(path, _operator(name), _operand(operand)) for name, operand in value.items()]
    if isinstance(value, list | tuple):
        return [Compare(path, Operator.IN, tuple(value))]
    return [Compare(path, Operator.EQ, value)]


def _operator(name: str) -> Operator:
    try:
        return Operator(name)
    except ValueError:
        known = ", ".join(Operator)
        raise InvalidInput("where", f"{name!r} is not an operator", f"Use one of: {known}.") from None


def _operand(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Expiry(StrEnum):
    """Which entries a read sees by their expiry."""

    LIVE = "live"
    EXPIRED = "expired"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """What an entry must be, beside lying in the scope. All conditions must hold.

    `now` decides expiry and is required, so that no read forgets it. `current` leaves out what is
    superseded or no longer valid at `now` (`MemoryEntry.is_current`). `tags` must all be there,
    `tags_any` at least one; both compare exactly. Minima are inclusive, `*_before` is strict.
    """

    now: datetime
    expiry: Expiry = Expiry.LIVE
    current: bool = False
    layers: frozenset[Layer] | None = None
    tags: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    where: Filter | None = None
    min_relevance: float | None = None
    min_confidence: float | None = None
    created_before: datetime | None = None
    updated_before: datetime | None = None
    has_embedding: bool | None = None

    def __post_init__(self) -> None:
        for name in ("now", "created_before", "updated_before"):
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is None:
                raise InvalidInput(name, "has no time zone", "Give a timezone-aware datetime.")
        for name in ("tags", "tags_any"):
            if not all(isinstance(tag, str) and is_clean(tag) for tag in getattr(self, name)):
                raise InvalidInput(name, "holds what is no text, a NUL or a lone surrogate", "No tag can be that.")
        if self.where is not None:
            check_where(self.where)

    def matches(self, entry: MemoryEntry) -> bool:
        """Whether the entry passes: the reference that every adapter is held to."""
        return (
            (self.expiry is Expiry.ANY or entry.is_expired(self.now) == (self.expiry is Expiry.EXPIRED))
            and (not self.current or entry.is_current(self.now))
            and (self.layers is None or entry.layer in self.layers)
            and all(tag in entry.tags for tag in self.tags)
            and (not self.tags_any or any(tag in entry.tags for tag in self.tags_any))
            and (self.min_relevance is None or entry.relevance >= self.min_relevance)
            and (self.min_confidence is None or entry.confidence >= self.min_confidence)
            and (self.created_before is None or entry.created_at < self.created_before)
            and (self.updated_before is None or entry.updated_at < self.updated_before)
            and (self.has_embedding is None or (entry.embedding is not None) == self.has_embedding)
            and (self.where is None or self.where.matches(entry.metadata))
        )

    def admits(self, scope: Scope, entry: MemoryEntry) -> bool:
        """Whether the entry lies in the scope and passes."""
        return scope.admits(entry) and self.matches(entry)
