"""Scopes and filters as conditions in PostgreSQL's SQL; the words of users are bound, never part of the text.

The conditions speak of `m`, a memory. Metadata is looked at as `jsonb`, entered with `->` and a bound key, which
enters objects and never lists. Numbers there are decimals of any length, so that whole numbers and floats compare
exactly; text compares by the collation C. Every condition is true or false and never NULL, so that NOT
means what `lamina.domain.filters` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lamina.adapters._shared.where_sql import Sql
from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Not, Operator, Or
from lamina.domain.memory import SHARED_LAYERS, Layer
from lamina.domain.scope import Scope

__all__ = ["admitted", "comparable", "where_sql", "within"]

_TRUE: Final = Sql("true")
_FALSE: Final = Sql("false")
_ORDERS: Final = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}


def comparable(value: Any) -> Any:
    """The value with whole floats as whole numbers: as decimals they then are what they are, however large."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: comparable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(each) for each in value]
    return value


def admitted(scope: Scope, filter: MemoryFilter) -> Sql:
    """What scope and filter ask of a memory `m`."""
    return _all([within(scope, filter.layers), *_filter_parts(filter)])


def where_sql(where: Filter) -> Sql:
    """The filter as a condition on `m.metadata`, true exactly where `where.matches(metadata)` is."""
    match where:
        case And(parts):
            return _joined(" AND ", [where_sql(part) for part in parts]) or _TRUE
        case Or(parts):
            return _joined(" OR ", [where_sql(part) for part in parts]) or _FALSE
        case Not(part):
            inner = where_sql(part)
            return Sql(f"(NOT {inner.text})", inner.parameters)
        case Compare():
            return _compare(where)


def within(scope: Scope, layers: frozenset[Layer] | None = None) -> Sql:
    """What the scope asks of a memory `m`, of these layers or of any."""
    parts = [Sql("m.tenant = {this_tenant}", (scope.tenant,))]
    if scope.owner is not None and scope.include_shared:
        shared = sorted(layer.value for layer in SHARED_LAYERS)
        parts.append(Sql("(m.owner = %s OR m.layer = ANY(%s::text[]))", (scope.owner, shared)))
    elif scope.owner is not None:
        parts.append(Sql("m.owner = %s", (scope.owner,)))
    if scope.namespace is not None:
        parts.append(Sql("m.namespace = %s", (scope.namespace,)))
    if layers is not None:
        parts.append(Sql("m.layer = ANY(%s::text[])", (sorted(layer.value for layer in layers),)))
    return _all(parts)


def _filter_parts(filter: MemoryFilter) -> Iterable[Sql]:
    if filter.expiry is Expiry.LIVE:
        yield Sql("(m.expires_at IS NULL OR m.expires_at > %s)", (filter.now,))
    elif filter.expiry is Expiry.EXPIRED:
        yield Sql("coalesce(m.expires_at <= %s, false)", (filter.now,))
    if filter.current:
        yield Sql("m.superseded_by IS NULL AND (m.valid_until IS NULL OR m.valid_until > %s)", (filter.now,))
    compared: Mapping[str, Any] = {
        "m.tags @> %s::text[]": list(filter.tags) or None,
        "m.tags && %s::text[]": list(filter.tags_any) or None,
        "m.relevance >= %s::float8": filter.min_relevance,
        "m.confidence >= %s::float8": filter.min_confidence,
        "m.created_at < %s": filter.created_before,
        "m.updated_at < %s": filter.updated_before,
    }
    for text, value in compared.items():
        if value is not None:
            yield Sql(text, (value,))
    if filter.has_embedding is not None:
        found = "EXISTS (SELECT FROM {vectors} AS h WHERE h.tenant = m.tenant AND h.seq = m.seq)"
        yield Sql(found if filter.has_embedding else f"NOT {found}")
    if filter.where is not None:
        yield where_sql(filter.where)


def _compare(compare: Compare) -> Sql:
    value = Sql(f"(m.metadata{' -> %s::text' * len(compare.path)})", compare.path)
    operand: Any = compare.operand
    match compare.operator:
        case Operator.EXISTS:
            return Sql(f"({value.text} IS {'NOT ' if operand else ''}NULL)", value.parameters)
        case Operator.EQ:
            return _told(value, "= %s::jsonb", _json(operand))
        case Operator.NE:
            return _told(value, "<> %s::jsonb", _json(operand))
        case Operator.IN:
            return _told(value, "= ANY(%s::text[]::jsonb[])", [_json(each) for each in operand])
        case Operator.NOT_IN:
            others = _told(value, "<> ALL(%s::text[]::jsonb[])", [_json(each) for each in operand])
            return _all([Sql(f"{value.text} IS NOT NULL", value.parameters), others])
        case Operator.CONTAINS:
            return _contains(value, operand)
        case order:
            return _ordered(value, _ORDERS[order], operand)


def _told(value: Sql, comparison: str, operand: Any) -> Sql:
    return Sql(f"coalesce({value.text} {comparison}, false)", (*value.parameters, operand))


def _ordered(value: Sql, sign: str, operand: Any) -> Sql:
    if isinstance(operand, str):
        text = f"jsonb_typeof({value.text}) = 'string' AND {_text_of(value)} {sign} %s"
        return Sql(f"coalesce({text}, false)", (*value.parameters, *value.parameters, str(operand)))
    number = f"jsonb_typeof({value.text}) = 'number' AND {value.text} {sign} %s::jsonb"
    return Sql(f"coalesce({number}, false)", (*value.parameters, *value.parameters, _json(operand)))


def _contains(value: Sql, operand: Any) -> Sql:
    element = _told(value, "@> %s::jsonb", _json([operand]))
    if not isinstance(operand, str):
        return element
    text = f"jsonb_typeof({value.text}) = 'string' AND strpos({_text_of(value)}, %s) > 0"
    part = Sql(f"coalesce({text}, false)", (*value.parameters, *value.parameters, str(operand)))
    return _joined(" OR ", [element, part]) or _FALSE


def _text_of(value: Sql) -> str:
    return f"""({value.text} #>> '{{{{}}}}') COLLATE "C\""""


def _json(operand: Any) -> str:
    return json.dumps(comparable(operand), ensure_ascii=False)


def _all(parts: Sequence[Sql]) -> Sql:
    return _joined(" AND ", parts) or _TRUE


def _joined(word: str, parts: Sequence[Sql]) -> Sql | None:
    if not parts:
        return None
    text = word.join(part.text for part in parts)
    parameters = tuple(value for part in parts for value in part.parameters)
    return Sql(f"({text})" if len(parts) > 1 else text, parameters)
