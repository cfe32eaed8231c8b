"""Summaries: each fold adds one, and the newest one is current."""

from __future__ import annotations

from datetime import datetime

from lamina.databases.postgres.schema import Session
from lamina.domain.message_json import json_text
from lamina.domain.thread import Summary, ThreadRef
from lamina.errors import InvalidInput
from lamina.state.postgres.rows import naming, summary_of
from lamina.state.postgres.threads import lock_thread

__all__ = ["fold", "summaries", "unfold"]


def fold(
    session: Session,
    ref: ThreadRef,
    summary: Summary,
    *,
    expected_folded_through: int,
    now: datetime,
    expected_created_at: datetime | None,
) -> bool:
    """As `StateStore.fold`, with a summary that passed `storable_fold`."""
    found = lock_thread(session, ref)
    if found is None or found[1].folded_through != expected_folded_through:
        return False
    key, head = found
    if expected_created_at is not None and head.created_at != expected_created_at:
        return False
    if summary.to_index > head.last_index:
        problem = f"is {summary.to_index}, and the newest message has the index {head.last_index}"
        raise InvalidInput("to_index", problem, "Summarise messages that are there.")
    insert = (
        "INSERT INTO {schema}.summaries (thread, folded_before, {summary})"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    )
    place = (summary.from_index, summary.to_index, summary.created_at, summary.source.value, summary.text)
    lists = (json_text(each) for each in (summary.topics, summary.facts, summary.form))
    session.execute(insert, (key, expected_folded_through, *place, *lists, summary.tokens))
    _fold_through(session, key, expected_folded_through, summary.to_index, now=now)
    return True


def unfold(session: Session, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
    """As `StateStore.unfold`."""
    found = lock_thread(session, ref)
    if found is None or found[1].folded_through != expected_folded_through:
        return False
    key, _ = found
    newest = (
        "DELETE FROM {schema}.summaries WHERE thread = %(key)s AND number ="
        " (SELECT max(number) FROM {schema}.summaries WHERE thread = %(key)s) RETURNING folded_before"
    )
    row = session.execute(newest, {"key": key}).fetchone()
    if row is None:
        return False
    _fold_through(session, key, expected_folded_through, row[0], now=now)
    return True


def summaries(session: Session, ref: ThreadRef, limit: int | None) -> list[Summary]:
    """As `StateStore.summaries`."""
    query = "SELECT {summary} FROM {schema}.summaries WHERE {of_thread} ORDER BY number DESC LIMIT %(limit)s"
    return [summary_of(row) for row in session.execute(query, naming(ref) | {"limit": limit})]


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
