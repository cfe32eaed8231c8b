"""Scopes and filters as filters of Firestore.

It evaluates what it can: equality, ranges, one question of an array. What is left over of tags, because there
can be one such question only, is answered on the memories that come back, each of which is looked at anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from google.cloud.firestore_v1.types import query

from lamina.adapters._shared.leaves import element_token, presence_token, value_token
from lamina.adapters._shared.names import key_of_names
from lamina.adapters.firestore.documents import joined
from lamina.adapters.firestore.values import value_of
from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Operator, Or
from lamina.domain.instants import to_micros
from lamina.domain.scope import Scope

__all__ = ["Conditions", "gap_of", "where"]

MAX_VALUES: Final = 30
"""In how many ways a filter may be true, layers and values of an array multiplied: Firestore's limit."""

_Operator: Final[Any] = query.StructuredQuery.FieldFilter.Operator
_ORDERED: Final = (
    "Orders and negations would need an index of Firestore's for each key of the metadata, and a part of a text it "
    "cannot look for."
)
_ONE: Final = (
    f"It can ask one thing of the metadata at a time: that a value is one of at most {MAX_VALUES}, that a list has an "
    "element, or that a key is there, or that any of several such things holds."
)


class Conditions(NamedTuple):
    """What Firestore is asked, and whether all of it."""

    filters: list[Any]
    is_whole: bool

    @classmethod
    def of(cls, scope: Scope, filter: MemoryFilter, *, with_ranges: bool = True) -> Conditions:
        """The conditions for a scope and a filter whose `where` has no gap.

        Without ranges, for a search of vectors, whose indexes know equality only, expiry and the like are left over.
        So is always, what is not current: one range more would double the indexes that Firestore must be given.
        """
        filters = [_scope(scope)]
        ranges = list(_ranges(filter))
        if with_ranges:
            filters += ranges
        if filter.layers is not None:
            filters.append(_one_of("layer", sorted(each.value for each in filter.layers)))
        if filter.has_embedding is not None:
            filters.append(where("embedded", "EQUAL", filter.has_embedding))
        ways = max(1, len(filter.layers or ())) * (1 + (scope.include_shared and scope.owner is not None))
        asked, left = _array(filter, MAX_VALUES // ways)
        return cls([*filters, *asked], not (left or filter.current) and (with_ranges or not ranges))


def where(field: str, operator: str, value: Any) -> Any:
    """A filter on one field."""
    made = query.StructuredQuery.Filter.pb()()
    made.field_filter.field.field_path = field
    made.field_filter.op = _Operator[operator].value
    made.field_filter.value.CopyFrom(value_of(value))
    return made


def gap_of(condition: Filter) -> str | None:
    """Why Firestore cannot evaluate it, or None if it can."""
    found = _tokens(condition)
    if isinstance(found, str):
        return found
    return None if found is None or len(found) <= MAX_VALUES else _ONE


def _scope(scope: Scope) -> Any:
    tenant, owner, namespace = scope.tenant, scope.owner, scope.namespace
    if owner is None:
        if namespace is None:
            return where("tenant_key", "EQUAL", key_of_names("tenant", tenant))
        return where("namespace_key", "EQUAL", key_of_names("namespace", tenant, namespace))
    if namespace is None:
        own = where("owner_key", "EQUAL", key_of_names("owner", tenant, owner))
        shared = where("shared_key", "EQUAL", key_of_names("tenant", tenant))
    else:
        own = where("place_key", "EQUAL", key_of_names("place", tenant, owner, namespace))
        shared = where("shared_namespace_key", "EQUAL", key_of_names("namespace", tenant, namespace))
    return joined([own, shared], "OR") if scope.include_shared else own


def _ranges(filter: MemoryFilter) -> Iterator[Any]:
    if filter.expiry is Expiry.LIVE:
        yield where("expires", "GREATER_THAN", to_micros(filter.now))
    elif filter.expiry is Expiry.EXPIRED:
        yield where("expires", "LESS_THAN_OR_EQUAL", to_micros(filter.now))
    for name in ("relevance", "confidence"):
        least = getattr(filter, f"min_{name}")
        if least is not None:
            yield where(name, "GREATER_THAN_OR_EQUAL", float(least))
    for name in ("created", "updated"):
        before = getattr(filter, f"{name}_before")
        if before is not None:
            yield where(name, "LESS_THAN", to_micros(before))


def _array(filter: MemoryFilter, room: int) -> tuple[list[Any], bool]:
    """The one question of an array, with so many values at most, and whether more was to be asked."""
    tokens = None if filter.where is None else _tokens(filter.where)
    questions = [("leaves", tokens)] if isinstance(tokens, list) else []
    questions += [("tags", [key_of_names("tag", tag)]) for tag in dict.fromkeys(filter.tags)]
    if filter.tags_any:
        questions.append(("tags", [key_of_names("tag", tag) for tag in dict.fromkeys(filter.tags_any)]))
    asked = [_any_of(field, values) for field, values in questions if len(values) <= room][:1]
    return asked, len(asked) < len(questions)


def _tokens(condition: Filter) -> list[str] | str | None:
    """The tokens one of which an entry must have; None for no condition at all, and a sentence for a gap."""
    match condition:
        case Compare():
            return _compare(condition)
        case And():
            known = [each for each in map(_tokens, condition.parts) if each is not None]
            gap = next((each for each in known if isinstance(each, str)), None)
            if gap is not None or len(known) <= 1:
                return gap if gap is not None else (known[0] if known else None)
            return _ONE
        case Or():
            parts = [_tokens(each) for each in condition.parts]
            gap = next((each for each in parts if isinstance(each, str)), None)
            if gap is not None or any(each is None for each in parts):
                return gap
            return list(dict.fromkeys(token for part in parts if isinstance(part, list) for token in part))
        case _:
            return _ORDERED


def _compare(compare: Compare) -> list[str] | str:
    path, operand = compare.path, compare.operand
    match compare.operator:
        case Operator.EQ if not isinstance(operand, tuple):
            return [value_token(path, operand)]
        case Operator.IN if isinstance(operand, tuple):
            return list(dict.fromkeys(value_token(path, each) for each in operand))
        case Operator.EXISTS if operand is True:
            return [presence_token(path)]
        case Operator.CONTAINS if not isinstance(operand, str | tuple):
            return [element_token(path, operand)]
        case _:
            return _ORDERED


def _any_of(field: str, tokens: Sequence[str]) -> Any:
    if len(tokens) == 1:
        return where(field, "ARRAY_CONTAINS", tokens[0])
    return where(field, "ARRAY_CONTAINS_ANY", list(tokens) or [key_of_names("nothing")])


def _one_of(field: str, values: Sequence[str]) -> Any:
    if len(values) == 1:
        return where(field, "EQUAL", values[0])
    return where(field, "IN", list(values) or [key_of_names("nothing")])
