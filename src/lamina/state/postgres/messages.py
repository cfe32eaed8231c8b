"""Messages of threads, added in order, read by index, replaced by compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lamina.databases.postgres.schema import Session
from lamina.domain.message_json import message_to_json
from lamina.domain.storable import MAX_INDEX, is_same_event
from lamina.domain.thread import Thread, ThreadEvent, ThreadRef, ThreadStatus
from lamina.errors import InvalidInput, ThreadArchivedError, ThreadNotFound
from lamina.state.postgres import threads
from lamina.state.postgres.rows import event_from_row, json_text, naming, read_rows

__all__ = ["append", "begin", "delete", "events", "find", "live_size", "of_system", "replace"]


def append(session: Session, ref: ThreadRef, given: Sequence[ThreadEvent], now: datetime) -> list[ThreadEvent]:
    """Add what the thread has not, and return what it then has of what was given, in that order."""
    lock = "SELECT key, status, last_index FROM {schema}.threads WHERE {this_thread} FOR NO KEY UPDATE"
    row = session.execute(lock, naming(ref)).fetchone()  # whoever appends next waits here, for this one's indexes
    if row is None:
        raise ThreadNotFound(ref.id)
    key, status, last_index = row
    if status == ThreadStatus.ARCHIVED:
        raise ThreadArchivedError(ref.id)
    kept = _by_id(session, key, [event.message.id for event in given])
    parent = _newest_id(session, key)
    added: list[ThreadEvent] = []
    for event in given:
        message = event.message
        if message.id in kept:
            continue
        last_index += 1
        message = message.replace(index=last_index, timestamp=message.timestamp or now, parent=message.parent or parent)
        kept[message.id] = event.replace(message=message)
        added.append(kept[message.id])
        parent = message.id
    if added:
        _insert(session, key, added, now)
    return [kept[event.message.id] for event in given]


def begin(session: Session, thread: Thread, given: Sequence[ThreadEvent], now: datetime) -> list[ThreadEvent] | None:
    """Make the thread with these messages; None if there is one of this name."""
    return append(session, thread.ref, given, now) if threads.make(session, thread) else None


def _insert(session: Session, key: int, added: Sequence[ThreadEvent], now: datetime) -> None:
    last_index = added[-1].message.index
    if last_index > MAX_INDEX:
        raise InvalidInput("thread_id", f"the thread has {MAX_INDEX} messages", "Go on in another thread.")
    insert = (
        "INSERT INTO {schema}.messages (thread, index, id, role, tokens, counter, message, state)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    )
    session.execute_many(insert, [(key, event.message.index, event.message.id, *_values(event)) for event in added])
    update = (
        "UPDATE {schema}.threads SET last_index = %s, updated_at = %s,"
        " live_count = live_count + %s, live_tokens = live_tokens + %s WHERE key = %s"
    )
    session.execute(update, (last_index, now, len(added), sum(event.tokens for event in added), key))


def _values(event: ThreadEvent) -> tuple[Any, ...]:
    """What of an event may be replaced, in the order of the columns."""
    message = event.message
    texts = json_text(message_to_json(message)), json_text(event.state)
    return message.role.value, event.tokens, event.counter, *texts


def _by_id(session: Session, key: int, ids: Sequence[str]) -> dict[str, ThreadEvent]:
    query = "SELECT {event} FROM {schema}.messages WHERE thread = %s AND id = ANY(%s)"
    found = read_rows(event_from_row, session.execute(query, (key, list(ids))))
    return {event.message.id: event for event in found}


def _newest_id(session: Session, key: int) -> str | None:
    query = "SELECT id FROM {schema}.messages WHERE thread = %s ORDER BY index DESC LIMIT 1"
    row = session.execute(query, (key,)).fetchone()
    return row[0] if row else None


def events(
    session: Session, ref: ThreadRef, *, after: int, before: int | None, limit: int | None, newest: bool
) -> list[ThreadEvent]:
    """Messages between the two indexes, in order."""
    query = "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND index > %(after)s"
    if before is not None:
        query += " AND index < %(before)s"
    query += " ORDER BY index DESC" if newest else " ORDER BY index"
    parameters = naming(ref) | {"after": after, "before": before, "limit": limit}
    found = read_rows(event_from_row, session.execute(query + " LIMIT %(limit)s", parameters))
    return found[::-1] if newest else found


def find(session: Session, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
    """The messages of these ids, in order of index."""
    query = "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND messages.id = ANY(%(ids)s) ORDER BY index"
    return read_rows(event_from_row, session.execute(query, naming(ref) | {"ids": list(ids)}))


def of_system(session: Session, ref: ThreadRef, before: int) -> list[ThreadEvent]:
    """The messages that instruct the model, in order."""
    query = (
        "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND role = 'system'"
        " AND index < %(before)s ORDER BY index"
    )
    return read_rows(event_from_row, session.execute(query, naming(ref) | {"before": before}))


def replace(session: Session, ref: ThreadRef, given: Sequence[ThreadEvent], expected: Sequence[ThreadEvent]) -> bool:
    """Put these in the place of the kept ones, if all that is expected is still so."""
    found = _lock(session, ref)
    if found is None:
        return False
    key, folded_through = found
    kept = _by_id(session, key, [event.message.id for event in (*given, *expected)])
    for event in expected:
        if event.message.id not in kept or not is_same_event(kept[event.message.id], event):
            return False
    for event in given:
        if event.message.id not in kept or kept[event.message.id].message.index != event.message.index:
            return False
    update = (
        "UPDATE {schema}.messages SET role = %s, tokens = %s, counter = %s, message = %s, state = %s"
        " WHERE thread = %s AND index = %s"
    )
    session.execute_many(update, [(*_values(event), key, event.message.index) for event in given])
    grown = sum(event.tokens - kept[event.message.id].tokens for event in given if event.message.index > folded_through)
    _add_live(session, key, 0, grown)
    return True


def delete(session: Session, ref: ThreadRef, ids: Sequence[str]) -> int:
    """Delete messages; how many there were."""
    found = _lock(session, ref)
    if found is None:
        return 0
    key, folded_through = found
    query = "DELETE FROM {schema}.messages WHERE thread = %s AND id = ANY(%s) RETURNING index, tokens"
    gone = session.execute(query, (key, list(ids))).fetchall()
    live = [tokens for index, tokens in gone if index > folded_through]
    _add_live(session, key, -len(live), -sum(live))
    return len(gone)


def live_size(session: Session, ref: ThreadRef) -> tuple[int, int]:
    """How many messages no summary covers, and their tokens: kept in the head, whatever the thread's length."""
    query = "SELECT live_count, live_tokens FROM {schema}.threads WHERE {this_thread}"
    count, tokens = session.execute(query, naming(ref)).fetchone() or (0, 0)
    return count, tokens


def _lock(session: Session, ref: ThreadRef) -> tuple[int, int] | None:
    """The thread's key, and through which index it is folded.

    Whoever changes its messages locks its row first, so that no two wait for each other.
    """
    query = "SELECT key, folded_through FROM {schema}.threads WHERE {this_thread} FOR NO KEY UPDATE"
    row = session.execute(query, naming(ref)).fetchone()
    return (row[0], row[1]) if row else None


def _add_live(session: Session, key: int, count: int, tokens: int) -> None:
    if count or tokens:
        update = (
            "UPDATE {schema}.threads SET live_count = live_count + %s, live_tokens = live_tokens + %s WHERE key = %s"
        )
        session.execute(update, (count, tokens, key))
