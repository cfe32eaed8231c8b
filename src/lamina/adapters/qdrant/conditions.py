"""Scopes and filters as conditions of Qdrant: equality of keywords, ranges of instants and numbers.

Metadata is asked through its leaves: equality is membership in one array of tokens, order of numbers
a range within one element of an array. The server compares ranges as 64-bit floats, so a bound that
those do not tell from its neighbours has a gap; instants it compares as whole microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from qdrant_client import models

from lamina.adapters._shared.gaps import first_gap
from lamina.adapters._shared.leaves import element_token, presence_token, value_token
from lamina.adapters.qdrant.points import MEMORY
from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Not, Operator, Or
from lamina.domain.memory import SHARED_LAYERS
from lamina.domain.scope import Scope

__all__ = ["admitted", "any_of", "gap_of", "instants", "is_equal", "scoped", "within"]

Condition = Any
"""What a filter's lists take; the library's name for it is a union of many."""

_ORDERS: Final = {Operator.GT: "gt", Operator.GTE: "gte", Operator.LT: "lt", Operator.LTE: "lte"}
_EXACT: Final = 2**53

_NEVER: Final = models.FieldCondition(key="kind", match=models.MatchValue(value=""))
_ALWAYS: Final = models.Filter(must_not=[_NEVER])


def is_equal(key: str, value: str | int) -> models.FieldCondition:
    """The field has this value, or it among others."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def any_of(key: str, values: Sequence[str]) -> models.FieldCondition:
    """The field has one of the values; none for no values."""
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values))) if values else _NEVER


def within(key: str, **bounds: float) -> models.FieldCondition:
    """The number lies within the bounds: `gt`, `gte`, `lt`, `lte`."""
    return models.FieldCondition(key=key, range=models.Range(**bounds))


def instants(key: str, **bounds: datetime) -> models.FieldCondition:
    """The instant lies within the bounds, compared as whole microseconds."""
    return models.FieldCondition(key=key, range=models.DatetimeRange(**bounds))


def scoped(scope: Scope) -> list[Condition]:
    """Memories of the scope."""
    conditions: list[Condition] = [is_equal("tenant", scope.tenant), is_equal("kind", MEMORY)]
    if scope.namespace is not None:
        conditions.append(is_equal("namespace", scope.namespace))
    if scope.owner is not None:
        own = is_equal("owner", scope.owner)
        shared = any_of("layer", sorted(layer.value for layer in SHARED_LAYERS))
        conditions.append(models.Filter(should=[own, shared]) if scope.include_shared else own)
    return conditions


def admitted(scope: Scope, filter: MemoryFilter, *more: Condition) -> models.Filter:
    """Memories that scope and filter admit, and that meet the other conditions."""
    must: list[Condition] = [*scoped(scope), *more]
    must_not: list[Condition] = [instants("current_until", lte=filter.now)] if filter.current else []
    if filter.expiry is not Expiry.ANY:
        expired = instants("expires_at", lte=filter.now)
        (must if filter.expiry is Expiry.EXPIRED else must_not).append(expired)
    if filter.layers is not None:
        must.append(any_of("layer", sorted(layer.value for layer in filter.layers)))
    must += [is_equal("tags", tag) for tag in filter.tags]
    if filter.tags_any:
        must.append(any_of("tags", filter.tags_any))
    if filter.min_relevance is not None:
        must.append(within("relevance", gte=filter.min_relevance))
    if filter.min_confidence is not None:
        must.append(within("confidence", gte=filter.min_confidence))
    for name, before in (("created_at", filter.created_before), ("updated_at", filter.updated_before)):
        if before is not None:
            must.append(instants(name, lt=before))
    if filter.has_embedding is not None:
        (must if filter.has_embedding else must_not).append(within("dimensions", gte=1))
    if filter.where is not None:
        must.append(_condition(filter.where))
    return models.Filter(must=must, must_not=must_not or None)


def gap_of(where: Filter, *, finds_parts: bool) -> str | None:
    """Why one of the comparisons cannot be left to the engine, or None; `finds_parts` if it finds parts of texts."""

    def gap(compare: Compare) -> str | None:
        operand = compare.operand
        if compare.operator in _ORDERS:
            if isinstance(operand, str):
                return "Qdrant compares no texts by order."
            if isinstance(operand, int | float) and abs(operand) >= _EXACT:
                return "Qdrant orders numbers as 64-bit floats, which are not exact from 2**53 on."
        if compare.operator is Operator.CONTAINS and isinstance(operand, str) and not finds_parts:
            return "Parts of texts are found by Qdrant 1.20 and newer only, and a client as new."
        return None

    return first_gap(where, gap)


def _condition(where: Filter) -> Condition:
    if isinstance(where, And):
        return models.Filter(must=[_condition(part) for part in where.parts]) if where.parts else _ALWAYS
    if isinstance(where, Or):
        return models.Filter(should=[_condition(part) for part in where.parts]) if where.parts else _NEVER
    if isinstance(where, Not):
        return models.Filter(must_not=[_condition(where.part)])
    return _comparison(where)


def _comparison(where: Compare) -> Condition:
    path, operand = where.path, where.operand
    present = is_equal("leaves", presence_token(path))
    values = operand if isinstance(operand, tuple) else (operand,)
    same = any_of("leaves", [value_token(path, each) for each in values])
    match where.operator:
        case Operator.EXISTS:
            return present if operand else models.Filter(must_not=[present])
        case Operator.EQ | Operator.IN:
            return same
        case Operator.NE | Operator.NOT_IN:
            return models.Filter(must=[present], must_not=[same])
        case Operator.CONTAINS:
            element = any_of("leaves", [element_token(path, each) for each in values])
            parts = [_element("texts", path, *_part(each)) for each in values if isinstance(each, str)]
            return models.Filter(should=[element, *parts])
        case _:
            bounds: dict[str, Any] = {_ORDERS[where.operator]: operand}
            return _element("numbers", path, within("is", **bounds))


def _part(text: str) -> list[Condition]:
    """A text that has this part, as the empty one is of every text."""
    return [models.FieldCondition(key="is", match=models.MatchSubstring(substring=text))] if text else []


def _element(key: str, path: tuple[str, ...], *conditions: Condition) -> models.NestedCondition:
    """The array has an element for this path that meets the conditions."""
    filter = models.Filter(must=[is_equal("at", presence_token(path)), *conditions])
    return models.NestedCondition(nested=models.Nested(key=key, filter=filter))
