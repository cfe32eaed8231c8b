"""The codes of the partitions in reach: from memory where they are kept there, else from the file."""

from __future__ import annotations

from typing import Final

import numpy as np

from lamina.adapters.sqlite.codes import as_rows, decode, unit
from lamina.adapters.sqlite.kept_codes import Codes
from lamina.adapters.sqlite.partitions import FEW, Partition, Reach, bounds
from lamina.adapters.sqlite.tables import Collection

__all__ = ["kept_or_read"]

BESIDE: Final = 16
"""Bytes that are kept beside a vector's codes."""

WORTHWHILE: Final = 256
"""Vectors in a partition, on average, from which on many partitions are kept one by one."""


def kept_or_read(collection: Collection, reach: Reach) -> list[Codes] | None:
    """The codes in reach; None where they are too many, or in too small pieces, to be kept."""
    kept = collection.kept
    if kept is None or reach.partitions is None:
        return None
    partitions = [each for each in reach.partitions if each.vectors]
    number = sum(each.vectors for each in partitions)
    size = sum(each.vectors * (each.dimensions + BESIDE) for each in partitions)
    if size > kept.budget or number < WORTHWHILE * (len(partitions) - FEW):
        return None
    found = []
    for each in partitions:
        codes = kept.get(("codes", each.id), each.state)
        if not isinstance(codes, Codes):
            codes = _read(collection, each)
            kept.put(("codes", each.id), codes)
        found.append(codes)
    return found


def _read(collection: Collection, partition: Partition) -> Codes:
    id, state = partition.id, partition.state
    query = "SELECT data FROM {blocks} WHERE key BETWEEN ? AND ?"
    data = [data for (data,) in collection.execute(query, bounds(id))]
    query = "SELECT key, data FROM {vectors} INDEXED BY {vectors_loose} WHERE block IS NULL AND key BETWEEN ? AND ?"
    loose = collection.execute(query, bounds(id)).fetchall()
    loose_keys = np.array([key for key, _ in loose], np.int64)
    exact = np.empty((0, 0), np.float32)
    if loose:
        exact = unit(as_rows([packed for _, packed in loose])).astype(np.float32)
    if not data:
        empty = np.empty(0, np.float32)
        return Codes(state, np.empty(0, np.int64), np.empty((0, 0), np.int8), empty, empty, loose_keys, exact)
    blocks = decode(data)
    counts = blocks["counts"].ravel()
    taken = counts != 0  # the others are empty slots
    return Codes(
        state,
        keys=(id << 32) | counts[taken].astype(np.int64),
        codes=blocks["codes"].reshape(len(counts), -1)[taken],
        steps=blocks["steps"].ravel()[taken],
        differences=blocks["differences"].ravel()[taken],
        loose_keys=loose_keys,
        loose=exact,
    )
