"""Heads of threads, and the tenants that they belong to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, LiteralString

from lamina.databases.postgres.schema import Session
from lamina.domain.message_json import json_text
from lamina.domain.thread import Thread, ThreadKind, ThreadRef, ThreadStatus
from lamina.state.postgres.rows import naming, thread_of

__all__ = [
    "create_thread",
    "delete_thread",
    "get_thread",
    "list_threads",
    "lock_thread",
    "make_thread",
    "tenant_key",
    "update_thread",
]

_INSERT: Final[LiteralString] = (
    "INSERT INTO {schema}.threads (tenant, kind, id, owner, namespace, status, metadata, created_at, updated_at)"
    " VALUES (%(key)s, %(kind)s, %(id)s, %(owner)s, %(namespace)s, %(status)s, %(metadata)s,"
    " %(created_at)s, %(updated_at)s) ON CONFLICT (tenant, kind, id)"
)


def tenant_key(session: Session, tenant: str) -> int:
    """The number that stands for the tenant, given to it now if it has none."""
    row = session.execute("SELECT key FROM {schema}.tenants WHERE name = %s", (tenant,)).fetchone()
    if row is None:  # the update changes nothing; without it, nothing would be returned if another was faster
        insert = (
            "INSERT INTO {schema}.tenants (name) VALUES (%s)"
            " ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING key"
        )
        row = session.execute(insert, (tenant,)).fetchone()
    (key,) = row or (0,)
    return int(key)


def lock_thread(session: Session, ref: ThreadRef) -> tuple[int, Thread] | None:
    """The head and its key. Whoever changes what belongs to a thread locks its row first, and waits here in turn."""
    query = "SELECT {head}, key FROM {schema}.threads WHERE {this_thread} FOR NO KEY UPDATE"
    row = session.execute(query, naming(ref)).fetchone()
    return None if row is None else (row[-1], thread_of(row[:-1]))


def create_thread(session: Session, thread: Thread) -> Thread:
    """As `StateStore.create_thread`, with a thread that passed `storable_thread`."""
    insert = _INSERT + " DO UPDATE SET id = excluded.id RETURNING {head}"  # as above
    (kept,) = session.execute(insert, _parameters(session, thread))
    return thread_of(kept)


def make_thread(session: Session, thread: Thread) -> bool:
    """Insert the head; False, and nothing is done, if there is one of this name."""
    insert = _INSERT + " DO NOTHING RETURNING key"
    return session.execute(insert, _parameters(session, thread)).fetchone() is not None


def _parameters(session: Session, thread: Thread) -> dict[str, Any]:
    return naming(thread.ref) | {
        "key": tenant_key(session, thread.tenant),
        "owner": thread.owner,
        "namespace": thread.namespace,
        "status": thread.status.value,
        "metadata": json_text(thread.metadata),
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
    }


def get_thread(session: Session, ref: ThreadRef) -> Thread | None:
    """As `StateStore.get_thread`."""
    row = session.execute("SELECT {head} FROM {schema}.threads WHERE {this_thread}", naming(ref)).fetchone()
    return None if row is None else thread_of(row)


def list_threads(
    session: Session,
    tenant: str,
    kind: ThreadKind,
    *,
    owner: str | None,
    status: ThreadStatus | None,
    limit: int,
    offset: int,
    after: tuple[datetime, str] | None,
) -> list[Thread]:
    """As `StateStore.list_threads`."""
    query = "SELECT {head} FROM {schema}.threads WHERE {of_tenant} AND kind = %(kind)s"
    parameters: dict[str, Any] = {"tenant": tenant, "kind": kind.value, "limit": limit, "offset": offset}
    if owner is not None:
        query += " AND owner = %(owner)s"
        parameters["owner"] = owner
    if status is not None:
        query += " AND status = %(status)s"
        parameters["status"] = status.value
    if after is not None:
        query += " AND updated_at <= %(at)s AND (updated_at < %(at)s OR id > %(after)s)"
        parameters["at"], parameters["after"] = after
    query += " ORDER BY updated_at DESC, id LIMIT %(limit)s OFFSET %(offset)s"
    return [thread_of(row) for row in session.execute(query, parameters)]


def update_thread(
    session: Session,
    ref: ThreadRef,
    *,
    now: datetime,
    status: ThreadStatus | None,
    metadata: dict[str, Any] | None,
    expected_revision: int | None,
) -> bool:
    """As `StateStore.update_thread`."""
    change = (
        "UPDATE {schema}.threads SET revision = revision + 1, updated_at = %(now)s,"
        " status = coalesce(%(status)s, status), metadata = coalesce(%(metadata)s::json, metadata)"
        " WHERE {this_thread} AND revision = coalesce(%(revision)s, revision)"
    )
    parameters = naming(ref) | {
        "now": now,
        "status": None if status is None else status.value,
        "metadata": None if metadata is None else json_text(metadata),
        "revision": expected_revision,
    }
    return session.execute(change, parameters).rowcount > 0


def delete_thread(
    session: Session, ref: ThreadRef, expected_revision: int | None, expected_created_at: datetime | None
) -> bool:
    """As `StateStore.delete_thread`: its messages and summaries go with the head."""
    query = (
        "DELETE FROM {schema}.threads WHERE {this_thread} AND revision = coalesce(%(revision)s, revision)"
        " AND created_at = coalesce(%(made)s, created_at)"
    )
    parameters = naming(ref) | {"revision": expected_revision, "made": expected_created_at}
    return session.execute(query, parameters).rowcount > 0
