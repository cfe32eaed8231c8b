"""Conditions on metadata, and the reference that every adapter's own translation is held to.

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
* A path has at most 8 parts, `in` and `not_in` at most 1,000 values, and a filter at most 64
  comparisons nested at most 16 deep, so that no filter can hold up a backend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from lamina.domain.text import is_clean
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "INT64",
    "MAX_COMPARISONS",
    "MAX_NESTING",
    "MAX_PATH",
    "MAX_VALUES",
    "And",
    "Compare",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Scalar",
    "check_where",
]

Scalar: TypeAlias = str | int | float | bool | None
Filter: TypeAlias = "And | Or | Not | Compare"

MAX_PATH: Final = 8
MAX_VALUES: Final = 1_000
MAX_COMPARISONS: Final = 64
MAX_NESTING: Final = 16
"""A comparison alone is nested 1 deep; `And`, `Or` and `Not` add 1 each."""

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
            if len(self.operand) > MAX_VALUES:
                problem = f"{self.operator} has {len(self.operand)} values"
                raise InvalidInput("where", problem, f"Give at most {MAX_VALUES}, or ask more than once.")
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


def check_where(where: Filter) -> None:
    """Refuse a filter with too many comparisons, or nested too deep.

    Counted without recursion, since the depth is a caller's.
    """
    leaves = 0
    open_parts: list[tuple[Filter, int]] = [(where, 1)]
    while open_parts:
        part, depth = open_parts.pop()
        if depth > MAX_NESTING:
            raise InvalidInput("where", f"is nested deeper than {MAX_NESTING} levels", "Flatten it.")
        if isinstance(part, Not):
            open_parts.append((part.part, depth + 1))
        elif isinstance(part, And | Or) and part.parts:
            open_parts.extend((each, depth + 1) for each in part.parts)
        elif isinstance(part, And | Or | Compare):  # an empty one counts too: it can stand in as many places
            leaves += 1
        else:
            raise InvalidType("where", f"holds a {type(part).__name__}", "Build it with Where, And, Or and Not.")
        if leaves > MAX_COMPARISONS:  # at once, since parts that are shared could be met without end
            remedy = f"Use at most {MAX_COMPARISONS}; `in` takes a list of values."
            raise InvalidInput("where", f"has more than {MAX_COMPARISONS} comparisons", remedy)


def _check_path(path: tuple[object, ...]) -> None:
    if not path or not all(isinstance(part, str) and part for part in path):
        raise InvalidInput("where", f"{path!r} is not a key", "Give text, or a tuple of non-empty texts.")
    if len(path) > MAX_PATH:
        raise InvalidInput("where", f"a path has {len(path)} parts", f"Use at most {MAX_PATH}.")
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
