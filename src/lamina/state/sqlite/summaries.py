"""Folding and unfolding, inside the transaction of one job."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from lamina.domain.instants import to_micros
from lamina.domain.thread import Events, LiveThread, Summary, ThreadRef
from lamina.errors import InvalidInput
from lamina.state.sqlite.messages import count_live, events_after, system_events_before
from lamina.state.sqlite.rows import SUMMARY, summary_of, values_of_summary
from lamina.state.sqlite.threads import find_thread, thread_with_size

__all__ = ["fold", "live", "summaries", "unfold"]

_MOVE = (
    "UPDATE lamina_threads SET folded_through = ?, live_count = live_count + ?, live_tokens = live_tokens + ?, "
    "updated_at = ?, revision = revision + 1 WHERE key = ?"
)


def fold(
    connection: sqlite3.Connection,
    ref: ThreadRef,
    summary: Summary,
    *,
    expected_folded_through: int,
    now: datetime,
    expected_created_at: datetime | None,
) -> bool:
    """As `StateStore.fold`, with a summary that passed `storable_fold`."""
    found = find_thread(connection, ref)
    if found is None or found[1].folded_through != expected_folded_through:
        return False
    thread, head = found
    if expected_created_at is not None and head.created_at != expected_created_at:
        return False
    if summary.to_index > head.last_index:
        problem = f"is {summary.to_index}, and the newest message has the index {head.last_index}"
        raise InvalidInput("to_index", problem, "Summarise messages that are there.")
    query = "SELECT ifnull(max(number), 0) + 1 FROM lamina_summaries WHERE thread = ?"
    (number,) = connection.execute(query, (thread,)).fetchone()
    query = (
        f"INSERT INTO lamina_summaries (thread, number, folded_before, {SUMMARY}) "  # noqa: S608 - our own columns
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    connection.execute(query, (thread, number, expected_folded_through, *values_of_summary(summary)))
    count, tokens = count_live(connection, thread, after=expected_folded_through, through=summary.to_index)
    connection.execute(_MOVE, (summary.to_index, -count, -tokens, to_micros(now), thread))
    return True


def summaries(connection: sqlite3.Connection, ref: ThreadRef, limit: int | None) -> list[Summary]:
    """As `StateStore.summaries`."""
    found = find_thread(connection, ref)
    return [] if found is None else _newest(connection, found[0], -1 if limit is None else limit)


def live(connection: sqlite3.Connection, ref: ThreadRef, *, with_events: bool) -> LiveThread | None:
    """As `StateStore.live`."""
    found = thread_with_size(connection, ref)
    if found is None:
        return None
    thread, head, count, tokens = found
    folded = head.folded_through
    return LiveThread(
        head=head,
        summary=next(iter(_newest(connection, thread, 1)), None) if folded else None,
        system=system_events_before(connection, thread, folded + 1) if folded else Events(),
        events=events_after(connection, thread, folded) if with_events else Events(),
        count=count,
        tokens=tokens,
    )


def _newest(connection: sqlite3.Connection, thread: int, limit: int) -> list[Summary]:
    query = f"SELECT {SUMMARY} FROM lamina_summaries WHERE thread = ? ORDER BY number DESC LIMIT ?"  # noqa: S608
    return [summary_of(row) for row in connection.execute(query, (thread, limit))]


def unfold(connection: sqlite3.Connection, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
    """As `StateStore.unfold`."""
    found = find_thread(connection, ref)
    if found is None or found[1].folded_through != expected_folded_through:
        return False
    thread, _ = found
    query = "SELECT number, folded_before FROM lamina_summaries WHERE thread = ? ORDER BY number DESC LIMIT 1"
    row = connection.execute(query, (thread,)).fetchone()
    if row is None:
        return False
    number, before = row
    connection.execute("DELETE FROM lamina_summaries WHERE thread = ? AND number = ?", (thread, number))
    count, tokens = count_live(connection, thread, after=before, through=expected_folded_through)
    connection.execute(_MOVE, (before, count, tokens, to_micros(now), thread))
    return True
