"""Which memories a call may reach, as a condition by which SQLite finds them without looking at others'."""

from __future__ import annotations

from lamina.adapters._shared.where_sql import Sql, conjunction, filter_sql, scope_sql
from lamina.adapters.turso.tables import Tables
from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope

__all__ = ["condition_of"]


def condition_of(tables: Tables, scope: Scope, filter: MemoryFilter) -> Sql:
    """What a memory `m` must be to lie in the scope and pass the filter."""
    asked = filter_sql(
        filter,
        has_vector="(m.dimensions IS NOT NULL)",
        superseded_by="json_extract(m.entry, '$.superseded_by')",
        valid_until="json_extract(m.entry, '$.valid_until')",
    )
    if scope.owner is None:
        return conjunction([scope_sql(scope, filter.layers, partition="m"), asked])
    # SQLite would rather read a tenant in order than an owner out of order. The plus keeps it from that.
    return conjunction([_found_by_owner(tables, scope), scope_sql(scope, filter.layers, partition="+m"), asked])


def _found_by_owner(tables: Tables, scope: Scope) -> Sql:
    own = "SELECT seq FROM {memories} INDEXED BY {by_place} WHERE tenant = ? AND owner = ?"
    parameters = [scope.tenant, scope.owner]
    if scope.namespace is not None:
        own += " AND namespace = ?"
        parameters.append(scope.namespace)
    if scope.include_shared:
        own += " UNION ALL SELECT seq FROM {memories} INDEXED BY {by_shared} WHERE tenant = ? AND {shared}"
        parameters.append(scope.tenant)
    return tables.sql(f"m.seq IN ({own})", *parameters)
