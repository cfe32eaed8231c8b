"""Whether the packs are sound: whether both sides of what supersedes agree, and every row can be read."""

from __future__ import annotations

import sqlite3
from typing import Final

from lamina.domain.pack import SUPERSEDES
from lamina.state.looking_over import SHOWN, look_over_packs
from lamina.state.sqlite.pack_due import due_of
from lamina.state.sqlite.pack_reading import memories_of
from lamina.state.sqlite.pack_rows import PACK, pack_of

__all__ = ["find_contradictions_of_packs"]

_MARKED: Final = (
    "SELECT 1 FROM lamina_pack_relations AS r JOIN lamina_pack_memories AS s ON s.key = r.source "  # noqa: S608
    f"WHERE r.type = '{SUPERSEDES}' AND r.target = m.key AND s.id = m.superseded_by AND s.tenant = m.tenant"
)

_COUNTED: Final = {
    "memories are superseded by one that does not say so": (
        f"SELECT count(*) FROM lamina_pack_memories AS m WHERE superseded_by IS NOT NULL AND NOT EXISTS ({_MARKED})"  # noqa: S608
    ),
    "relationships supersede a memory that does not say so": (
        "SELECT count(*) FROM lamina_pack_relations AS r JOIN lamina_pack_memories AS m ON m.key = r.target "  # noqa: S608
        "JOIN lamina_pack_memories AS s ON s.key = r.source "
        f"WHERE r.type = '{SUPERSEDES}' AND m.superseded_by IS NOT s.id"
    ),
    "memories are of another tenant than their pack": (
        "SELECT count(*) FROM lamina_pack_memories AS m LEFT JOIN lamina_pack_heads AS p ON p.key = m.pack "
        "WHERE m.tenant IS NOT p.tenant"
    ),
    "memories have no original": (
        "SELECT count(*) FROM lamina_pack_memories WHERE key NOT IN (SELECT memory FROM lamina_pack_originals)"
    ),
    "originals belong to no memory": (
        "SELECT count(*) FROM lamina_pack_originals WHERE memory NOT IN (SELECT key FROM lamina_pack_memories)"
    ),
}
"""What there must be none of, each with the query that counts it."""


def find_contradictions_of_packs(connection: sqlite3.Connection) -> list[str]:
    """What is wrong, in plain words; nothing if all is well. Reads everything."""
    findings = [row[0] for row in connection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]
    for meaning, query in _COUNTED.items():
        (wrong,) = connection.execute(query).fetchone()
        if wrong:
            findings.append(f"{wrong} {meaning}")
    due = "SELECT key, due_at FROM lamina_pack_memories WHERE pack = ?"
    return findings + look_over_packs(
        connection.execute(f"SELECT {PACK} FROM lamina_pack_heads AS p").fetchall(),  # noqa: S608
        read_pack=pack_of,
        memories=lambda pack: connection.execute(due, (pack,)).fetchall(),
        read_memory=lambda key: memories_of(connection, [key], with_content=True)[0][1],
        due_of=due_of,
    )
