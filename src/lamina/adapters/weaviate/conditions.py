"""Scopes and filters in Weaviate's own terms.

Whole texts, numbers and the elements of lists are compared natively. What the user's metadata hold is in
a list, as tokens (see `lamina.adapters._shared.leaves`), so equality, membership and presence are exact;
order and parts of texts are not to be had, since every property has one kind for all memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from weaviate.classes.query import Filter as Native
from weaviate.collections.classes.filters import FilterReturn

from lamina.adapters._shared.leaves import element_token, presence_token, tag_token, value_token
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.split_instants import instant
from lamina.adapters.weaviate.rows import ANY_OBJECT, place_of
from lamina.domain.conditions import And, Compare, Filter, Not, Operator, Or
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import SHARED_LAYERS, Layer
from lamina.domain.scope import Scope

__all__ = ["Condition", "after", "all_of", "any_in", "in_scope", "is_whole", "passing"]

Condition: TypeAlias = FilterReturn


def any_in(name: str, values: Iterable[str]) -> Condition:
    """One of these texts, or the element of a list, is there; false for none."""
    return Native.by_property(name).contains_any(list(dict.fromkeys(values)) or ["!"])


def is_whole(name: str, value: int) -> Condition:
    """The whole number is this one."""
    return Native.by_property(name).equal(value)


def all_of(conditions: Iterable[Condition]) -> Condition | None:
    """All of them; None for none."""
    parts = list(conditions)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Native.all_of(parts)


def in_scope(scope: Scope) -> list[Condition]:
    """Conditions of lying in the scope, within its tenant."""
    conditions = []
    if scope.namespace is not None:
        conditions.append(any_in("namespace", [key_of_names(scope.namespace)]))
    if scope.owner is not None:
        own = any_in("owner", [key_of_names(scope.owner)])
        shared = in_layers(SHARED_LAYERS)
        conditions.append(Native.any_of([own, shared]) if scope.include_shared else own)
    return conditions


def in_layers(layers: Iterable[Layer]) -> Condition:
    """Lying in one of the layers."""
    return any_in("layer", sorted(each.value for each in layers))


def after(seq: int) -> Condition:
    """Having a greater `seq`."""
    return _greater(list(place_of(seq).items()))


def passing(filter: MemoryFilter) -> list[Condition]:
    """Conditions of passing the filter, whose `where` has no gap."""
    conditions = [*_in_time(filter)]
    if filter.layers is not None:
        conditions.append(in_layers(filter.layers))
    conditions += [_has(tag_token(tag)) for tag in filter.tags]
    if filter.tags_any:
        conditions.append(_has(*map(tag_token, filter.tags_any)))
    for name, least in (("relevance", filter.min_relevance), ("confidence", filter.min_confidence)):
        if least is not None:
            conditions.append(Native.by_property(name).greater_or_equal(float(least)))
    if filter.has_embedding is not None:
        length = Native.by_property("length")
        conditions.append(length.greater_than(0) if filter.has_embedding else length.equal(0))
    if filter.where is not None:
        conditions.append(_where(filter.where))
    return conditions


def _in_time(filter: MemoryFilter) -> Iterator[Condition]:
    if filter.expiry is not Expiry.ANY:
        lives = _greater(list(instant("expires", filter.now).items()))
        yield lives if filter.expiry is Expiry.LIVE else Native.not_(lives)
    if filter.current:
        yield Native.not_(_not_after("holds", filter.now))  # what an earlier Lamina wrote has no such instant
    for name, before in (("created", filter.created_before), ("updated", filter.updated_before)):
        if before is not None:
            yield _before(name, before)


def _greater(pair: Sequence[tuple[str, int]]) -> Condition:
    """Whether two numbers are greater than these, the first counting most."""
    (high, most), (low, least) = pair
    same = Native.all_of([is_whole(high, most), Native.by_property(low).greater_than(least)])
    return Native.any_of([Native.by_property(high).greater_than(most), same])


def _not_after(name: str, when: datetime) -> Condition:
    (seconds, second), (micros, microsecond) = instant(name, when).items()
    same = Native.all_of([is_whole(seconds, second), Native.by_property(micros).less_or_equal(microsecond)])
    return Native.any_of([Native.by_property(seconds).less_than(second), same])


def _before(name: str, when: datetime) -> Condition:
    (seconds, second), (micros, microsecond) = instant(name, when).items()
    same = Native.all_of([is_whole(seconds, second), Native.by_property(micros).less_than(microsecond)])
    return Native.any_of([Native.by_property(seconds).less_than(second), same])


def _has(*labels: str) -> Condition:
    return any_in("labels", labels)


def _where(where: Filter) -> Condition:
    if isinstance(where, Not):
        return Native.not_(_where(where.part))
    if isinstance(where, And | Or):
        parts = [_where(part) for part in where.parts]
        if not parts:
            return _has(ANY_OBJECT) if isinstance(where, And) else _has()
        if len(parts) == 1:
            return parts[0]
        return Native.all_of(parts) if isinstance(where, And) else Native.any_of(parts)
    return _comparison(where)


def _comparison(compare: Compare) -> Condition:
    path, operator, operand = compare.path, compare.operator, compare.operand
    values: Sequence[Any] = operand if isinstance(operand, tuple) else (operand,)
    present = _has(presence_token(path))
    match operator:
        case Operator.EXISTS:
            return present if operand else Native.not_(present)
        case Operator.CONTAINS:
            return _has(element_token(path, values[0]))
    some = _has(*(value_token(path, value) for value in values))
    if operator in {Operator.EQ, Operator.IN}:
        return some
    return Native.all_of([present, Native.not_(some)])
