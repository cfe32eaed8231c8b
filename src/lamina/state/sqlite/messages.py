"""Messages of threads, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import Final

from lamina.domain.instants import to_micros
from lamina.domain.storable import MAX_INDEX, is_same_event, placed_event
from lamina.domain.thread import Events, Thread, ThreadEvent, ThreadRef, ThreadStatus
from lamina.errors import ThreadArchivedError, ThreadNotFound
from lamina.state.reading_events import read_events
from lamina.state.sqlite.rows import EVENT, event_of, index_of, key_of, values_of_event
from lamina.state.sqlite.threads import create_thread, find_thread

__all__ = [
    "append",
    "begin_thread",
    "count_live",
    "delete_events",
    "events",
    "events_after",
    "find_events",
    "live_size",
    "replace_events",
    "system_events",
    "system_events_before",
]

_BY_ID: Final = f"SELECT {EVENT} FROM lamina_messages WHERE thread = ? AND id = ?"  # noqa: S608
_BETWEEN: Final = f"SELECT {EVENT} FROM lamina_messages WHERE key > ? AND key < ? ORDER BY key"  # noqa: S608


def append(
    connection: sqlite3.Connection, ref: ThreadRef, given: Sequence[ThreadEvent], now: datetime
) -> list[ThreadEvent]:
    """As `StateStore.append`, with events that passed `storable_event`."""
    found = find_thread(connection, ref)
    if found is None:
        raise ThreadNotFound(ref.id)
    thread, head = found
    if head.status is ThreadStatus.ARCHIVED:
        raise ThreadArchivedError(ref.id)
    last = head.last_index
    parent = _newest_id(connection, thread)
    kept: list[ThreadEvent] = []
    added: list[ThreadEvent] = []
    for event in given:
        row = connection.execute(_BY_ID, (thread, event.message.id)).fetchone()
        if row is not None:
            kept.append(event_of(row))
            continue
        last += 1
        stored = placed_event(event, last, parent=parent, now=now)
        query = (
            "INSERT INTO lamina_messages (key, thread, id, role, tokens, counter, state, message) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        connection.execute(query, (key_of(thread, last), thread, *values_of_event(stored)))
        parent = stored.message.id
        kept.append(stored)
        added.append(stored)
    if added:
        query = (
            "UPDATE lamina_threads SET last_index = ?, updated_at = ?, live_count = live_count + ?, "
            "live_tokens = live_tokens + ? WHERE key = ?"
        )
        connection.execute(query, (last, to_micros(now), len(added), sum(each.tokens for each in added), thread))
    return kept


def begin_thread(
    connection: sqlite3.Connection, thread: Thread, given: Sequence[ThreadEvent], now: datetime
) -> list[ThreadEvent] | None:
    """As `StateStore.begin_thread`, with what passed `storable_thread` and `storable_event`."""
    if find_thread(connection, thread.ref) is not None:
        return None
    create_thread(connection, thread)
    return append(connection, thread.ref, given, now)


def events(
    connection: sqlite3.Connection,
    ref: ThreadRef,
    *,
    after: int,
    before: int | None,
    limit: int | None,
    newest: bool,
) -> Events:
    """As `StateStore.events`."""
    found = find_thread(connection, ref)
    if found is None:
        return Events()
    thread, _ = found
    end = MAX_INDEX + 1 if before is None else min(before, MAX_INDEX + 1)
    start = min(after, MAX_INDEX)
    # Without a LIMIT: rows come one by one as they are asked for, and those that cannot be read do not count.
    rows = connection.execute(f"{_BETWEEN} {'DESC' if newest else 'ASC'}", (key_of(thread, start), key_of(thread, end)))
    with closing(rows):
        read = read_events(rows, event_of, index_of, limit)
    if newest:
        read.reverse()
    return read


def events_after(connection: sqlite3.Connection, thread: int, after: int) -> Events:
    """All events of the thread of this key with a greater index, in order."""
    keys = (key_of(thread, after), key_of(thread, MAX_INDEX + 1))
    return read_events(connection.execute(f"{_BETWEEN} ASC", keys), event_of, index_of)


def find_events(connection: sqlite3.Connection, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
    """As `StateStore.find_events`."""
    found = find_thread(connection, ref)
    if found is None:
        return []
    query = (
        f"SELECT {EVENT} FROM lamina_messages WHERE thread = ? AND id IN (SELECT value FROM json_each(?)) "  # noqa: S608
        "ORDER BY key"
    )
    return [event_of(row) for row in connection.execute(query, (found[0], json.dumps(list(ids))))]


def system_events(connection: sqlite3.Connection, ref: ThreadRef, before: int) -> Events:
    """As `StateStore.system_events`."""
    found = find_thread(connection, ref)
    return Events() if found is None else system_events_before(connection, found[0], before)


def system_events_before(connection: sqlite3.Connection, thread: int, before: int) -> Events:
    """The events of the role system in the thread of this key with a smaller index, in order."""
    query = f"SELECT {EVENT} FROM lamina_messages WHERE thread = ? AND key < ? AND role = 'system' ORDER BY key"  # noqa: S608
    rows = connection.execute(query, (thread, key_of(thread, min(before, MAX_INDEX + 1))))
    return read_events(rows, event_of, index_of)


def replace_events(
    connection: sqlite3.Connection, ref: ThreadRef, new: Sequence[ThreadEvent], expected: Sequence[ThreadEvent]
) -> bool:
    """As `StateStore.replace_events`, with events that passed `storable_replacement`."""
    found = find_thread(connection, ref)
    if found is None:
        return False
    thread, head = found
    old = {each.message.index: _at(connection, thread, each.message.index) for each in (*expected, *new)}
    for event in expected:
        kept = old[event.message.index]
        if kept is None or not is_same_event(kept, event):
            return False
    for event in new:  # before the first is changed
        kept = old[event.message.index]
        if kept is None or kept.message.id != event.message.id:
            return False
    grown = 0
    for event in new:
        query = (
            "UPDATE lamina_messages SET role = ?2, tokens = ?3, counter = ?4, state = ?5, message = ?6 "
            "WHERE key = ?7 AND id = ?1"
        )
        index = event.message.index
        connection.execute(query, (*values_of_event(event), key_of(thread, index)))
        kept = old[index]
        if kept is not None and index > head.folded_through:
            grown += event.tokens - kept.tokens
    _add_live(connection, thread, 0, grown)
    return True


def delete_events(connection: sqlite3.Connection, ref: ThreadRef, ids: Sequence[str]) -> int:
    """As `StateStore.delete_events`."""
    found = find_thread(connection, ref)
    if found is None:
        return 0
    thread, head = found
    query = (
        "DELETE FROM lamina_messages WHERE thread = ? AND id IN (SELECT value FROM json_each(?)) RETURNING key, tokens"
    )
    gone = connection.execute(query, (thread, json.dumps(list(ids)))).fetchall()
    live = [tokens for key, tokens in gone if key > key_of(thread, head.folded_through)]
    _add_live(connection, thread, -len(live), -sum(live))
    return len(gone)


def live_size(connection: sqlite3.Connection, ref: ThreadRef) -> tuple[int, int]:
    """As `StateStore.live_size`: kept in the head, so that a long thread costs no more than a short one."""
    query = "SELECT live_count, live_tokens FROM lamina_threads WHERE tenant = ? AND kind = ? AND id = ?"
    row = connection.execute(query, (ref.tenant, ref.kind.value, ref.id)).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def count_live(connection: sqlite3.Connection, thread: int, *, after: int, through: int) -> tuple[int, int]:
    """How many messages there are with `after < index <= through`, and the sum of their tokens."""
    query = "SELECT count(*), ifnull(sum(tokens), 0) FROM lamina_messages WHERE key > ? AND key <= ?"
    count, tokens = connection.execute(query, (key_of(thread, after), key_of(thread, through))).fetchone()
    return count, tokens


def _add_live(connection: sqlite3.Connection, thread: int, count: int, tokens: int) -> None:
    query = "UPDATE lamina_threads SET live_count = live_count + ?, live_tokens = live_tokens + ? WHERE key = ?"
    connection.execute(query, (count, tokens, thread))


def _at(connection: sqlite3.Connection, thread: int, index: int) -> ThreadEvent | None:
    query = f"SELECT {EVENT} FROM lamina_messages WHERE key = ?"  # noqa: S608
    row = connection.execute(query, (key_of(thread, index),)).fetchone()
    return None if row is None else event_of(row)


def _newest_id(connection: sqlite3.Connection, thread: int) -> str | None:
    query = "SELECT id FROM lamina_messages WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1"
    row = connection.execute(query, (key_of(thread, 0), key_of(thread, MAX_INDEX))).fetchone()
    return None if row is None else row[0]
