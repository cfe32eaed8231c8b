"""Whether the state is sound: whether heads, messages and summaries agree, and every row can be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.state.looking_over import SHOWN, find_unreadable
from lamina.state.sqlite.rows import DOCUMENT, EVENT, SUMMARY, THREAD, document_of, event_of, summary_of, thread_of

__all__ = ["find_contradictions"]

_COUNTED: Final = {
    "messages belong to no thread": """
        SELECT count(*) FROM lamina_messages WHERE thread NOT IN (SELECT key FROM lamina_threads)
    """,
    "summaries belong to no thread": """
        SELECT count(*) FROM lamina_summaries WHERE thread NOT IN (SELECT key FROM lamina_threads)
    """,
    "messages have an index that their thread has not given": """
        SELECT count(*) FROM lamina_messages AS m JOIN lamina_threads AS t ON t.key = m.thread
        WHERE m.key & 4294967295 NOT BETWEEN 1 AND t.last_index
    """,
    "threads count their live messages wrongly": """
        SELECT count(*) FROM lamina_threads AS t WHERE (t.live_count, t.live_tokens) <> (
            SELECT count(*), ifnull(sum(m.tokens), 0) FROM lamina_messages AS m
            WHERE m.key > (t.key << 32 | t.folded_through) AND m.key <= (t.key << 32 | t.last_index)
        )
    """,
    "threads are folded through another index than their summary": """
        SELECT count(*) FROM lamina_threads AS t WHERE t.folded_through <> ifnull((
            SELECT s.to_index FROM lamina_summaries AS s WHERE s.thread = t.key ORDER BY s.number DESC LIMIT 1
        ), 0)
    """,
}
"""What there must be none of, each with the query that counts it."""

_READ: Final[dict[str, tuple[str, Callable[[Sequence[Any]], object]]]] = {
    "lamina_threads": (THREAD, thread_of),
    "lamina_messages": (EVENT, event_of),
    "lamina_summaries": (SUMMARY, summary_of),
    "lamina_documents": (DOCUMENT, document_of),
}


def find_contradictions(connection: sqlite3.Connection) -> list[str]:
    """What is wrong, in plain words; nothing if all is well."""
    findings = [row[0] for row in connection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]
    for meaning, query in _COUNTED.items():
        (wrong,) = connection.execute(query).fetchone()
        if wrong:
            findings.append(f"{wrong} {meaning}")
    for table, (columns, read) in _READ.items():
        findings += find_unreadable(connection.execute(f"SELECT {columns} FROM {table}"), read)  # noqa: S608 - our own names
    return findings
