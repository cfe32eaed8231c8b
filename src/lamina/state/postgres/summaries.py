"""Summaries: each fold adds one, and the newest one is current."""

from __future__ import annotations

from datetime import datetime

from lamina.databases.postgres.schema import Session
from lamina.domain.thread import Summary, ThreadRef
from lamina.errors import InvalidInput
from lamina.state.postgres.rows import json_text, naming, read_rows, summary_from_row

__all__ = ["fold", "listed", "unfold"]


def fold(
    session: Session,
    ref: ThreadRef,
    summary: Summary,
    *,
    expected: int,
    expected_created_at: datetime | None,
    now: datetime,
) -> bool:
    """Make the summary current, if the thread is folded through the expected index."""
    found = _lock(session, ref, expected)
    if found is None:
        return False
    key, last_index, created_at = found
    if expected_created_at is not None and created_at != expected_created_at:
        return False
    if summary.to_index > last_index:
        problem = f"is {summary.to_index}, and the newest message has the index {last_index}"
        raise InvalidInput("to_index", problem, "Summarise messages that are there.")
    insert = (
        "INSERT INTO {schema}.summaries (thread, folded_before, {summary})"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    )
    head = (summary.from_index, summary.to_index, summary.created_at, summary.source.value, summary.text)
    lists = (json_text(each) for each in (summary.topics, summary.facts, summary.form))
    session.execute(insert, (key, expected, *head, *lists, summary.tokens))
    _fold_through(session, key, expected, summary.to_index, now=now)
    return True


def unfold(session: Session, ref: ThreadRef, *, expected: int, now: datetime) -> bool:
    """Drop the current summary, if the thread is folded through the expected index."""
    found = _lock(session, ref, expected)
    if found is None:
        return False
    key, *_ = found
    newest = (
        "DELETE FROM {schema}.summaries WHERE thread = %(key)s AND number ="
        " (SELECT max(number) FROM {schema}.summaries WHERE thread = %(key)s) RETURNING folded_before"
    )
    row = session.execute(newest, {"key": key}).fetchone()
    if row is None:
        return False
    _fold_through(session, key, expected, row[0], now=now)
    return True


def listed(session: Session, ref: ThreadRef, limit: int | None) -> list[Summary]:
    """All summaries, newest first."""
    query = "SELECT {summary} FROM {schema}.summaries WHERE {of_thread} ORDER BY number DESC LIMIT %(limit)s"
    return read_rows(summary_from_row, session.execute(query, naming(ref) | {"limit": limit}))


def _lock(session: Session, ref: ThreadRef, expected: int) -> tuple[int, int, datetime] | None:
    """The key, the last index and the beginning of the thread, if it is folded through the expected index."""
    query = (
        "SELECT key, last_index, created_at FROM {schema}.threads WHERE {this_thread}"
        " AND folded_through = %(expected)s FOR NO KEY UPDATE"
    )
    row = session.execute(query, naming(ref) | {"expected": expected}).fetchone()
    return (row[0], row[1], row[2]) if row else None


def _fold_through(session: Session, key: int, before: int, index: int, *, now: datetime) -> None:
    """Move the border of what is live from `before` to the index, in either direction."""
    between = "SELECT count(*), coalesce(sum(tokens), 0)::bigint FROM {schema}.messages WHERE thread = %s"
    query = between + " AND index > %s AND index <= %s"
    count, tokens = session.execute(query, (key, min(before, index), max(before, index))).fetchone() or (0, 0)
    sign = -1 if index > before else 1
    change = (
        "UPDATE {schema}.threads SET folded_through = %s, live_count = live_count + %s,"
        " live_tokens = live_tokens + %s, updated_at = %s, revision = revision + 1 WHERE key = %s"
    )
    session.execute(change, (index, sign * count, sign * tokens, now, key))
