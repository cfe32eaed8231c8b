"""Whether the file is sound: what SQLite can tell, and whether rows, texts and vectors agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from lamina.adapters.sqlite.block_layout import BLOCK
from lamina.adapters.sqlite.partitions import LAST, bounds, partition_of
from lamina.adapters.sqlite.rows import entry_of, selected, version_of
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.lexical import index_terms
from lamina.domain.validation import check_entry
from lamina.errors import InvalidInput, InvalidType, StoreDamaged

__all__ = ["count_of", "find_contradictions", "find_text_damage", "integrity", "stale_texts", "wrong_codes"]

SHOWN: Final = 5
"""Most findings of one kind; more of the same tell nothing new."""

_COUNTED: Final = {
    "memories have no text in the index": """
        SELECT count(*) FROM {memories} AS m LEFT JOIN {text} ON {text}.rowid = m.key WHERE {text}.rowid IS NULL
    """,
    "texts in the index belong to no memory": """
        SELECT count(*) FROM {text} LEFT JOIN {memories} AS m ON m.key = {text}.rowid WHERE m.key IS NULL
    """,
    "vectors belong to no memory": """
        SELECT count(*) FROM {vectors} AS v LEFT JOIN {memories} AS m ON m.key = v.key WHERE m.key IS NULL
    """,
    "vectors stand in a block that does not exist": """
        SELECT count(*) FROM {vectors} AS v LEFT JOIN {blocks} AS b ON b.key = v.block
        WHERE v.block IS NOT NULL AND b.key IS NULL
    """,
    "vectors have another length than their partition says": """
        SELECT count(*) FROM {vectors} AS v JOIN {partitions} AS p ON p.id = v.key >> 32
        WHERE length(v.data) <> 4 * p.dimensions
    """,
    "partitions count their vectors wrongly": """
        SELECT count(*) FROM {partitions} AS p
        WHERE p.vectors <> (SELECT count(*) FROM {vectors} AS v WHERE v.key {in_partition})
    """,
    "memories contradict their partition": """
        SELECT count(*) FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition
        WHERE m.tenant <> p.tenant OR m.key & 4294967295 > p.last
    """,
    "memories are newer than the counter": """
        SELECT count(*) FROM {memories} WHERE seq > (SELECT value FROM {counters} WHERE name = 'seq')
    """,
    "former versions belong to no memory": """
        SELECT count(*) FROM {history} WHERE seq NOT IN (SELECT seq FROM {memories})
    """,
}
"""What there must be none of, each with the query that counts it."""


def find_text_damage(collection: Collection) -> list[str]:
    """What the text index finds wrong with itself; it can only be asked by a connection that may write."""
    try:
        collection.execute("INSERT INTO {text} ({text}, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return ["the text index contradicts its own texts"]
    return []


def find_contradictions(collection: Collection) -> list[str]:
    """What is wrong, in plain words; nothing if all is well. Text that is no UTF-8 is read, and found."""
    connection = collection.connection
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        return _find(collection)
    finally:
        connection.text_factory = str


def integrity(collection: Collection) -> list[str]:
    """What SQLite itself finds wrong, a few lines at most."""
    return [row[0] for row in collection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]


def count_of(collection: Collection, meaning: str) -> int:
    """How many there are of what there must be none of, by its name in the findings."""
    (wrong,) = collection.execute(_COUNTED[meaning]).fetchone()
    return int(wrong)


def _find(collection: Collection) -> list[str]:
    findings = integrity(collection)
    findings += [f"{row[0]}: a reference leads nowhere" for row in collection.execute("PRAGMA foreign_key_check")]
    for meaning in _COUNTED:
        wrong = count_of(collection, meaning)
        if wrong:
            findings.append(f"{wrong} {meaning}")
    for find in (_bad_entries, _bad_versions, stale_texts, wrong_codes):
        found = list(find(collection))
        findings += found[:SHOWN]
        if len(found) > SHOWN:
            findings.append(f"... and {len(found) - SHOWN} more like the last one")
    return findings


def _bad_entries(collection: Collection) -> Iterator[str]:
    """Each row must be an entry that could be stored; what stands in it is not repeated."""
    query = (
        "SELECT {selected}, m.digest, v.data FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition "
        "LEFT JOIN {vectors} AS v ON v.key = m.key"
    )
    for *row, digest, vector in collection.execute(query, selected=selected()):
        try:
            entry = entry_of(row, vector)
            check_entry(entry)
        except StoreDamaged as error:
            yield error.problem
        except (InvalidInput, InvalidType) as error:
            yield f"the memory {row[2]!r} has a {error.field} that could not have been stored"
        else:
            if entry.digest != digest.hex():
                yield f"the memory {entry.id!r} has the digest of another content"


def _bad_versions(collection: Collection) -> Iterator[str]:
    for seq, revision, text in collection.execute("SELECT seq, revision, entry FROM {history}"):
        try:
            check_entry(version_of(text))
        except (StoreDamaged, InvalidInput, InvalidType):
            yield f"the former version {revision} of the memory with the seq {seq} cannot be read"


def stale_texts(collection: Collection) -> Iterator[str]:
    """Whose words in the index are not those of its content."""
    query = "SELECT m.id, m.content, {text}.terms FROM {memories} AS m JOIN {text} ON {text}.rowid = m.key"
    for id, content, terms in collection.execute(query):
        if " ".join(index_terms(content)) != terms:
            yield f"the memory {id!r} is indexed with other words than it holds"


def wrong_codes(collection: Collection) -> Iterator[str]:
    """Each block is made anew from the exact vectors of its members and compared."""
    from lamina.adapters.sqlite import codes  # here, because numpy takes longer to import than all the rest

    members = "SELECT slot, key, data FROM {vectors} WHERE block = ? AND key BETWEEN ? AND ?"
    for key, live, data in collection.execute("SELECT key, live, data FROM {blocks}"):
        try:
            (stored,) = codes.decode([data])
        except ValueError:
            yield f"the block {key} is cut"
            continue
        rows = collection.execute(members, (key, *bounds(partition_of(key))))
        found = {slot: (member & LAST, vector) for slot, member, vector in rows}
        counts = [found[slot][0] if slot in found else 0 for slot in range(BLOCK)]
        if counts != stored["counts"].tolist() or live != len(found):
            yield f"the block {key} names other vectors than those that stand in it"
            continue
        slots = sorted(found)
        if {len(vector) // 4 for _, vector in found.values()} - {stored["codes"].shape[1]}:
            yield f"the block {key} holds vectors of another length"
            continue
        (anew,) = codes.decode([codes.encode([found[slot][0] for slot in slots], [found[slot][1] for slot in slots])])
        if any((stored[part][slots] != anew[part][: len(slots)]).any() for part in ("codes", "steps", "differences")):
            yield f"the block {key} holds other codes than its vectors give"
