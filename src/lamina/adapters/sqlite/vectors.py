"""Vectors in the file: each by its key, exact; and of each partition all but the newest in blocks of codes.

A new vector is loose: it stands in no block. When a partition has 64 loose ones they are sealed into
a block, so that one more vector never rewrites a block. A vector that goes leaves an empty slot with
its codes zeroed; a block that has become mostly empty is opened again and its vectors are loose.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from lamina.adapters._shared.where_sql import json_list
from lamina.adapters.sqlite.partitions import LAST, partition_of
from lamina.adapters.sqlite.tables import Tables

__all__ = ["BLOCK", "CODES", "DIFFERENCES", "STEPS", "VectorWriter", "read_vectors"]

BLOCK: Final = 64
STEPS: Final = 4 * BLOCK
DIFFERENCES: Final = 8 * BLOCK
CODES: Final = 12 * BLOCK
"""Where, in bytes, the parts of a block begin; the counts are at 0."""

SPARSE: Final = 16
"""A block with fewer vectors is opened: at worst, a quarter of what a search reads is of use."""


def read_vectors(connection: sqlite3.Connection, tables: Tables, keys: Iterable[int]) -> dict[int, bytes]:
    """The packed vectors of those of the keys that have one."""
    query = tables.sql("SELECT key, data FROM {vectors} WHERE key IN (SELECT value FROM json_each(?))")
    return dict(connection.execute(query, (json_list(keys),)).fetchall())


class VectorWriter:
    """The vectors that one transaction adds and removes; `flush` writes what is pending."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        self._pending: dict[int, bytes] = {}
        self._opened: set[int] = set()
        self._growth: defaultdict[int, int] = defaultdict(int)

    def add(self, key: int, data: bytes) -> None:
        """Give a memory that has none this vector."""
        self._pending[key] = data
        self._growth[partition_of(key)] += 1

    def read(self, key: int) -> bytes | None:
        """The memory's vector, pending ones included."""
        if key in self._pending:
            return self._pending[key]
        return read_vectors(self._connection, self._tables, [key]).get(key)

    def remove(self, key: int) -> None:
        """Take away the memory's vector, if it has one, and its codes."""
        if self._pending.pop(key, None) is None:
            query = self._tables.sql("DELETE FROM {vectors} WHERE key = ? RETURNING block, slot")
            row = self._connection.execute(query, (key,)).fetchone()
            if row is None:
                return
            if row[0] is not None:
                self._clear_slot(*row)
        self._growth[partition_of(key)] -= 1

    def drop(self, partition: int) -> int:
        """Take away all vectors of the partition; how many there were."""
        query = self._tables.sql("DELETE FROM {vectors} WHERE key BETWEEN ? AND ?")
        dropped = self._connection.execute(query, _bounds(partition))
        query = self._tables.sql("DELETE FROM {blocks} WHERE key BETWEEN ? AND ?")
        self._connection.execute(query, _bounds(partition))
        self._growth[partition] -= dropped.rowcount
        return dropped.rowcount

    def flush(self) -> None:
        """Write the pending vectors, seal what fills a block, and count."""
        pending: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        for key in sorted(self._pending):
            pending[partition_of(key)][key] = self._pending[key]
        for partition in sorted(pending.keys() | self._opened):
            self._write(partition, pending[partition])
        for partition, growth in self._growth.items():
            data = next(iter(pending[partition].values()), None)
            self._connection.execute(
                self._tables.sql(
                    "UPDATE {partitions} SET vectors = vectors + ?, dimensions = coalesce(?, dimensions) WHERE id = ?"
                ),
                (growth, None if data is None else len(data) // 4, partition),
            )

    def _write(self, partition: int, new: dict[int, bytes]) -> None:
        """Write the new vectors; where they and the loose ones fill blocks, the oldest are sealed."""
        loose = self._loose(partition)
        waiting = sorted([*loose, *new])
        sealed = waiting[: len(waiting) // BLOCK * BLOCK]
        places = self._seal(partition, sealed, new) if sealed else {}
        self._connection.executemany(
            self._tables.sql("UPDATE {vectors} SET block = ?, slot = ? WHERE key = ?"),
            [(*places[key], key) for key in loose if key in places],
        )
        self._connection.executemany(
            self._tables.sql("INSERT INTO {vectors} (key, block, slot, data) VALUES (?, ?, ?, ?)"),
            [(key, *places.get(key, (None, None)), data) for key, data in new.items()],
        )

    def _seal(self, partition: int, keys: list[int], new: dict[int, bytes]) -> dict[int, tuple[int, int]]:
        """Write full blocks of these memories; the block and slot of each."""
        from lamina.adapters.sqlite import codes  # here, because numpy takes longer to import than all the rest

        data = new | read_vectors(self._connection, self._tables, [key for key in keys if key not in new])
        query = self._tables.sql("SELECT max(key) FROM {blocks} WHERE key BETWEEN ? AND ?")
        (last,) = self._connection.execute(query, _bounds(partition)).fetchone()
        block = (partition << 32) if last is None else last
        places = {}
        for start in range(0, len(keys), BLOCK):
            block += 1
            members = keys[start : start + BLOCK]
            coded = codes.encode([key & LAST for key in members], [data[key] for key in members])
            self._connection.execute(self._tables.sql("INSERT INTO {blocks} VALUES (?, ?, ?)"), (block, BLOCK, coded))
            places.update({key: (block, slot) for slot, key in enumerate(members)})
        return places

    def _loose(self, partition: int) -> list[int]:
        query = "SELECT key FROM {vectors} INDEXED BY {vectors}_loose WHERE block IS NULL AND key BETWEEN ? AND ?"
        return [key for (key,) in self._connection.execute(self._tables.sql(query), _bounds(partition))]

    def _clear_slot(self, block: int, slot: int) -> None:
        query = self._tables.sql("UPDATE {blocks} SET live = live - 1 WHERE key = ? RETURNING live, length(data)")
        ((live, size),) = self._connection.execute(query, (block,)).fetchall()
        if live < SPARSE:
            self._open(block)
            return
        dimensions = (size - CODES) // BLOCK
        with self._connection.blobopen(self._tables.names["blocks"], "data", block) as blob:
            for part in (0, STEPS, DIFFERENCES):
                blob[part + 4 * slot : part + 4 * slot + 4] = bytes(4)
            blob[CODES + dimensions * slot : CODES + dimensions * (slot + 1)] = bytes(dimensions)

    def _open(self, block: int) -> None:
        """Delete the block; what stood in it is loose again."""
        query = self._tables.sql("DELETE FROM {blocks} WHERE key = ? RETURNING data")
        ((data,),) = self._connection.execute(query, (block,)).fetchall()
        partition = partition_of(block)
        keys = [partition << 32 | count for count in struct.unpack_from(f"<{BLOCK}I", data) if count]
        query = "UPDATE {vectors} SET block = NULL, slot = NULL WHERE key IN (SELECT value FROM json_each(?))"
        self._connection.execute(self._tables.sql(query), (json_list(keys),))
        self._opened.add(partition)


def _bounds(partition: int) -> tuple[int, int]:
    return partition << 32, partition << 32 | LAST
