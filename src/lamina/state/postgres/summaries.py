"""Summaries: each fold adds one, and the newest one is current."""

from __future__ import annotations

from datetime import datetime

from lamina.databases.postgres.schema import Session
from lamina.domain.thread import Summary, ThreadRef
from lamina.errors import InvalidInput
from lamina.state.postgres.rows import json_text, naming, read_rows, summary_from_row

__all__ = ["fold", "listed", "unfold"]


def fold(session: Session, ref: ThreadRef, summary: Summary, *, expected: int, now: datetime) -> bool:
    """Make the summary current, if the thread is folded through the expected index."""
    found = _lock(session, ref, expected)
    if found is None:
        return False
    key, last_index = found
    if summary.to_index > last_index:
        problem = f"is {summary.to_index}, and the thread ends at {last_index}"
        raise InvalidInput("to_index", problem, "Summarise messages that there are.")
    insert = "INSERT INTO {schema}.summaries (thread, {summary}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    texts = (json_text(each) for each in (summary.topics, summary.facts, summary.form))
    session.execute(
        insert,
        (
            key,
            summary.from_index,
            summary.to_index,
            summary.created_at,
            summary.source.value,
            summary.text,
            *texts,
            summary.tokens,
        ),
    )
    _fold_through(session, key, summary.to_index, now)
    return True


def unfold(session: Session, ref: ThreadRef, *, expected: int, now: datetime) -> bool:
    """Drop the current summary, if the thread is folded through the expected index."""
    found = _lock(session, ref, expected)
    if found is None:
        return False
    key, _ = found
    newest = "SELECT number, to_index FROM {schema}.summaries WHERE thread = %s ORDER BY number DESC LIMIT 2"
    rows = session.execute(newest, (key,)).fetchall()
    if not rows:
        return False
    session.execute("DELETE FROM {schema}.summaries WHERE thread = %s AND number = %s", (key, rows[0][0]))
    _fold_through(session, key, rows[1][1] if len(rows) > 1 else 0, now)
    return True


def listed(session: Session, ref: ThreadRef, limit: int | None) -> list[Summary]:
    """All summaries, newest first."""
    query = "SELECT {summary} FROM {schema}.summaries WHERE {of_thread} ORDER BY number DESC LIMIT %(limit)s"
    return read_rows(summary_from_row, session.execute(query, naming(ref) | {"limit": limit}))


def _lock(session: Session, ref: ThreadRef, expected: int) -> tuple[int, int] | None:
    """The key and the last index of the thread, if it is folded through the expected index, with its row locked."""
    query = (
        "SELECT key, last_index FROM {schema}.threads WHERE {this_thread} AND folded_through = %(expected)s"
        " FOR NO KEY UPDATE"
    )
    row = session.execute(query, naming(ref) | {"expected": expected}).fetchone()
    return (row[0], row[1]) if row else None


def _fold_through(session: Session, key: int, index: int, now: datetime) -> None:
    change = "UPDATE {schema}.threads SET folded_through = %s, updated_at = %s, revision = revision + 1 WHERE key = %s"
    session.execute(change, (index, now, key))
