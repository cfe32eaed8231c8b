"""Folding and unfolding, inside the transaction of one job."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from lamina.domain.instants import to_micros
from lamina.domain.thread import Events, LiveThread, Summary, ThreadRef
from lamina.errors import InvalidInput
from lamina.state.sqlite.messages import count_live, events, live_size, system_events
from lamina.state.sqlite.rows import SUMMARY, summary_of, values_of_summary
from lamina.state.sqlite.threads import find_thread

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
    if found is None:
        return []
    query = f"SELECT {SUMMARY} FROM lamina_summaries WHERE thread = ? ORDER BY number DESC LIMIT ?"  # noqa: S608
    rows = connection.execute(query, (found[0], -1 if limit is None else limit))
    return [summary_of(row) for row in rows]


def live(connection: sqlite3.Connection, ref: ThreadRef, *, with_events: bool) -> LiveThread | None:
    """As `StateStore.live`."""
    found = find_thread(connection, ref)
    if found is None:
        return None
    head = found[1]
    folded = head.folded_through
    count, tokens = live_size(connection, ref)
    return LiveThread(
        head=head,
        summary=next(iter(summaries(connection, ref, 1)), None) if folded else None,
        system=system_events(connection, ref, folded + 1) if folded else Events(),
        events=events(connection, ref, after=folded, before=None, limit=None, newest=False)
        if with_events
        else Events(),
        count=count,
        tokens=tokens,
    )


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
