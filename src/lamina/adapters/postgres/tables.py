"""A collection's tables: their names, all made from one checked name, and a tenant's view of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from lamina.adapters._shared.options import checked_table
from lamina.databases.postgres.migrations import Component
from lamina.databases.postgres.schema import Schema, Session

__all__ = ["TENANT", "Collection", "collection_of", "name_of"]

TENANT: Final = "lamina.tenant"
"""The setting, local to each transaction, that the policies of row-level security look at."""

STEPS: Final = ("001_tables.sql",)

_LONGEST: Final = 63
_TABLES: Final = ("tenants", "words", "vectors", "history", "meta")
_INDEXES: Final = ("by_owner", "by_shared", "by_digest", "by_expiry", "words_by_word")
_FRAGMENTS: Final[dict[str, LiteralString]] = {
    "set_tenant": "(SELECT key FROM {tenants} WHERE name = current_setting('lamina.tenant', true))",
    "this_tenant": "(SELECT key FROM {tenants} WHERE name = %s)",
}


def collection_of(schema: str, table: str) -> Component:
    """The collection of this name, as a user of the database joins it.

    Raises:
        ConfigError: the table or the schema cannot have this name.
    """
    checked_table(table, letter_first=True)
    tables = {"memories": table} | {part: name_of(table, part) for part in _TABLES}
    names = {part: name_of(table, part) for part in _INDEXES}
    steps = [files("lamina.adapters.postgres").joinpath(name).read_text("utf-8") for name in STEPS]
    return Component(f"memories of {table}", Schema(schema, _FRAGMENTS, tables=tables, names=names), steps)


def name_of(table: str, part: str) -> str:
    """The name of what belongs to the table; what would be too long is cut, and told apart by a digest."""
    name = f"{table}_{part}"
    if len(name) <= _LONGEST:
        return name
    tail = f"_{hashlib.sha256(table.encode()).hexdigest()[:8]}_{part}"
    return table[: _LONGEST - len(tail)] + tail


@dataclass(frozen=True, slots=True)
class Collection:
    """The memories of one tenant, as one transaction sees them."""

    session: Session
    tenant: str

    def execute(
        self, template: LiteralString, parameters: Sequence[Any] = (), /, **parts: LiteralString | sql.Composable
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement, as `Session.execute`; `{this_tenant}` takes the tenant's name as its parameter."""
        return self.session.execute(template, parameters, **parts)

    def together(self) -> AbstractContextManager[object]:
        """As `Session.together`."""
        return self.session.together()
