"""Whether a tenant's memories are sound, and what of them can be made anew from their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, LiteralString

from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.postgres.rows import SELECTED, SELECTED_VECTOR, entry_of, hashes_of, version_of, words_of
from lamina.adapters.postgres.tables import Collection
from lamina.domain.memory import MemoryEntry
from lamina.domain.validation import check_entry
from lamina.errors import InvalidInput, InvalidType, StoreDamaged

__all__ = ["find_contradictions", "repair"]

SHOWN: Final = 5
"""Most findings of one kind; more of the same tell nothing new."""

_ENTRIES: Final[LiteralString] = (
    "SELECT m.digest, w.words, {selected}, {vector} FROM {memories} AS m"
    " LEFT JOIN {words} AS w ON w.tenant = m.tenant AND w.seq = m.seq"
    " LEFT JOIN {vectors} AS v ON v.tenant = m.tenant AND v.seq = m.seq"
    " WHERE m.tenant = {this_tenant} ORDER BY m.seq"
)
_NEWER: Final[LiteralString] = (
    "SELECT count(*) FROM {memories} AS m JOIN {tenants} AS t ON t.key = m.tenant"
    " WHERE t.name = %s AND m.seq > t.last_seq"
)
_LENGTHS: Final[LiteralString] = (
    "SELECT count(*) FROM {vectors} AS v WHERE v.tenant = {this_tenant} AND cardinality(v.exact) <> v.dimensions"
)
_VERSIONS: Final[LiteralString] = (
    "SELECT h.seq, h.revision, h.entry::text FROM {history} AS h WHERE h.tenant = {this_tenant}"
)


def find_contradictions(collection: Collection) -> list[str]:
    """What is wrong, in plain words; nothing if all is well. Reads everything of the tenant."""
    findings: list[str] = []
    for query, meaning in ((_NEWER, "memories are newer than the counter"), (_LENGTHS, "vectors say another length")):
        [wrong] = collection.execute(query, (collection.tenant,)).fetchone() or [0]
        if wrong:
            findings.append(f"{wrong} {meaning}")
    found = [problem for _, problem in _entries(collection) if problem] + list(_versions(collection))
    findings += found[:SHOWN]
    if len(found) > SHOWN:
        findings.append(f"... and {len(found) - SHOWN} more like the last one")
    return findings


def repair(collection: Collection) -> list[str]:
    """Make words, digests and the counter anew of the rows that can be read; what was done. Nothing is dropped."""
    mended = 0
    digest_of: LiteralString = "UPDATE {memories} SET digest = %s WHERE tenant = {this_tenant} AND seq = %s"
    words_of_it: LiteralString = (
        "INSERT INTO {words} (tenant, seq, words) VALUES ({this_tenant}, %s, %s)"
        " ON CONFLICT (tenant, seq) DO UPDATE SET words = excluded.words"
    )
    for entry, problem in list(_entries(collection)):
        if entry is not None and problem is not None:
            collection.execute(digest_of, (bytes.fromhex(entry.digest), collection.tenant, entry.seq))
            collection.execute(words_of_it, (collection.tenant, entry.seq, words_of(entry)))
            mended += 1
    counter: LiteralString = (
        "UPDATE {tenants} AS t SET last_seq = m.last"
        " FROM (SELECT tenant, max(seq) AS last FROM {memories} GROUP BY tenant) AS m"
        " WHERE m.tenant = t.key AND t.name = %s AND m.last > t.last_seq"
    )
    counted = collection.execute(counter, (collection.tenant,)).rowcount
    done = (
        (mended, "memories got the digest and the words of their content anew"),
        (counted, "counter of the order was set to the newest memory"),
    )
    return [f"{count} {meaning}" for count, meaning in done if count]


def _entries(collection: Collection) -> Iterator[tuple[MemoryEntry | None, str | None]]:
    """Each row as an entry, if it can be one, and what is wrong with it."""
    rows = collection.execute(_ENTRIES, (collection.tenant,), selected=SELECTED, vector=SELECTED_VECTOR).fetchall()
    for digest, words, *row in rows:
        entry, problem = _read(row, collection.tenant)
        if entry is not None:
            problem = _compared(entry, bytes(digest).hex(), words)
        yield entry, problem


def _read(row: list[Any], tenant: str) -> tuple[MemoryEntry | None, str | None]:
    try:
        entry = entry_of(row, tenant)
        check_entry(entry)
    except StoreDamaged as error:
        return None, error.problem
    except (InvalidInput, InvalidType) as error:
        return None, f"the memory {row[1]!r} has a {error.field} that could not have been stored"
    return entry, None


def _compared(entry: MemoryEntry, digest: str, words: list[int] | None) -> str | None:
    if entry.digest != digest:
        return f"the memory {entry.id!r} has the digest of another content"
    if words is None:
        return f"the memory {entry.id!r} has no words in the index"
    if sorted(words) != sorted(hashes_of(entry.tenant, distinct_terms(entry.content))):
        return f"the memory {entry.id!r} is indexed with other words than it holds"
    return None


def _versions(collection: Collection) -> Iterator[str]:
    for seq, revision, text in collection.execute(_VERSIONS, (collection.tenant,)).fetchall():
        try:
            check_entry(version_of(text))
        except (StoreDamaged, InvalidInput, InvalidType):
            yield f"the former version {revision} of the memory with the seq {seq} cannot be read"
