"""Filters over memories, and the reference that every adapter's own translation is held to.

The rules, the same on every backend:

* A key is a path into `metadata`. A string is split at its dots (`"geo.city"`); a tuple is taken
  element by element (`("geo.city",)` is the one key with a dot in its name). Only objects are
  entered, never lists.
* A comparison with a key that is missing is false, whatever the operator, `ne` and `not_in`
  included; only `exists` speaks of missing keys. `Not` turns the truth of what it holds around,
  so `Not(Where("a").eq(1))` is true where `a` is missing. There is no third truth value.
* Numbers compare with numbers (1 equals 1.0), text with text (by code point), booleans and null
  only for equality and only with their own kind. Values of different kinds are unequal, and an
  order between them is false. A stored list or object equals no operand.
* `contains` is true if a stored list has the operand as an element, or a stored text has it as a
  part (case counts).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lamina.domain.text import is_clean
from lamina.errors import InvalidInput, InvalidType

if TYPE_CHECKING:
    from lamina.domain.memory import Layer, MemoryEntry
    from lamina.domain.scope import Scope

__all__ = ["And", "Compare", "Expiry", "Filter", "MemoryFilter", "Not", "Operator", "Or", "Scalar", "Where"]

Scalar: TypeAlias = str | int | float | bool | None
Filter: TypeAlias = "And | Or | Not | Compare"

INT64: Final = range(-(2**63), 2**63)


class Operator(StrEnum):
    """What a comparison asks of the stored value."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NOT_IN = "not_in"
    CONTAINS = "contains"
    EXISTS = "exists"


_ORDERED: Final = {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE}
_LISTED: Final = {Operator.IN, Operator.NOT_IN}
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Compare:
    """`path operator operand`; build it with `Where`."""

    path: tuple[str, ...]
    operator: Operator
    operand: Scalar | tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _check_path(self.path)
        if self.operator in _LISTED:
            if not isinstance(self.operand, tuple):
                raise InvalidType("where", f"{self.operator} takes a list", "Give the values as a list or tuple.")
            for each in self.operand:
                _check_scalar(each)
        elif self.operator is Operator.EXISTS:
            if not isinstance(self.operand, bool):
                raise InvalidType("where", "exists takes a bool", "Use exists(True) or exists(False).")
        else:
            _check_scalar(self.operand)
            if self.operator in _ORDERED and (self.operand is None or isinstance(self.operand, bool)):
                raise InvalidInput("where", f"{self.operator} takes a number or text", "Use eq, ne or in for others.")

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the metadata passes, by the rules at the top of this module."""
        value = _look_up(metadata, self.path)
        if self.operator is Operator.EXISTS:
            return (value is not _MISSING) == self.operand
        if value is _MISSING:
            return False
        match self.operator:
            case Operator.EQ:
                return _same(value, self.operand)
            case Operator.NE:
                return not _same(value, self.operand)
            case Operator.IN:
                return any(_same(value, each) for each in _as_tuple(self.operand))
            case Operator.NOT_IN:
                return not any(_same(value, each) for each in _as_tuple(self.operand))
            case Operator.CONTAINS:
                if isinstance(value, str):
                    return isinstance(self.operand, str) and self.operand in value
                return isinstance(value, list) and any(_same(each, self.operand) for each in value)
            case _:
                return _ordered(self.operator, value, self.operand)


@dataclass(frozen=True, slots=True)
class And:
    """True if every part is; true without parts."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the metadata passes every part."""
        return all(part.matches(metadata) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """True if some part is; false without parts."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the metadata passes some part."""
        return any(part.matches(metadata) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """True if its part is false."""

    part: Filter

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the metadata fails the part."""
        return not self.part.matches(metadata)


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
        """
        if isinstance(source, And | Or | Not | Compare):
            return source
        if not isinstance(source, Mapping):
            raise InvalidType("where", f"must be a mapping, not {type(source).__name__}", "See Where.parse.")
        parts = [part for key, value in source.items() for part in _parse_entry(key, value)]
        return parts[0] if len(parts) == 1 else And(tuple(parts))


def _parse_entry(key: str, value: Any) -> Iterable[Filter]:
    if key in {"and", "or"}:
        if not isinstance(value, list | tuple):
            raise InvalidType("where", f"{key!r} takes a list of mappings", "Wrap the parts in a list.")
        parts = tuple(Where.parse(each) for each in value)
        return [And(parts) if key == "and" else Or(parts)]
    if key == "not":
        return [Not(Where.parse(value))]
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


def _check_path(path: tuple[object, ...]) -> None:
    if not path or not all(isinstance(part, str) and part for part in path):
        raise InvalidInput("where", f"{path!r} is not a key", "Give text, or a tuple of non-empty texts.")
    if not all(is_clean(str(part)) for part in path):
        raise InvalidInput("where", "a key holds a NUL or a lone surrogate", "Remove it.")


def _check_scalar(value: object) -> None:
    if isinstance(value, str):
        if not is_clean(value):
            raise InvalidInput("where", "a text holds a NUL or a lone surrogate", "Remove it.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput("where", f"{value} cannot be compared", "Give a finite number.")
    elif isinstance(value, int):
        if value not in INT64:
            raise InvalidInput("where", "a whole number is outside 64 bits", "Give it as text on both sides.")
    elif value is not None:
        remedy = "Compare with text, a number, a bool or None."
        raise InvalidType("where", f"{type(value).__name__} cannot be compared", remedy)


def _look_up(metadata: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = metadata
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "compound"


def _same(value: Any, operand: Scalar | tuple[Scalar, ...]) -> bool:
    kind = _kind(value)
    return kind != "compound" and kind == _kind(operand) and bool(value == operand)


def _ordered(operator: Operator, value: Any, operand: Any) -> bool:
    kind = _kind(value)
    if kind not in {"number", "text"} or kind != _kind(operand):
        return False
    match operator:
        case Operator.GT:
            return bool(value > operand)
        case Operator.GTE:
            return bool(value >= operand)
        case Operator.LT:
            return bool(value < operand)
        case _:
            return bool(value <= operand)


def _as_tuple(operand: Any) -> tuple[Scalar, ...]:
    return operand if isinstance(operand, tuple) else (operand,)


class Expiry(StrEnum):
    """Which entries a read sees by their expiry."""

    LIVE = "live"
    EXPIRED = "expired"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """What an entry must be, beside lying in the scope. All conditions must hold.

    `now` decides expiry and is required, so that no read forgets it. `tags` must all be there,
    `tags_any` at least one; both compare exactly. Minima are inclusive, `*_before` is strict.
    """

    now: datetime
    expiry: Expiry = Expiry.LIVE
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

    def matches(self, entry: MemoryEntry) -> bool:
        """Whether the entry passes: the reference that every adapter is held to."""
        return (
            (self.expiry is Expiry.ANY or entry.is_expired(self.now) == (self.expiry is Expiry.EXPIRED))
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
