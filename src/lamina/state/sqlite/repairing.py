"""Mends what threads and packs say twice, from the messages, summaries and relationships themselves.

No row is dropped. What cannot be read, or belongs to nothing, stays where it is, and the checks still find it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from lamina.domain.pack import SUPERSEDES
from lamina.errors import StoreDamaged
from lamina.state.sqlite.pack_due import reckon_pack
from lamina.state.sqlite.pack_rows import PACK, pack_of

__all__ = ["repair_packs", "repair_state"]

_LIVE: Final = """
    SELECT h.key, count(m.key) AS live, ifnull(sum(m.tokens), 0) AS tokens FROM lamina_threads AS h
    LEFT JOIN lamina_messages AS m
    ON m.key > (h.key << 32 | h.folded_through) AND m.key <= (h.key << 32 | h.last_index) GROUP BY h.key
"""
_STATE: Final[Mapping[str, str]] = {
    "threads were given the index of their last message": """
        UPDATE lamina_threads AS t SET last_index = m.last FROM (
            SELECT thread, max(key & 4294967295) AS last FROM lamina_messages GROUP BY thread
        ) AS m WHERE m.thread = t.key AND m.last > t.last_index
    """,
    "threads are folded as far as their last summary": """
        UPDATE lamina_threads AS t SET folded_through = min(t.last_index, s.through) FROM (
            SELECT h.key, ifnull((
                SELECT to_index FROM lamina_summaries WHERE thread = h.key ORDER BY number DESC LIMIT 1
            ), 0) AS through FROM lamina_threads AS h
        ) AS s WHERE s.key = t.key AND t.folded_through <> min(t.last_index, s.through)
    """,
    "threads count their live messages anew": (
        f"UPDATE lamina_threads AS t SET live_count = c.live, live_tokens = c.tokens FROM ({_LIVE}) AS c "  # noqa: S608
        "WHERE c.key = t.key AND (t.live_count, t.live_tokens) <> (c.live, c.tokens)"
    ),
}
"""In this order, since each counts on the one before it."""

_PACKS: Final[Mapping[str, str]] = {
    "memories say by which one they are superseded": (
        "UPDATE lamina_pack_memories AS m SET superseded_by = s.id FROM lamina_pack_relations AS r "  # noqa: S608
        "JOIN lamina_pack_memories AS s ON s.key = r.source "
        f"WHERE r.type = '{SUPERSEDES}' AND r.target = m.key AND s.tenant = m.tenant AND m.superseded_by IS NULL"
    ),
    "relationships of memories that supersede others were written again": (
        "INSERT INTO lamina_pack_relations (source, position, type, target) "  # noqa: S608
        "SELECT s.key, (SELECT ifnull(max(position) + 1, 0) FROM lamina_pack_relations WHERE source = s.key) + "
        f"row_number() OVER (PARTITION BY s.key ORDER BY m.key) - 1, '{SUPERSEDES}', m.key "
        "FROM lamina_pack_memories AS m JOIN lamina_pack_memories AS s ON s.id = m.superseded_by AND s.pack = m.pack "
        "WHERE NOT EXISTS (SELECT 1 FROM lamina_pack_relations AS r WHERE r.source = s.key AND r.target = m.key "
        f"AND r.type = '{SUPERSEDES}')"
    ),
}


def repair_state(connection: sqlite3.Connection) -> list[str]:
    """What was mended, in plain words; run in a transaction that writes."""
    return _indexes(connection, ("threads", "messages", "summaries", "documents")) + _run(connection, _STATE)


def repair_packs(connection: sqlite3.Connection) -> list[str]:
    """What was mended, in plain words; run in a transaction that writes."""
    tables = ("pack_heads", "pack_vectors", "pack_memories", "pack_relations", "pack_originals")
    done = _indexes(connection, tables) + _run(connection, _PACKS)
    before = connection.execute("SELECT key, due_at FROM lamina_pack_memories ORDER BY key").fetchall()
    for row in connection.execute(f"SELECT {PACK} FROM lamina_pack_heads AS p").fetchall():  # noqa: S608
        connection.execute("SAVEPOINT reckoning")
        try:
            reckon_pack(connection, row[0], pack_of(row))
        except StoreDamaged:
            connection.execute("ROLLBACK TO reckoning")  # which the check tells
        connection.execute("RELEASE reckoning")
    after = connection.execute("SELECT key, due_at FROM lamina_pack_memories ORDER BY key").fetchall()
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    return done + ([f"{changed} memories are due when their pack says"] if changed else [])


def _indexes(connection: sqlite3.Connection, tables: tuple[str, ...]) -> list[str]:
    """Make the indexes of these tables anew if SQLite finds something wrong that this mends."""

    def is_sound() -> bool:
        return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")

    if is_sound():
        return []
    for table in tables:
        connection.execute(f"REINDEX lamina_{table}")
    return ["the indexes of the tables were made anew"] if is_sound() else []


def _run(connection: sqlite3.Connection, statements: Mapping[str, str]) -> list[str]:
    done = []
    for meaning, statement in statements.items():
        changed = connection.execute(statement).rowcount
        if changed:
            done.append(f"{changed} {meaning}")
    return done
