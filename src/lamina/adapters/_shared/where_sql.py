"""Scopes and filters as conditions in SQLite's SQL; the words of users are bound, never part of the text.

The conditions speak of two row sources: `p`, the partition (tenant, owner, namespace, layer), and
`m`, the memory (its columns as in the file format, `metadata` and `tags` as JSON text).

Metadata is entered with `json_each`, one per step of the path, because a bound key then compares as
a value: a JSON path string would have a grammar that a quote or a bracket in a key breaks. Every
condition is 0 or 1 and never NULL, so that NOT means what `lamina.domain.filters` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Not, Operator, Or
from lamina.domain.instants import to_micros
from lamina.domain.memory import SHARED_LAYERS, Layer
from lamina.domain.scope import Scope

__all__ = ["Sql", "conjunction", "filter_sql", "is_plain", "json_list", "scope_sql", "where_sql"]

_FROM_JSON: Final = "(SELECT value FROM json_each(?))"
_TRUE: Final = "1"
_FALSE: Final = "0"
_FEW_TAGS: Final = 8
"""So many tags are looked for in the text before it is taken apart."""
_ORDERS: Final = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and the values of its question marks, in order."""

    text: str
    parameters: tuple[Any, ...] = ()


def conjunction(parts: Iterable[Sql]) -> Sql:
    """All of the parts; true without any."""
    return _joined(" AND ", list(parts)) or Sql(_TRUE)


def json_list(values: Iterable[Any]) -> str:
    """A list as one bound value, for `IN (SELECT value FROM json_each(?))`: no limit on its length."""
    return json.dumps(list(values))


def scope_sql(scope: Scope, layers: frozenset[Layer] | None, *, partition: str = "p") -> Sql:
    """Which partitions the scope admits, of these layers; equality only.

    `partition` is the row source that has the columns `tenant`, `owner`, `namespace` and `layer`.
    """
    p = partition
    parts = [Sql(f"{p}.tenant = ?", (scope.tenant,))]
    if scope.owner is not None:
        if scope.include_shared:
            shared = sorted(layer.value for layer in SHARED_LAYERS)
            parts.append(Sql(f"({p}.owner = ? OR {p}.layer IN ({_marks(shared)}))", (scope.owner, *shared)))
        else:
            parts.append(Sql(f"{p}.owner = ?", (scope.owner,)))
    if scope.namespace is not None:
        parts.append(Sql(f"{p}.namespace = ?", (scope.namespace,)))
    if layers is not None:
        names = sorted(layer.value for layer in layers)
        parts.append(Sql(f"{p}.layer IN ({_marks(names)})", tuple(names)))
    return conjunction(parts)


def is_plain(filter: MemoryFilter) -> bool:
    """Whether the filter asks for nothing but live entries, or live and current ones, of some layers at most."""
    return filter == MemoryFilter(now=filter.now, layers=filter.layers, current=filter.current)


def filter_sql(
    filter: MemoryFilter,
    *,
    has_vector: str,
    superseded_by: str = "m.superseded_by",
    valid_until: str = "m.valid_until",
) -> Sql:
    """What the filter asks of a memory (`m`), its layers aside: those are the scope's (`scope_sql`).

    `has_vector` is the SQL that says whether the memory has a vector, the others what those fields are.
    """
    parts = []
    now = to_micros(filter.now)
    if filter.expiry is Expiry.LIVE:
        parts.append(Sql("(m.expires_at IS NULL OR m.expires_at > ?)", (now,)))
    elif filter.expiry is Expiry.EXPIRED:
        parts.append(Sql("m.expires_at <= ?", (now,)))
    if filter.current:
        parts.append(Sql(f"{superseded_by} IS NULL AND ifnull({valid_until} > ?, 1)", (now,)))
    parts.extend(_tags_sql(filter))
    if filter.min_relevance is not None:
        parts.append(Sql("m.relevance >= ?", (float(filter.min_relevance),)))
    if filter.min_confidence is not None:
        parts.append(Sql("m.confidence >= ?", (float(filter.min_confidence),)))
    if filter.created_before is not None:
        parts.append(Sql("m.created_at < ?", (to_micros(filter.created_before),)))
    if filter.updated_before is not None:
        parts.append(Sql("m.updated_at < ?", (to_micros(filter.updated_before),)))
    if filter.has_embedding is not None:
        parts.append(Sql(has_vector if filter.has_embedding else f"NOT {has_vector}"))
    if filter.where is not None:
        parts.append(where_sql(filter.where))
    return conjunction(parts)


def where_sql(where: Filter) -> Sql:
    """The filter as a condition on `m.metadata`, true exactly where `where.matches(metadata)` is.

    It passed `check_where`: SQLite's parser has a stack of 100, and each level of nesting takes up to
    four places of it.
    """
    return _translate(where)


def _translate(where: Filter) -> Sql:
    match where:
        case And(parts):
            return _joined(" AND ", [_translate(part) for part in parts]) or Sql(_TRUE)
        case Or(parts):
            return _joined(" OR ", [_translate(part) for part in parts]) or Sql(_FALSE)
        case Not(part):
            inner = _translate(part)
            return Sql(f"NOT {inner.text}", inner.parameters)
        case Compare():
            return _compare(where)


def _joined(word: str, parts: Sequence[Sql]) -> Sql | None:
    if not parts:
        return None
    text = word.join(part.text for part in parts)
    parameters = tuple(value for part in parts for value in part.parameters)
    return Sql(f"({text})" if len(parts) > 1 else text, parameters)


def _compare(compare: Compare) -> Sql:
    path = compare.path
    wants_absence = compare.operator is Operator.EXISTS and not compare.operand
    sources = ["json_each(m.metadata) AS j0"]
    for step in range(1, len(path)):
        outer = f"j{step - 1}"
        sources.append(f"json_each(CASE {outer}.type WHEN 'object' THEN {outer}.value ELSE '[]' END) AS j{step}")
    test = _test(compare.operator, compare.operand, f"j{len(path) - 1}")
    keys = " AND ".join(f"j{step}.key = ?" for step in range(len(path)))
    found = f"EXISTS (SELECT 1 FROM {' CROSS JOIN '.join(sources)} WHERE {keys} AND {test.text})"  # noqa: S608
    return Sql(f"NOT {found}" if wants_absence else found, (*path, *test.parameters))


def _test(operator: Operator, operand: Any, source: str) -> Sql:
    match operator:
        case Operator.EXISTS:
            return Sql(_TRUE)
        case Operator.EQ:
            return _same(operand, source)
        case Operator.NE:
            return _negated(_same(operand, source))
        case Operator.IN:
            return _same_as_any(operand, source)
        case Operator.NOT_IN:
            return _negated(_same_as_any(operand, source))
        case Operator.CONTAINS:
            return _contains(operand, source)
        case _:
            return _of_kind(operand, source, _ORDERS[operator])


def _negated(sql: Sql) -> Sql:
    return Sql(f"NOT {sql.text}", sql.parameters)


def _same(operand: Any, source: str) -> Sql:
    if operand is None or isinstance(operand, bool):
        return Sql(f"({source}.type = ?)", (json.dumps(operand),))
    return _of_kind(operand, source, "=")


def _of_kind(operand: Any, source: str, comparison: str) -> Sql:
    """A comparison with a number or a text, false for a value of another kind."""
    if isinstance(operand, str):
        return Sql(f"({source}.type = 'text' AND {source}.value {comparison} ?)", (str(operand),))
    number = f"{source}.type IN ('integer', 'real') AND {source}.value {comparison}"
    if isinstance(operand, int):
        return Sql(f"({number} ?)", (int(operand),))
    # A fraction is bound as JSON, so that both sides went through SQLite's own reading of decimals in JSON.
    return Sql(f"({number} {_FROM_JSON})", (json_list([operand]),))


def _same_as_any(operands: Sequence[Any], source: str) -> Sql:
    names = [json.dumps(each) for each in operands if each is None or isinstance(each, bool)]
    texts = [each for each in operands if isinstance(each, str)]
    numbers = [each for each in operands if isinstance(each, int | float) and not isinstance(each, bool)]
    listed = f"IN {_FROM_JSON}"
    parts = []
    if names:
        parts.append(Sql(f"{source}.type {listed}", (json_list(names),)))
    if texts:
        parts.append(Sql(f"({source}.type = 'text' AND {source}.value {listed})", (json_list(texts),)))
    if numbers:
        kinds = f"{source}.type IN ('integer', 'real')"
        parts.append(Sql(f"({kinds} AND {source}.value {listed})", (json_list(numbers),)))
    joined = _joined(" OR ", parts) or Sql(_FALSE)
    return Sql(f"({joined.text})", joined.parameters)


def _contains(operand: Any, source: str) -> Sql:
    same = _same(operand, "element")
    elements = f"json_each(CASE {source}.type WHEN 'array' THEN {source}.value ELSE '[]' END) AS element"
    parts = [Sql(f"EXISTS (SELECT 1 FROM {elements} WHERE {same.text})", same.parameters)]  # noqa: S608 - bound
    if isinstance(operand, str):
        parts.append(Sql(f"({source}.type = 'text' AND instr({source}.value, ?) > 0)", (str(operand),)))
    return _joined(" OR ", parts) or Sql(_FALSE)


def _tags_sql(filter: MemoryFilter) -> list[Sql]:
    """First what an index of tags can tell without reading a row, then what is exact."""
    parts = []
    if filter.tags or filter.tags_any:
        parts.append(Sql("m.tags <> '[]'"))
    if filter.tags:
        parts += [_may_hold(tag) for tag in filter.tags[:_FEW_TAGS]]
        missing = "SELECT 1 FROM json_each(?) AS asked WHERE asked.value NOT IN (SELECT value FROM json_each(m.tags))"
        parts.append(Sql(f"NOT EXISTS ({missing})", (json_list(filter.tags),)))
    if filter.tags_any:
        if len(filter.tags_any) <= _FEW_TAGS and (some := _joined(" OR ", [*map(_may_hold, filter.tags_any)])):
            parts.append(some)
        found = "SELECT 1 FROM json_each(m.tags) WHERE value IN (SELECT value FROM json_each(?))"
        parts.append(Sql(f"EXISTS ({found})", (json_list(filter.tags_any),)))
    return parts


def _may_hold(tag: str) -> Sql:
    """Whether the tag, as it is written, stands anywhere in the text of the tags; perhaps inside another one."""
    return Sql("instr(m.tags, ?) > 0", (json.dumps(tag, ensure_ascii=False),))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
