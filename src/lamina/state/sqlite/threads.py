"""Heads of threads, inside the transaction of one job."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from lamina.domain.instants import to_micros
from lamina.domain.message_json import json_text
from lamina.domain.thread import Thread, ThreadKind, ThreadRef, ThreadStatus
from lamina.state.sqlite.rows import THREAD, thread_of, values_of_thread

__all__ = [
    "create_thread",
    "delete_thread",
    "find_thread",
    "get_thread",
    "list_threads",
    "thread_with_size",
    "update_thread",
]


def find_thread(connection: sqlite3.Connection, ref: ThreadRef) -> tuple[int, Thread] | None:
    """The head and its key."""
    found = thread_with_size(connection, ref)
    return None if found is None else found[:2]


def thread_with_size(connection: sqlite3.Connection, ref: ThreadRef) -> tuple[int, Thread, int, int] | None:
    """The key and the head, with how many live messages it has and their tokens."""
    query = (
        f"SELECT {THREAD}, key, live_count, live_tokens FROM lamina_threads "  # noqa: S608 - our own columns
        "WHERE tenant = ? AND kind = ? AND id = ?"
    )
    row = connection.execute(query, (ref.tenant, ref.kind.value, ref.id)).fetchone()
    if row is None:
        return None
    *head, key, count, tokens = row
    return key, thread_of(head), count, tokens


def get_thread(connection: sqlite3.Connection, ref: ThreadRef) -> Thread | None:
    """As `StateStore.get_thread`."""
    found = find_thread(connection, ref)
    return None if found is None else found[1]


def create_thread(connection: sqlite3.Connection, thread: Thread) -> Thread:
    """As `StateStore.create_thread`, with a thread that passed `storable_thread`."""
    found = find_thread(connection, thread.ref)
    if found is not None:
        return found[1]
    query = (
        "INSERT INTO lamina_threads (tenant, kind, id, owner, namespace, status, created_at, updated_at, metadata) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    connection.execute(query, values_of_thread(thread))
    return thread


def list_threads(
    connection: sqlite3.Connection,
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
    conditions: list[str] = ["tenant = ?", "kind = ?"]
    parameters: list[Any] = [tenant, kind.value]
    for column, value in (("owner", owner), ("status", status)):
        if value is not None:
            conditions.append(f"{column} = ?")
            parameters.append(str(value))
    if after is not None:
        at = to_micros(after[0])
        conditions.append("updated_at <= ? AND (updated_at < ? OR id > ?)")
        parameters += [at, at, after[1]]
    query = (
        f"SELECT {THREAD} FROM lamina_threads WHERE {' AND '.join(conditions)} "  # noqa: S608
        "ORDER BY updated_at DESC, id LIMIT ? OFFSET ?"
    )
    return [thread_of(row) for row in connection.execute(query, (*parameters, limit, offset))]


def update_thread(
    connection: sqlite3.Connection,
    ref: ThreadRef,
    *,
    now: datetime,
    status: ThreadStatus | None,
    metadata: dict[str, Any] | None,
    expected_revision: int | None,
) -> bool:
    """As `StateStore.update_thread`."""
    query = (
        "UPDATE lamina_threads SET status = ifnull(?, status), metadata = ifnull(?, metadata), updated_at = ?, "
        "revision = revision + 1 WHERE tenant = ? AND kind = ? AND id = ? AND revision = ifnull(?, revision)"
    )
    text = None if metadata is None else json_text(metadata)
    row = (status, text, to_micros(now), ref.tenant, ref.kind.value, ref.id, expected_revision)
    return connection.execute(query, row).rowcount > 0


def delete_thread(
    connection: sqlite3.Connection, ref: ThreadRef, expected_revision: int | None, expected_created_at: datetime | None
) -> bool:
    """As `StateStore.delete_thread`."""
    found = find_thread(connection, ref)
    if found is None:
        return False
    key, head = found
    if expected_revision not in {None, head.revision} or expected_created_at not in {None, head.created_at}:
        return False
    connection.execute("DELETE FROM lamina_messages WHERE thread = ?", (key,))
    connection.execute("DELETE FROM lamina_summaries WHERE thread = ?", (key,))
    connection.execute("DELETE FROM lamina_threads WHERE key = ?", (key,))
    return True
