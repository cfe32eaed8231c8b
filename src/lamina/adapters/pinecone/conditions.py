"""Scopes and filters in Pinecone's own terms.

It compares texts and booleans for equality, numbers as 64-bit floats, and knows whether a list of
texts has an element. What the user's metadata hold is in such a list, as tokens (see
`lamina.adapters._shared.leaves`), so equality, membership and presence are exact; order and parts of
texts are not to be had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from lamina.adapters._shared.leaves import element_token, presence_token, tag_token, value_token
from lamina.adapters._shared.split_instants import instant
from lamina.adapters.pinecone.rows import ANY_RECORD
from lamina.domain.conditions import And, Compare, Filter, Not, Operator, Or
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import SHARED_LAYERS, Layer
from lamina.domain.scope import Scope

__all__ = ["Condition", "both", "in_layer", "in_scope", "passing"]

Condition: TypeAlias = dict[str, Any]

_ALWAYS: Final[Condition] = {"labels": {"$in": [ANY_RECORD]}}
_NEVER: Final[Condition] = {"labels": {"$in": ["!"]}}
"""No record has this label."""


def both(conditions: Iterable[Condition]) -> Condition:
    """All of them."""
    parts = list(conditions)
    return parts[0] if len(parts) == 1 else {"$and": parts}


def in_scope(scope: Scope) -> list[Condition]:
    """Conditions of lying in the scope; the tenant's is always among them."""
    conditions: list[Condition] = [{"tenant": {"$eq": scope.tenant}}]
    if scope.namespace is not None:
        conditions.append({"namespace": {"$eq": scope.namespace}})
    if scope.owner is not None:
        own: Condition = {"owner": {"$eq": scope.owner}}
        shared = {"layer": {"$in": sorted(layer.value for layer in SHARED_LAYERS)}}
        conditions.append({"$or": [own, shared]} if scope.include_shared else own)
    return conditions


def in_layer(layer: Layer) -> Condition:
    """Lying in the layer."""
    return {"layer": {"$eq": layer.value}}


def passing(filter: MemoryFilter) -> list[Condition]:
    """Conditions of passing the filter, whose `where` has no gap."""
    conditions = list(_in_time(filter))
    if filter.layers is not None:
        conditions.append({"layer": {"$in": sorted(each.value for each in filter.layers)}} if filter.layers else _NEVER)
    conditions += [_has(tag_token(tag)) for tag in filter.tags]
    if filter.tags_any:
        conditions.append(_has(*map(tag_token, filter.tags_any)))
    if filter.min_relevance is not None:
        conditions.append({"relevance": {"$gte": filter.min_relevance}})
    if filter.min_confidence is not None:
        conditions.append({"confidence": {"$gte": filter.min_confidence}})
    if filter.has_embedding is not None:
        conditions.append({"length": {"$gt" if filter.has_embedding else "$eq": 0}})
    if filter.where is not None:
        conditions.append(_where(filter.where, wanted=True))
    return conditions


def _in_time(filter: MemoryFilter) -> Iterator[Condition]:
    if filter.expiry is not Expiry.ANY:
        later = _compared("expires", "$gt", filter.now)
        yield later if filter.expiry is Expiry.LIVE else _not_later("expires", filter.now)
    if filter.current:
        yield {"$or": [{"holds_s": {"$exists": False}}, _compared("holds", "$gt", filter.now)]}
    for name, before in (("created", filter.created_before), ("updated", filter.updated_before)):
        if before is not None:
            yield _compared(name, "$lt", before)


def _compared(name: str, operator: str, when: datetime) -> Condition:
    """Whether an instant lies strictly before or after another: by seconds, and within one by microseconds."""
    (seconds, second), (micros, microsecond) = instant(name, when).items()
    same = {"$and": [{seconds: {"$eq": second}}, {micros: {operator: microsecond}}]}
    return {"$or": [{seconds: {operator: second}}, same]}


def _not_later(name: str, when: datetime) -> Condition:
    (seconds, second), (micros, microsecond) = instant(name, when).items()
    same = {"$and": [{seconds: {"$eq": second}}, {micros: {"$lte": microsecond}}]}
    return {"$or": [{seconds: {"$lt": second}}, same]}


def _has(*labels: str) -> Condition:
    return {"labels": {"$in": list(dict.fromkeys(labels))}} if labels else _NEVER


def _lacks(*labels: str) -> Condition:
    return {"labels": {"$nin": list(dict.fromkeys(labels))}} if labels else _ALWAYS


def _where(where: Filter, *, wanted: bool) -> Condition:
    """The condition, or its opposite: there is no operator for that, so it is pushed down to the labels."""
    if isinstance(where, Not):
        return _where(where.part, wanted=not wanted)
    if isinstance(where, And | Or):
        parts = [_where(part, wanted=wanted) for part in where.parts]
        is_all = isinstance(where, And) is wanted
        if not parts:
            return _ALWAYS if is_all else _NEVER
        return {"$and" if is_all else "$or": parts}
    return _comparison(where, wanted=wanted)


def _comparison(compare: Compare, *, wanted: bool) -> Condition:
    path, operator, operand = compare.path, compare.operator, compare.operand
    values: Sequence[Any] = operand if isinstance(operand, tuple) else (operand,)
    match operator:
        case Operator.EXISTS:
            return (_has if bool(operand) is wanted else _lacks)(presence_token(path))
        case Operator.CONTAINS:
            return (_has if wanted else _lacks)(element_token(path, values[0]))
    tokens = [value_token(path, value) for value in values]
    if operator in {Operator.EQ, Operator.IN}:
        return (_has if wanted else _lacks)(*tokens)
    if wanted:
        return {"$and": [_has(presence_token(path)), _lacks(*tokens)]}
    return {"$or": [_lacks(presence_token(path)), _has(*tokens)]}
