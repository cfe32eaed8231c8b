"""Scopes and filters as conditions of MongoDB's query language; a user's words only ever stand as values.

Equality, membership and presence are membership in the array `tokens`, so that MongoDB's own rules for
nulls, missing fields, nested arrays, dots and dollars never come in. Order is compared inside one
element of `leaves`: there numbers meet only numbers and text only text, each exactly; text by its
bytes in UTF-8, which is by code point (https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lamina.adapters._shared.leaves import element_token, presence_token, value_token
from lamina.domain.conditions import And, Compare, Filter, Not, Operator, Or, Scalar
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import SHARED_LAYERS
from lamina.domain.scope import Scope

__all__ = ["conjunction", "fits_vector_index", "match_of", "scope_parts"]

_ORDERS: Final = {Operator.GT: "$gt", Operator.GTE: "$gte", Operator.LT: "$lt", Operator.LTE: "$lte"}
_NOTHING: Final[dict[str, Any]] = {"$nor": [{}]}


def match_of(scope: Scope, filter: MemoryFilter) -> dict[str, Any]:
    """What the scope and the filter admit, and nothing else."""
    return conjunction([*scope_parts(scope), *_filter_parts(filter)])


def conjunction(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """All of the parts, of which there is one at least."""
    return {"$and": parts} if len(parts) > 1 else parts[0]


def scope_parts(scope: Scope) -> list[dict[str, Any]]:
    """The scope alone: equality only."""
    parts: list[dict[str, Any]] = [{"tenant": scope.tenant}]
    if scope.owner is not None:
        own = {"owner": scope.owner}
        shared = {"layer": {"$in": sorted(layer.value for layer in SHARED_LAYERS)}}
        parts.append({"$or": [own, shared]} if scope.include_shared else own)
    if scope.namespace is not None:
        parts.append({"namespace": scope.namespace})
    return parts


def fits_vector_index(where: Filter | None) -> bool:
    """Whether a vector search index can evaluate the condition before it ranks.

    Its filters know `$and`, `$or`, `$nor`, comparisons, `$in` and `$nin`, and neither `$elemMatch` nor `$expr`:
    https://www.mongodb.com/docs/vector-search/query/aggregation-stages/vector-search-stage/
    """
    match where:
        case None:
            return True
        case And(parts) | Or(parts):
            return bool(parts) and all(fits_vector_index(part) for part in parts)
        case Not(part):
            return fits_vector_index(part)
        case Compare(_, operator, operand):
            if operator in {Operator.IN, Operator.NOT_IN}:
                return bool(operand)
            return operator not in _ORDERS and not (operator is Operator.CONTAINS and isinstance(operand, str))


def _filter_parts(filter: MemoryFilter) -> list[dict[str, Any]]:
    parts = list(_in_time(filter))
    if filter.layers is not None:
        parts.append({"layer": {"$in": sorted(layer.value for layer in filter.layers)}})
    parts += [{"tags": tag} for tag in filter.tags]
    if filter.tags_any:
        parts.append({"tags": {"$in": list(filter.tags_any)}})
    if filter.min_relevance is not None:
        parts.append({"relevance": {"$gte": float(filter.min_relevance)}})
    if filter.min_confidence is not None:
        parts.append({"confidence": {"$gte": float(filter.min_confidence)}})
    if filter.has_embedding is not None:
        parts.append({"dims": {"$gt": 0} if filter.has_embedding else None})
    if filter.where is not None:
        parts.append(_translate(filter.where))
    return parts


def _in_time(filter: MemoryFilter) -> Iterator[dict[str, Any]]:
    now = to_micros(filter.now)
    if filter.expiry is not Expiry.ANY:
        yield {"ends": {"$gt" if filter.expiry is Expiry.LIVE else "$lte": now}}
    if filter.current:
        yield {"$nor": [{"holds": {"$lte": now}}]}
    for field, before in (("created", filter.created_before), ("updated", filter.updated_before)):
        if before is not None:
            yield {field: {"$lt": to_micros(before)}}


def _translate(where: Filter) -> dict[str, Any]:
    match where:
        case And(parts):
            return {"$and": [_translate(part) for part in parts]} if parts else {}
        case Or(parts):
            return {"$or": [_translate(part) for part in parts]} if parts else _NOTHING
        case Not(part):
            return {"$nor": [_translate(part)]}
        case Compare():
            return _compare(where)


def _compare(compare: Compare) -> dict[str, Any]:
    path = compare.path
    operand: Any = compare.operand
    match compare.operator:
        case Operator.EQ:
            return {"tokens": value_token(path, operand)}
        case Operator.NE:
            return _other_than(path, (operand,))
        case Operator.IN:
            return {"tokens": {"$in": [value_token(path, each) for each in operand]}}
        case Operator.NOT_IN:
            return _other_than(path, operand)
        case Operator.EXISTS:
            present = {"tokens": presence_token(path)}
            return present if operand else {"$nor": [present]}
        case Operator.CONTAINS:
            element = {"tokens": element_token(path, operand)}
            return {"$or": [element, _has_part(path, operand)]} if isinstance(operand, str) else element
        case operator:
            field = "s" if isinstance(operand, str) else "n"
            return {"leaves": {"$elemMatch": {"p": presence_token(path), field: {_ORDERS[operator]: operand}}}}


def _other_than(path: tuple[str, ...], values: tuple[Scalar, ...]) -> dict[str, Any]:
    present = {"tokens": presence_token(path)}
    if not values:
        return present
    return {"$and": [present, {"tokens": {"$nin": [value_token(path, each) for each in values]}}]}


def _has_part(path: tuple[str, ...], part: str) -> dict[str, Any]:
    """Searched for as bytes: a regular expression is refused beyond 32 KB, and an operand has no such limit.

    `$indexOfBytes` is null for a field that is missing, and null is less than 0.
    https://www.mongodb.com/docs/manual/reference/operator/aggregation/indexOfBytes/
    """
    here = {"$eq": ["$$leaf.p", presence_token(path)]}
    found = {"$gte": [{"$indexOfBytes": ["$$leaf.s", {"$literal": part}]}, 0]}
    each = {"$map": {"input": "$leaves", "as": "leaf", "in": {"$and": [here, found]}}}
    return {"$expr": {"$anyElementTrue": [each]}}
