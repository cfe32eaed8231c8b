"""How new memories are written: few as they are, many by COPY.

COPY goes into a table of this transaction alone, since it cannot write into one with policies. From there
rows go on in portions, so that no single statement takes as long as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from psycopg.types.numeric import Int4

from lamina.adapters.postgres.arrays import reals_of
from lamina.adapters.postgres.rows import COLUMNS, values_of, words_of
from lamina.adapters.postgres.tables import Collection
from lamina.domain.memory import MemoryEntry

__all__ = ["COPIED_FROM", "copy_many", "insert_few"]

COPIED_FROM: Final = 50
"""From so many rows on they are copied."""

PORTION: Final = 1_000

_NAMES: Final = ", ".join(COLUMNS)
_VALUES: Final = ", ".join("%s::jsonb" if name == "metadata" else "%s" for name in COLUMNS)
_MOVED: Final = ", ".join("metadata::jsonb" if name == "metadata" else name for name in COLUMNS)
_KINDS: Final = {
    "seq": "bigint",
    "revision": "bigint",
    "access_count": "bigint",
    "digest": "bytea",
    "tags": "text[]",
    "derived_from": "text[]",
    "words": "bigint[]",
    "dimensions": "integer",
    "exact": "real[]",
    **dict.fromkeys(("relevance", "base_relevance", "confidence", "ttl"), "double precision"),
    **dict.fromkeys(
        ("created_at", "updated_at", "expires_at", "last_accessed_at", "occurred_at", "valid_until"), "timestamptz"
    ),
}
_INCOMING: Final = [*COLUMNS, "words", "dimensions", "exact"]


def copy_many(collection: Collection, tenant: int, entries: Sequence[MemoryEntry]) -> None:
    """As `insert_few`, for many."""
    columns = ", ".join(f"{name} {_KINDS.get(name, 'text')}" for name in _INCOMING)
    collection.execute("CREATE TEMPORARY TABLE lamina_incoming ({columns}) ON COMMIT DROP", columns=columns)
    rest = iter(entries)
    while portion := list(islice(rest, PORTION)):
        _copy(collection, portion)
        with collection.together():
            _move(collection, tenant)
    collection.execute("DROP TABLE pg_temp.lamina_incoming")


def insert_few(collection: Collection, tenant: int, entries: Sequence[MemoryEntry]) -> None:
    """Write entries that are not there yet, with their words and vectors; each has its `seq`."""
    session = collection.session
    session.execute_many(
        "INSERT INTO {memories} (tenant, {names}) VALUES (%s, {values})",
        [(tenant, *values_of(entry)) for entry in entries],
        names=_NAMES,
        values=_VALUES,
    )
    session.execute_many(
        "INSERT INTO {words} (tenant, seq, words) VALUES (%s, %s, %s)",
        [(tenant, entry.seq, words_of(entry)) for entry in entries],
    )
    session.execute_many(
        "INSERT INTO {vectors} (tenant, seq, dimensions, exact) VALUES (%s, %s, %s, %s)",
        [
            (tenant, entry.seq, len(entry.embedding), reals_of(entry.embedding))
            for entry in entries
            if entry.embedding is not None
        ],
    )


def _copy(collection: Collection, entries: Sequence[MemoryEntry]) -> None:
    statement = "COPY pg_temp.lamina_incoming FROM STDIN (FORMAT BINARY)"
    with collection.session.connection.cursor() as cursor, cursor.copy(statement) as copy:
        for entry in entries:
            copy.write_row(_incoming(entry))


def _incoming(entry: MemoryEntry) -> tuple[Any, ...]:
    row = (*values_of(entry), words_of(entry))
    if entry.embedding is None:
        return (*row, None, None)
    return (*row, Int4(len(entry.embedding)), reals_of(entry.embedding))


def _move(collection: Collection, tenant: int) -> None:
    query = "INSERT INTO {memories} (tenant, {names}) SELECT %s, {values} FROM pg_temp.lamina_incoming"
    collection.execute(query, (tenant,), names=_NAMES, values=_MOVED)
    query = "INSERT INTO {words} (tenant, seq, words) SELECT %s, seq, words FROM pg_temp.lamina_incoming"
    collection.execute(query, (tenant,))
    query = (
        "INSERT INTO {vectors} (tenant, seq, dimensions, exact)"
        " SELECT %s, seq, dimensions, exact FROM pg_temp.lamina_incoming WHERE dimensions IS NOT NULL"
    )
    collection.execute(query, (tenant,))
    collection.execute("TRUNCATE pg_temp.lamina_incoming")
