"""Mends what can be made anew from the rows: the text index, the blocks of vectors, what is counted.

Nothing that can be read is dropped: a former version of no memory stays where it is, and so does a row that
contradicts itself. A vector that fits nothing is dropped, for it can be made again from the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lamina.adapters.sqlite import checking
from lamina.adapters.sqlite.migrations import index_anew
from lamina.adapters.sqlite.rows import entry_of, selected
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.writing import Writing
from lamina.domain.validation import check_entry
from lamina.errors import InvalidInput, InvalidType, StoreDamaged

__all__ = ["repair"]

_LAST: Final = "memories contradict their partition"
_SEQ: Final = "memories are newer than the counter"
_TEXT: Final = ("memories have no text in the index", "texts in the index belong to no memory")
_VECTORS: Final = (
    "vectors belong to no memory",
    "vectors stand in a block that does not exist",
    "vectors have another length than their partition says",
    "partitions count their vectors wrongly",
)
_LENGTH: Final = (
    "SELECT length(v.data) FROM {vectors} AS v WHERE v.key {in_partition} AND length(v.data) % 4 = 0 "
    "GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
)


def repair(collection: Collection) -> list[str]:
    """What was mended, in plain words; run in a transaction that writes.

    Raises:
        StoreDamaged: pages of the file contradict each other, which rows cannot mend.
    """
    steps = (_indexes, _digests, _texts, _vectors, _counts)
    collection.connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        return [done for step in steps for done in step(collection)]
    finally:
        collection.connection.text_factory = str


def _wrong(collection: Collection, kinds: Sequence[str]) -> int:
    return sum(checking.count_of(collection, kind) for kind in kinds)


def _indexes(collection: Collection) -> Iterator[str]:
    if checking.integrity(collection):
        for table in ("memories", "partitions", "vectors", "history", "meta"):
            collection.execute(f"REINDEX {{{table}}}")
        if not checking.integrity(collection):
            yield "the indexes of the tables were made anew"


def _digests(collection: Collection) -> Iterator[str]:
    """A row that can be read gets the digest of its content, by which twins are found."""
    query = "SELECT m.key, m.digest, {selected} FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition"
    stale: list[tuple[bytes, int]] = []
    for key, digest, *row in collection.execute(query, selected=selected()):
        try:
            entry = entry_of(row, None)
            check_entry(entry)
        except (StoreDamaged, InvalidInput, InvalidType):
            continue  # which the check tells
        if entry.digest != digest.hex():
            stale.append((bytes.fromhex(entry.digest), key))
    collection.execute_many("UPDATE {memories} SET digest = ? WHERE key = ?", stale)
    if stale:
        yield f"{len(stale)} memories got the digest of their content"


def _texts(collection: Collection) -> Iterator[str]:
    if checking.find_text_damage(collection) or _wrong(collection, _TEXT) or list(checking.stale_texts(collection)):
        index_anew(collection)
        collection.execute("UPDATE {partitions} SET state = random()")  # so that nobody keeps the former words
        (count,) = collection.execute("SELECT count(*) FROM {memories}").fetchone()
        yield f"the text index was made anew from {count} memories"


def _vectors(collection: Collection) -> Iterator[str]:
    if not _wrong(collection, _VECTORS) and not list(checking.wrong_codes(collection)):
        return
    orphans = collection.execute("DELETE FROM {vectors} WHERE key NOT IN (SELECT key FROM {memories})").rowcount
    if orphans:
        yield f"{orphans} vectors of no memory were removed"
    collection.execute(
        f"UPDATE {{partitions}} AS p SET dimensions = ifnull(({_LENGTH}) / 4, 0) WHERE vectors > 0 "  # noqa: S608
        "OR EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key {in_partition})"
    )
    unfit = collection.execute(
        "DELETE FROM {vectors} WHERE length(data) <> "
        "(SELECT 4 * p.dimensions FROM {partitions} AS p WHERE p.id = {vectors}.key >> 32)"
    ).rowcount
    if unfit:
        yield f"{unfit} vectors of another length than the others were removed: `lamina reembed` makes them anew"
    counted = "(SELECT count(*) FROM {vectors} AS v WHERE v.key {in_partition})"
    query = f"SELECT p.id, {counted} - p.vectors FROM {{partitions}} AS p"  # noqa: S608 - our own texts
    writing = Writing(collection)
    for partition, growth in collection.execute(query).fetchall():
        writing.rebuild_vectors(partition, growth)
    writing.flush()
    collection.execute("DELETE FROM {blocks} WHERE key NOT IN (SELECT block FROM {vectors} WHERE block IS NOT NULL)")
    yield "the blocks and counts of the vectors were made anew"


def _counts(collection: Collection) -> Iterator[str]:
    if _wrong(collection, (_LAST,)):
        query = (
            "UPDATE {partitions} AS p SET last = max(last, ifnull((SELECT max(m.key & 4294967295) FROM {memories} AS m "
            "WHERE m.partition = p.id), 0))"
        )
        before = _wrong(collection, (_LAST,))
        collection.execute(query)
        if _wrong(collection, (_LAST,)) < before:
            yield "the counts given out in the partitions were set to their greatest"
    if _wrong(collection, (_SEQ,)):
        collection.execute("UPDATE {counters} SET value = (SELECT max(seq) FROM {memories}) WHERE name = 'seq'")
        yield "the counter of the order was set to the newest memory"
