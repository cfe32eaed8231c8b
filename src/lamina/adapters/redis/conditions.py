"""Scopes and filters as one tree over tokens and sort keys, which two evaluators read.

The script that walks through sorted sets evaluates it as it stands, exactly. The query engine gets it
as a query: there, numbers are 64-bit floats, so that instants after the year 2255 may let a little too
much pass; what it finds is checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from lamina.adapters._shared.leaves import element_token, presence_token, value_token
from lamina.adapters.redis.layout import (
    CEASES,
    CONFIDENCE,
    CREATED,
    CURRENT,
    EXPIRES,
    HAS_VECTOR,
    RELEVANCE,
    UPDATED,
    SortKey,
    instant_text,
    layer_token,
    leaf_token,
    name_token,
    real_text,
    tag_token,
    tenant_token,
)
from lamina.domain.conditions import And, Compare, Filter, Not, Operator, Or, Scalar
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import SHARED_LAYERS, Layer
from lamina.domain.scope import Scope

__all__ = ["Condition", "filter_tree", "places", "query_of", "scope_tree", "script_of"]

_EXACT: Final = 2**53
"""Whole numbers up to here are 64-bit floats of their own."""


@dataclass(frozen=True, slots=True)
class Has:
    """The memory has the token."""

    token: str


@dataclass(frozen=True, slots=True)
class Range:
    """A number or instant of the memory stands so to another one."""

    key: SortKey
    operator: str
    value: float | datetime


@dataclass(frozen=True, slots=True)
class Both:
    """Every part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Some part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """The part does not hold."""

    part: Condition


Condition: TypeAlias = "Has | Range | Both | Either | Negated"

_NOTHING: Final = Has("never")
"""A token that no memory has."""


def scope_tree(tenant: str, scope: Scope) -> Condition:
    """What the scope admits of the tenant with this token."""
    parts: list[Condition] = [Has(tenant_token(tenant))]
    if scope.namespace is not None:
        parts.append(Has(name_token("n", scope.namespace)))
    if scope.owner is not None:
        owned = Has(name_token("o", scope.owner))
        shared = tuple(Has(layer_token(layer)) for layer in sorted(SHARED_LAYERS))
        parts.append(Either((owned, *shared)) if scope.include_shared else owned)
    return Both(tuple(parts))


def places(scope: Scope, layers: Iterable[Layer] | None) -> list[str]:
    """The sorted sets that together hold just what the scope and the layers admit, each memory once."""

    def place(owner: str | None) -> str:
        if owner is not None and scope.namespace is not None:
            return f"p{name_token('', owner)}{name_token('', scope.namespace)}"
        if owner is not None:
            return name_token("o", owner)
        return "t" if scope.namespace is None else name_token("n", scope.namespace)

    return [
        layer.value[0] + place(None if scope.include_shared and layer in SHARED_LAYERS else scope.owner)
        for layer in (Layer if layers is None else sorted(layers))
    ]


def filter_tree(filter: MemoryFilter) -> Condition:
    """What the filter admits."""
    parts: list[Condition] = []
    if filter.layers is not None:
        parts.append(Either(tuple(Has(layer_token(layer)) for layer in sorted(filter.layers))))
    parts += [Has(tag_token(tag)) for tag in filter.tags]
    if filter.tags_any:
        parts.append(Either(tuple(Has(tag_token(tag)) for tag in filter.tags_any)))
    if filter.has_embedding is not None:
        parts.append(Has(HAS_VECTOR) if filter.has_embedding else Negated(Has(HAS_VECTOR)))
    parts += _in_time(filter)
    for key, least in ((RELEVANCE, filter.min_relevance), (CONFIDENCE, filter.min_confidence)):
        if least is not None and least > 0:
            parts.append(Range(key, ">=", least))
    if filter.where is not None:
        parts.append(_where_tree(filter.where))
    return Both(tuple(parts))


def _in_time(filter: MemoryFilter) -> Iterator[Condition]:
    if filter.expiry is not Expiry.ANY:
        yield Range(EXPIRES, ">" if filter.expiry is Expiry.LIVE else "<=", filter.now)
    if filter.current:
        yield Either((Negated(Has(CEASES)), Range(CURRENT, ">", filter.now)))
    for key, end in ((CREATED, filter.created_before), (UPDATED, filter.updated_before)):
        if end is not None:
            yield Range(key, "<", end)


def script_of(condition: Condition) -> list[Any]:
    """The tree as `scan.lua` reads it."""
    match condition:
        case Has(token):
            return ["has", token]
        case Range(key, operator, value):
            written = instant_text(value) if isinstance(value, datetime) else real_text(value)
            return [operator, key.first, key.last, written]
        case Negated(part):
            return ["not", script_of(part)]
        case Both(parts):
            return ["and", *map(script_of, parts)]
        case Either(parts):
            return ["or", *map(script_of, parts)]


def query_of(condition: Condition) -> str:
    """The tree in the query engine's language; of what came from outside, only hashes and numbers are in it."""
    match condition:
        case Has(token):
            return f"@a:{{{token}}}"
        case Range(key, operator, value):
            return f"@{key.field}:[{_bounds(operator, value)}]"
        case Negated(part):
            return f"-({query_of(part)})"
        case Both(()):
            return query_of(Negated(_NOTHING))
        case Either(()):
            return query_of(_NOTHING)
        case Both(parts):
            return " ".join(f"({query_of(part)})" for part in parts)
        case Either(parts):
            tokens = [part.token for part in parts if isinstance(part, Has)]
            others = [f"({query_of(part)})" for part in parts if not isinstance(part, Has)]
            return "|".join([*([f"@a:{{{'|'.join(tokens)}}}"] if tokens else []), *others])


def _bounds(operator: str, value: float | datetime) -> str:
    number = to_micros(value) if isinstance(value, datetime) else value
    exclusive = "" if operator in {">=", "<="} or abs(number) > _EXACT else "("
    return f"{exclusive}{number!r} +inf" if operator.startswith(">") else f"-inf {exclusive}{number!r}"


def _where_tree(where: Filter) -> Condition:
    match where:
        case Not(part):
            return Negated(_where_tree(part))
        case And(parts):
            return Both(tuple(map(_where_tree, parts)))
        case Or(parts):
            return Either(tuple(map(_where_tree, parts)))
        case Compare():
            return _compare_tree(where)


def _compare_tree(compare: Compare) -> Condition:
    path, operand = compare.path, compare.operand
    present = Has(leaf_token(presence_token(path)))
    values: Sequence[Scalar] = operand if isinstance(operand, tuple) else (operand,)
    same = Either(tuple(Has(leaf_token(value_token(path, each))) for each in values))
    match compare.operator:
        case Operator.EXISTS:
            return present if operand else Negated(present)
        case Operator.EQ | Operator.IN:
            return same
        case Operator.NE | Operator.NOT_IN:
            return Both((present, Negated(same)))
        case _:  # an element of a list: `filter_gap` refuses the rest
            return Either(tuple(Has(leaf_token(element_token(path, each))) for each in values))
