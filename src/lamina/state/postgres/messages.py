"""Messages of threads, added in order, read by index, replaced by compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.databases.postgres.schema import Session
from lamina.domain.storable import is_same_event, placed_event
from lamina.domain.thread import Events, Thread, ThreadEvent, ThreadRef, ThreadStatus
from lamina.errors import ThreadArchivedError, ThreadNotFound
from lamina.state.postgres.rows import event_of, index_of, naming, values_of_event
from lamina.state.postgres.threads import lock_thread, make_thread
from lamina.state.reading_events import read_events

__all__ = [
    "append",
    "begin_thread",
    "delete_events",
    "events",
    "find_events",
    "live_size",
    "replace_events",
    "system_events",
]


def append(session: Session, ref: ThreadRef, given: Sequence[ThreadEvent], now: datetime) -> list[ThreadEvent]:
    """As `StateStore.append`, with events that passed `storable_event`."""
    found = lock_thread(session, ref)
    if found is None:
        raise ThreadNotFound(ref.id)
    key, head = found
    if head.status is ThreadStatus.ARCHIVED:
        raise ThreadArchivedError(ref.id)
    last = head.last_index
    kept = _by_id(session, key, [event.message.id for event in given])
    parent = _newest_id(session, key)
    added: list[ThreadEvent] = []
    for event in given:
        if event.message.id in kept:
            continue
        last += 1
        stored = placed_event(event, last, parent=parent, now=now)
        parent = stored.message.id
        kept[parent] = stored
        added.append(stored)
    if added:
        _insert(session, key, added, now)
    return [kept[event.message.id] for event in given]


def begin_thread(
    session: Session, thread: Thread, given: Sequence[ThreadEvent], now: datetime
) -> list[ThreadEvent] | None:
    """As `StateStore.begin_thread`, with what passed `storable_thread` and `storable_event`."""
    return append(session, thread.ref, given, now) if make_thread(session, thread) else None


def _insert(session: Session, key: int, added: Sequence[ThreadEvent], now: datetime) -> None:
    insert = (
        "INSERT INTO {schema}.messages (thread, index, id, role, tokens, counter, message, state)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    )
    session.execute_many(
        insert, [(key, event.message.index, event.message.id, *values_of_event(event)) for event in added]
    )
    update = (
        "UPDATE {schema}.threads SET last_index = %s, updated_at = %s,"
        " live_count = live_count + %s, live_tokens = live_tokens + %s WHERE key = %s"
    )
    session.execute(update, (added[-1].message.index, now, len(added), sum(event.tokens for event in added), key))


def _by_id(session: Session, key: int, ids: Sequence[str]) -> dict[str, ThreadEvent]:
    query = "SELECT {event} FROM {schema}.messages WHERE thread = %s AND id = ANY(%s)"
    found = map(event_of, session.execute(query, (key, list(ids))))
    return {event.message.id: event for event in found}


def _newest_id(session: Session, key: int) -> str | None:
    query = "SELECT id FROM {schema}.messages WHERE thread = %s ORDER BY index DESC LIMIT 1"
    row = session.execute(query, (key,)).fetchone()
    return row[0] if row else None


def events(
    session: Session, ref: ThreadRef, *, after: int, before: int | None, limit: int | None, newest: bool
) -> Events:
    """As `StateStore.events`."""
    query = "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND index > %(after)s"
    if before is not None:
        query += " AND index < %(before)s"
    query += " ORDER BY index DESC" if newest else " ORDER BY index"
    parameters = naming(ref) | {"after": after, "before": before, "limit": limit}
    rows = session.execute(query + " LIMIT %(limit)s", parameters).fetchall()
    found = read_events(rows, event_of, index_of)
    if found.unreadable and len(rows) == limit:  # those do not count: as many as they are come from behind
        edge = index_of(rows[-1])
        after, before = (after, edge) if newest else (edge, before)
        more = events(session, ref, after=after, before=before, limit=len(found.unreadable), newest=newest)
        joined = [*more, *reversed(found)] if newest else [*found, *more]
        return Events(joined, sorted([*found.unreadable, *more.unreadable]))
    if newest:
        found.reverse()
    return found


def find_events(session: Session, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
    """As `StateStore.find_events`."""
    query = "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND messages.id = ANY(%(ids)s) ORDER BY index"
    return [event_of(row) for row in session.execute(query, naming(ref) | {"ids": list(ids)})]


def system_events(session: Session, ref: ThreadRef, before: int) -> Events:
    """As `StateStore.system_events`."""
    query = (
        "SELECT {event} FROM {schema}.messages WHERE {of_thread} AND role = 'system'"
        " AND index < %(before)s ORDER BY index"
    )
    return read_events(session.execute(query, naming(ref) | {"before": before}), event_of, index_of)


def replace_events(
    session: Session, ref: ThreadRef, new: Sequence[ThreadEvent], expected: Sequence[ThreadEvent]
) -> bool:
    """As `StateStore.replace_events`, with events that passed `storable_replacement`."""
    found = lock_thread(session, ref)
    if found is None:
        return False
    key, head = found
    kept = _by_id(session, key, [event.message.id for event in (*new, *expected)])
    for event in expected:
        if event.message.id not in kept or not is_same_event(kept[event.message.id], event):
            return False
    for event in new:
        if event.message.id not in kept or kept[event.message.id].message.index != event.message.index:
            return False
    update = (
        "UPDATE {schema}.messages SET role = %s, tokens = %s, counter = %s, message = %s, state = %s"
        " WHERE thread = %s AND index = %s"
    )
    session.execute_many(update, [(*values_of_event(event), key, event.message.index) for event in new])
    live = [event for event in new if event.message.index > head.folded_through]
    grown = sum(event.tokens - kept[event.message.id].tokens for event in live)
    _add_live(session, key, 0, grown)
    return True


def delete_events(session: Session, ref: ThreadRef, ids: Sequence[str]) -> int:
    """As `StateStore.delete_events`."""
    found = lock_thread(session, ref)
    if found is None:
        return 0
    key, head = found
    query = "DELETE FROM {schema}.messages WHERE thread = %s AND id = ANY(%s) RETURNING index, tokens"
    gone = session.execute(query, (key, list(ids))).fetchall()
    live = [tokens for index, tokens in gone if index > head.folded_through]
    _add_live(session, key, -len(live), -sum(live))
    return len(gone)


def live_size(session: Session, ref: ThreadRef) -> tuple[int, int]:
    """As `StateStore.live_size`: kept in the head, so that a long thread costs no more than a short one."""
    query = "SELECT live_count, live_tokens FROM {schema}.threads WHERE {this_thread}"
    count, tokens = session.execute(query, naming(ref)).fetchone() or (0, 0)
    return count, tokens


def _add_live(session: Session, key: int, count: int, tokens: int) -> None:
    if count or tokens:
        update = (
            "UPDATE {schema}.threads SET live_count = live_count + %s, live_tokens = live_tokens + %s WHERE key = %s"
        )
        session.execute(update, (count, tokens, key))
