"""Whether the file is sound: what SQLite can tell, and whether rows, texts and vectors agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from lamina.adapters.sqlite.partitions import LAST
from lamina.adapters.sqlite.tables import Tables
from lamina.adapters.sqlite.vectors import BLOCK
from lamina.domain.lexical import index_terms

__all__ = ["find_contradictions", "find_text_damage"]

SHOWN = 5
"""Most findings of one kind; more of the same tell nothing new."""

_COUNTED = (
    (
        "SELECT count(*) FROM {memories} AS m LEFT JOIN {text} ON {text}.rowid = m.key WHERE {text}.rowid IS NULL",
        "memories have no text in the index",
    ),
    (
        "SELECT count(*) FROM {text} LEFT JOIN {memories} AS m ON m.key = {text}.rowid WHERE m.key IS NULL",
        "texts in the index belong to no memory",
    ),
    (
        "SELECT count(*) FROM {vectors} AS v LEFT JOIN {memories} AS m ON m.key = v.key WHERE m.key IS NULL",
        "vectors belong to no memory",
    ),
    (
        "SELECT count(*) FROM {vectors} AS v LEFT JOIN {blocks} AS b ON b.key = v.block "
        "WHERE v.block IS NOT NULL AND b.key IS NULL",
        "vectors stand in a block that does not exist",
    ),
    (
        "SELECT count(*) FROM {vectors} AS v JOIN {partitions} AS p ON p.id = v.key >> 32 "
        "WHERE length(v.data) <> 4 * p.dimensions",
        "vectors have another length than their partition says",
    ),
    (
        "SELECT count(*) FROM {partitions} AS p WHERE p.vectors <> (SELECT count(*) FROM {vectors} AS v "
        "WHERE v.key BETWEEN (p.id << 32) AND ((p.id << 32) | 4294967295))",
        "partitions count their vectors wrongly",
    ),
    (
        "SELECT count(*) FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition "
        "WHERE m.tenant <> p.tenant OR m.key & 4294967295 > p.last",
        "memories contradict their partition",
    ),
    (
        "SELECT count(*) FROM {memories} WHERE seq > (SELECT value FROM {counters} WHERE name = 'seq')",
        "memories are newer than the counter",
    ),
    (
        "SELECT count(*) FROM {history} AS h LEFT JOIN {memories} AS m ON m.seq = h.seq WHERE m.seq IS NULL",
        "former versions belong to no memory",
    ),
)


def find_text_damage(connection: sqlite3.Connection, tables: Tables) -> list[str]:
    """What the text index finds wrong with itself; it can only be asked by a connection that may write."""
    try:
        connection.execute(tables.sql("INSERT INTO {text} ({text}, rank) VALUES ('integrity-check', 1)"))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return ["the text index contradicts its own texts"]
    return []


def find_contradictions(connection: sqlite3.Connection, tables: Tables) -> list[str]:
    """What is wrong, in plain words; nothing if all is well."""
    findings = [row[0] for row in connection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]
    findings += [f"{table}: a reference leads nowhere" for table, *_ in connection.execute("PRAGMA foreign_key_check")]
    for query, meaning in _COUNTED:
        (wrong,) = connection.execute(tables.sql(query)).fetchone()
        if wrong:
            findings.append(f"{wrong} {meaning}")
    for find in (_stale_texts, _wrong_codes):
        found = list(find(connection, tables))
        findings += found[:SHOWN]
    return findings


def _stale_texts(connection: sqlite3.Connection, tables: Tables) -> Iterator[str]:
    query = "SELECT m.id, m.content, {text}.terms FROM {memories} AS m JOIN {text} ON {text}.rowid = m.key"
    for id, content, terms in connection.execute(tables.sql(query)):
        if " ".join(index_terms(content)) != terms:
            yield f"the memory {id!r} is indexed with other words than it holds"


def _wrong_codes(connection: sqlite3.Connection, tables: Tables) -> Iterator[str]:
    """Each block is made anew from the exact vectors of its members and compared."""
    from lamina.adapters.sqlite import codes  # here, because numpy takes longer to import than all the rest

    members = tables.sql("SELECT key, slot, data FROM {vectors} WHERE block = ? AND key BETWEEN ? AND ?")
    for key, live, data in connection.execute(tables.sql("SELECT key, live, data FROM {blocks}")).fetchall():
        first = key & ~LAST
        stored = codes.Block(data)
        found = {
            slot: (member & LAST, vector)
            for member, slot, vector in connection.execute(members, (key, first, first | LAST))
        }
        counts = [found[slot][0] if slot in found else 0 for slot in range(BLOCK)]
        if counts != stored.counts.tolist() or live != len(found):
            yield f"the block {key} names other vectors than those that stand in it"
            continue
        slots = sorted(found)
        anew = codes.Block(codes.encode([found[slot][0] for slot in slots], [found[slot][1] for slot in slots]))
        taken = slice(0, len(slots))
        if (stored.codes[slots] != anew.codes[taken]).any() or (stored.steps[slots] != anew.steps[taken]).any():
            yield f"the block {key} holds other codes than its vectors give"
