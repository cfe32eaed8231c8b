"""Whether the state and the packs in a schema are sound, and what of them can be mended from the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, LiteralString

from lamina.databases.postgres.schema import Session
from lamina.errors import StoreDamaged
from lamina.state.looking_over import find_unreadable, look_over_packs
from lamina.state.postgres.pack_due import due_of, reckon_pack
from lamina.state.postgres.pack_reading import memories_of
from lamina.state.postgres.pack_rows import pack_of
from lamina.state.postgres.rows import document_of, event_of, summary_of, thread_of

__all__ = ["find_contradictions", "find_contradictions_of_packs", "repair_packs", "repair_state"]

_LIVE: Final[LiteralString] = (
    "SELECT t.key, count(m.index) AS live, coalesce(sum(m.tokens), 0) AS tokens FROM {schema}.threads AS t"
    " LEFT JOIN {schema}.messages AS m ON m.thread = t.key AND m.index > t.folded_through GROUP BY t.key"
)
_FOLDED: Final[LiteralString] = (
    "SELECT t.key, coalesce((SELECT s.to_index FROM {schema}.summaries AS s WHERE s.thread = t.key"
    " ORDER BY s.number DESC LIMIT 1), 0) AS through FROM {schema}.threads AS t"
)
_STATE: Final[Mapping[str, LiteralString]] = {
    "messages have an index that their thread has not given": (
        "SELECT count(*) FROM {schema}.messages AS m JOIN {schema}.threads AS t ON t.key = m.thread"
        " WHERE m.index NOT BETWEEN 1 AND t.last_index"
    ),
    "threads count their live messages wrongly": (
        "SELECT count(*) FROM {schema}.threads AS t JOIN (" + _LIVE + ") AS c ON c.key = t.key"  # noqa: S608
        " WHERE (t.live_count, t.live_tokens) <> (c.live, c.tokens)"
    ),
    "threads are folded through another index than their summary": (
        "SELECT count(*) FROM {schema}.threads AS t JOIN (" + _FOLDED + ") AS s ON s.key = t.key"  # noqa: S608
        " WHERE t.folded_through <> s.through"
    ),
}
"""What there must be none of, each with the query that counts it."""

_STATE_REPAIRS: Final[Mapping[str, LiteralString]] = {
    "threads were given the index of their last message": (
        "UPDATE {schema}.threads AS t SET last_index = m.last FROM"
        " (SELECT thread, max(index) AS last FROM {schema}.messages GROUP BY thread) AS m"
        " WHERE m.thread = t.key AND m.last > t.last_index"
    ),
    "threads are folded as far as their last summary": (
        "UPDATE {schema}.threads AS t SET folded_through = least(t.last_index, s.through) FROM (" + _FOLDED + ") AS s"  # noqa: S608
        " WHERE s.key = t.key AND t.folded_through <> least(t.last_index, s.through)"
    ),
    "threads count their live messages anew": (
        "UPDATE {schema}.threads AS t SET live_count = c.live, live_tokens = c.tokens FROM (" + _LIVE + ") AS c"  # noqa: S608
        " WHERE c.key = t.key AND (t.live_count, t.live_tokens) <> (c.live, c.tokens)"
    ),
}

_ROWS: Final[Mapping[LiteralString, Callable[[Sequence[Any]], object]]] = {
    "SELECT {head} FROM {schema}.threads": thread_of,
    "SELECT {event} FROM {schema}.messages": event_of,
    "SELECT {summary} FROM {schema}.summaries": summary_of,
    "SELECT {document} FROM {schema}.documents": document_of,
}

_PACKS: Final[Mapping[str, LiteralString]] = {
    "memories are superseded by one that does not say so": (
        "SELECT count(*) FROM {schema}.pack_memories AS m WHERE superseded_by IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM {schema}.pack_relations AS r JOIN {schema}.pack_memories AS s ON s.key = r.source"
        " WHERE r.type = 'supersedes' AND r.target = m.key AND s.id = m.superseded_by AND s.tenant = m.tenant)"
    ),
    "relationships supersede a memory that does not say so": (
        "SELECT count(*) FROM {schema}.pack_relations AS r JOIN {schema}.pack_memories AS m ON m.key = r.target"
        " JOIN {schema}.pack_memories AS s ON s.key = r.source"
        " WHERE r.type = 'supersedes' AND m.superseded_by IS DISTINCT FROM s.id"
    ),
    "memories are of another tenant than their pack": (
        "SELECT count(*) FROM {schema}.pack_memories AS m LEFT JOIN {schema}.pack_heads AS p ON p.key = m.pack"
        " WHERE m.tenant IS DISTINCT FROM p.tenant"
    ),
    "memories have no original": (
        "SELECT count(*) FROM {schema}.pack_memories AS m WHERE NOT EXISTS"
        " (SELECT 1 FROM {schema}.pack_originals AS o WHERE o.memory = m.key)"
    ),
}


def find_contradictions(session: Session) -> list[str]:
    """What is wrong with threads and documents, of all tenants; nothing if all is well. Reads everything."""
    findings = _counted(session, _STATE)
    for query, read in _ROWS.items():
        findings += find_unreadable(session.execute(query, {"tenant": ""}), read)
    return findings


def repair_state(session: Session) -> list[str]:
    """What was mended of threads, in plain words. No row is dropped."""
    done = [(session.execute(statement).rowcount, meaning) for meaning, statement in _STATE_REPAIRS.items()]
    return [f"{changed} {meaning}" for changed, meaning in done if changed]


def find_contradictions_of_packs(session: Session) -> list[str]:
    """What is wrong with the packs of the transaction's tenant; nothing if all is well. Reads everything."""
    due: LiteralString = "SELECT key, due_at FROM {schema}.pack_memories WHERE pack = %s"
    return _counted(session, _PACKS) + look_over_packs(
        session.execute("SELECT {pack} FROM {schema}.pack_heads AS p").fetchall(),
        read_pack=pack_of,
        memories=lambda pack: session.execute(due, (pack,)).fetchall(),
        read_memory=lambda key: memories_of(session, [key], with_content=True)[0][1],
        due_of=due_of,
    )


def repair_packs(session: Session) -> list[str]:
    """What was mended of the packs of the transaction's tenant, in plain words. No row is dropped."""
    statement: LiteralString = (
        "UPDATE {schema}.pack_memories AS m SET superseded_by = s.id FROM {schema}.pack_relations AS r"
        " JOIN {schema}.pack_memories AS s ON s.key = r.source WHERE r.type = 'supersedes' AND r.target = m.key"
        " AND m.superseded_by IS NULL"
    )
    marked = session.execute(statement).rowcount
    due: LiteralString = "SELECT key, due_at FROM {schema}.pack_memories ORDER BY key"
    before = session.execute(due).fetchall()
    for row in session.execute("SELECT {pack} FROM {schema}.pack_heads AS p").fetchall():
        try:
            reckon_pack(session, row[0], pack_of(row))
        except StoreDamaged:  # which the check tells
            continue
    after = session.execute(due).fetchall()
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    done = [
        (marked, "memories say by which one they are superseded"),
        (changed, "memories are due when their pack says"),
    ]
    return [f"{count} {meaning}" for count, meaning in done if count]


def _counted(session: Session, queries: Mapping[str, LiteralString]) -> list[str]:
    findings = []
    for meaning, query in queries.items():
        [wrong] = session.execute(query).fetchone() or [0]
        if wrong:
            findings.append(f"{wrong} {meaning}")
    return findings
