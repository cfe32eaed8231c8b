"""Heads of threads, and the tenants that they belong to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, LiteralString

from lamina.databases.postgres.schema import Session
from lamina.domain.thread import Thread, ThreadKind, ThreadRef, ThreadStatus
from lamina.state.postgres.rows import json_text, naming, read_rows, thread_from_row

__all__ = ["create", "delete", "get", "listed", "make", "tenant_key", "update"]


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


_INSERT: Final[LiteralString] = (
    "INSERT INTO {schema}.threads (tenant, kind, id, owner, namespace, status, metadata, created_at, updated_at)"
    " VALUES (%(key)s, %(kind)s, %(id)s, %(owner)s, %(namespace)s, %(status)s, %(metadata)s,"
    " %(created_at)s, %(updated_at)s) ON CONFLICT (tenant, kind, id)"
)


def create(session: Session, thread: Thread) -> Thread:
    """Insert the head, unless there is one of this name; the one that is there then."""
    insert = _INSERT + " DO UPDATE SET id = excluded.id RETURNING {head}"  # as above
    (kept,) = read_rows(thread_from_row, session.execute(insert, _parameters(session, thread)))
    return kept


def make(session: Session, thread: Thread) -> bool:
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


def get(session: Session, ref: ThreadRef) -> Thread | None:
    """The head, or None."""
    query = "SELECT {head} FROM {schema}.threads WHERE {this_thread}"
    found = read_rows(thread_from_row, session.execute(query, naming(ref)))
    return found[0] if found else None


def listed(
    session: Session,
    tenant: str,
    kind: ThreadKind,
    *,
    owner: str | None,
    status: ThreadStatus | None,
    limit: int,
    offset: int,
) -> list[Thread]:
    """Heads, newest activity first."""
    query = "SELECT {head} FROM {schema}.threads WHERE {of_tenant} AND kind = %(kind)s"
    parameters: dict[str, Any] = {"tenant": tenant, "kind": kind.value, "limit": limit, "offset": offset}
    if owner is not None:
        query += " AND owner = %(owner)s"
        parameters["owner"] = owner
    if status is not None:
        query += " AND status = %(status)s"
        parameters["status"] = status.value
    query += " ORDER BY updated_at DESC, id LIMIT %(limit)s OFFSET %(offset)s"
    return read_rows(thread_from_row, session.execute(query, parameters))


def update(
    session: Session,
    ref: ThreadRef,
    *,
    now: datetime,
    status: ThreadStatus | None,
    metadata: dict[str, Any] | None,
    expected_revision: int | None,
) -> bool:
    """Change the head, if it has this revision or if no one is expected."""
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


def delete(session: Session, ref: ThreadRef) -> bool:
    """Delete the head, and with it its messages and summaries."""
    return session.execute("DELETE FROM {schema}.threads WHERE {this_thread}", naming(ref)).rowcount > 0
