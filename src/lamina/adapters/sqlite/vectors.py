"""Vectors in the file: each by its key, exact; and of each partition all but the newest in blocks of codes.

A new vector is loose: it stands in no block. When a partition has 64 loose ones they are sealed into
a block, so that one more vector never rewrites a block. A vector that goes leaves an empty slot with
its codes zeroed; a block that has become mostly empty is opened again and its vectors are loose.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from lamina.adapters._shared.where_sql import json_list
from lamina.adapters.sqlite.block_layout import BLOCK, CODES, DIFFERENCES, STEPS
from lamina.adapters.sqlite.partitions import LAST, bounds, partition_of
from lamina.adapters.sqlite.tables import Collection

__all__ = ["VectorWriter", "read_vectors"]

SPARSE: Final = 16
"""A block with fewer vectors is opened: at worst, a quarter of what a search reads is of use."""


def read_vectors(collection: Collection, keys: Iterable[int]) -> dict[int, bytes]:
    """The packed vectors of those of the keys that have one."""
    query = "SELECT key, data FROM {vectors} WHERE key IN (SELECT value FROM json_each(?))"
    return dict(collection.execute(query, (json_list(keys),)).fetchall())


class VectorWriter:
    """The vectors that one transaction adds and removes; `flush` writes what is pending."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
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
        return read_vectors(self._collection, [key]).get(key)

    def remove(self, key: int) -> None:
        """Take away the memory's vector, if it has one, and its codes."""
        if self._pending.pop(key, None) is None:
            rows = self._collection.execute(
                "DELETE FROM {vectors} WHERE key = ? RETURNING block, slot", (key,)
            ).fetchall()
            if not rows:
                return
            block, slot = rows[0]
            if block is not None:
                self._clear_slot(block, slot)
        self._growth[partition_of(key)] -= 1

    def drop(self, partition: int) -> int:
        """Take away all vectors of the partition; how many there were."""
        dropped = self._collection.execute("DELETE FROM {vectors} WHERE key BETWEEN ? AND ?", bounds(partition))
        self._collection.execute("DELETE FROM {blocks} WHERE key BETWEEN ? AND ?", bounds(partition))
        self._growth[partition] -= dropped.rowcount
        return dropped.rowcount

    def rebuild(self, partition: int, growth: int) -> None:
        """Let all vectors of the partition be loose, for `flush` to seal anew; there are `growth` more than said."""
        self._collection.execute("DELETE FROM {blocks} WHERE key BETWEEN ? AND ?", bounds(partition))
        query = "UPDATE {vectors} SET block = NULL, slot = NULL WHERE key BETWEEN ? AND ?"
        self._collection.execute(query, bounds(partition))
        self._opened.add(partition)
        self._growth[partition] += growth

    def flush(self) -> dict[int, tuple[int, int | None]]:
        """Write the pending vectors and seal what fills a block.

        Returns:
            By partition, how many vectors more it has now, which may be less than none, and how long new ones are.
        """
        pending: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        for key in sorted(self._pending):
            pending[partition_of(key)][key] = self._pending[key]
        for partition in sorted(pending.keys() | self._opened):
            self._write(partition, pending[partition])
        lengths = {partition: len(next(iter(new.values()))) // 4 for partition, new in pending.items() if new}
        return {partition: (growth, lengths.get(partition)) for partition, growth in self._growth.items()}

    def _write(self, partition: int, new: dict[int, bytes]) -> None:
        """Write the new vectors; where they and the loose ones fill blocks, the oldest are sealed."""
        places = self._seal_what_fills_blocks(partition, new)
        rows = [(key, *places.get(key, (None, None)), data) for key, data in new.items()]
        self._collection.execute_many("INSERT INTO {vectors} (key, block, slot, data) VALUES (?, ?, ?, ?)", rows)

    def _seal_what_fills_blocks(self, partition: int, new: dict[int, bytes]) -> dict[int, tuple[int, int]]:
        """Seal the oldest of the new and the loose vectors; the block and slot of each that now has one."""
        loose = "FROM {vectors} INDEXED BY {vectors_loose} WHERE block IS NULL AND key BETWEEN ? AND ?"
        # Counted first: to be handed one key after the other takes longer than most additions do otherwise.
        (count,) = self._collection.execute(f"SELECT count(*) {loose}", bounds(partition)).fetchone()
        if count + len(new) < BLOCK:
            return {}
        keys = [key for (key,) in self._collection.execute(f"SELECT key {loose}", bounds(partition))]
        waiting = sorted([*keys, *new])
        places = self._seal(partition, waiting[: len(waiting) // BLOCK * BLOCK], new)
        moved = [(*places[key], key) for key in keys if key in places]
        if moved:
            self._collection.execute_many("UPDATE {vectors} SET block = ?, slot = ? WHERE key = ?", moved)
        return places

    def _seal(self, partition: int, keys: list[int], new: dict[int, bytes]) -> dict[int, tuple[int, int]]:
        """Write full blocks of these memories; the block and slot of each."""
        from lamina.adapters.sqlite import codes  # here, because numpy takes longer to import than all the rest

        data = new | read_vectors(self._collection, [key for key in keys if key not in new])
        query = "SELECT max(key) FROM {blocks} WHERE key BETWEEN ? AND ?"
        (last,) = self._collection.execute(query, bounds(partition)).fetchone()
        block = (partition << 32) if last is None else last
        places = {}
        for start in range(0, len(keys), BLOCK):
            block += 1
            members = keys[start : start + BLOCK]
            coded = codes.encode([key & LAST for key in members], [data[key] for key in members])
            self._collection.execute("INSERT INTO {blocks} (key, live, data) VALUES (?, ?, ?)", (block, BLOCK, coded))
            places.update({key: (block, slot) for slot, key in enumerate(members)})
        return places

    def _clear_slot(self, block: int, slot: int) -> None:
        query = "UPDATE {blocks} SET live = live - 1 WHERE key = ? RETURNING live, length(data)"
        ((live, size),) = self._collection.execute(query, (block,)).fetchall()
        if live < SPARSE:
            self._open(block)
            return
        dimensions = (size - CODES) // BLOCK
        numbers = ((part + 4 * slot, 4) for part in (0, STEPS, DIFFERENCES))
        with self._collection.connection.blobopen(self._collection.tables.names["blocks"], "data", block) as blob:
            for start, length in (*numbers, (CODES + dimensions * slot, dimensions)):
                blob.seek(start)
                blob.write(bytes(length))

    def _open(self, block: int) -> None:
        """Delete the block; what stood in it is loose again."""
        ((data,),) = self._collection.execute("DELETE FROM {blocks} WHERE key = ? RETURNING data", (block,)).fetchall()
        partition = partition_of(block)
        keys = [partition << 32 | count for count in struct.unpack_from(f"<{BLOCK}I", data) if count]
        query = "UPDATE {vectors} SET block = NULL, slot = NULL WHERE key IN (SELECT value FROM json_each(?))"
        self._collection.execute(query, (json_list(keys),))
        self._opened.add(partition)
