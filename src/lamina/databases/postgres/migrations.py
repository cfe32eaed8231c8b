"""What a schema holds, version by version: numbered steps, forward only, one component beside another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

import psycopg

from lamina.databases.postgres.failures import BACKEND, damaged
from lamina.databases.postgres.schema import Schema, Session
from lamina.errors import ConfigError, StoreDamaged

__all__ = ["Component", "check_version", "migrate", "take_turn"]

_UPGRADE: Final = "Use the newest Lamina with this database; it was not changed."

_VERSIONS: Final = """
CREATE TABLE IF NOT EXISTS {schema}.schema_version (
    component text PRIMARY KEY,
    version integer NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class Component:
    """What one kind of store keeps in a schema.

    `steps` are texts of SQL as `Schema.sql` takes them. Step n makes version n out of version n - 1. A step
    that was released is never changed.
    """

    name: str
    schema: Schema
    steps: Sequence[LiteralString]


def migrate(session: Session, component: Component) -> None:
    """Bring the component to the newest version, within one transaction, one process at a time.

    Raises:
        StoreDamaged: it was written by a newer Lamina; nothing was changed.
        ConfigError: the schema has a table of that name already, which is somebody else's.
    """
    if _version_to_begin_with(session, component) == len(component.steps):
        return
    take_turn(session)
    _create_schema(session)
    session.execute(_VERSIONS)
    version = _version_to_begin_with(session, component)  # another process may have been faster
    for number in range(version, len(component.steps)):
        _take_step(session, component, number)


def take_turn(session: Session) -> None:
    """For the rest of the transaction, be the only one that changes what the schema holds."""
    # A step may take its time; what is bounded is the wait for another process that takes one.
    session.execute("SELECT set_config('lock_timeout', current_setting('statement_timeout'), true)")
    session.execute("SELECT set_config('statement_timeout', '0', true)")
    session.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_of(session.schema),))


def check_version(session: Session, component: Component) -> None:
    """Raise if another process has migrated the component since it was opened here: old code must not write."""
    version = _version(session, component)
    if version != len(component.steps):
        raise _wrong(component, version)


def _version_to_begin_with(session: Session, component: Component) -> int:
    (has_versions,) = session.execute(
        "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = 'schema_version')",
        (component.schema.name,),
    ).fetchone() or (False,)
    version = _version(session, component) if has_versions else 0
    if version > len(component.steps):
        raise _wrong(component, version)
    return version


def _version(session: Session, component: Component) -> int:
    query: LiteralString = "SELECT version FROM {schema}.schema_version WHERE component = %s"
    row = session.execute(query, (component.name,)).fetchone()
    return row[0] if row else 0


def _take_step(session: Session, component: Component, number: int) -> None:
    try:
        session.execute(component.steps[number])
    except psycopg.errors.DuplicateTable as error:
        problem = f"the schema {component.schema.name} has a table of {component.name} that Lamina did not make"
        raise ConfigError("schema", problem, "Choose another schema.") from error
    session.execute(
        "INSERT INTO {schema}.schema_version (component, version) VALUES (%s, %s)"
        " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
        (component.name, number + 1),
    )


def _create_schema(session: Session) -> None:
    # Not IF NOT EXISTS, which demands the right to create schemas even where there is nothing to create.
    if not session.execute("SELECT FROM pg_namespace WHERE nspname = %s", (session.schema.name,)).rowcount:
        session.execute("CREATE SCHEMA {schema}")


def _lock_of(schema: Schema) -> int:
    """The number of the advisory lock around the schema's migrations."""
    digest = hashlib.sha256(f"lamina schema {schema.name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _wrong(component: Component, version: int) -> StoreDamaged:
    if version < 1:
        return damaged(f"{component.schema.name} no longer says which version of {component.name} it holds")
    problem = f"{component.name} has the version {version} in the schema {component.schema.name}, and this Lamina "
    return StoreDamaged(BACKEND, f"{problem}knows {len(component.steps)}", _UPGRADE)
