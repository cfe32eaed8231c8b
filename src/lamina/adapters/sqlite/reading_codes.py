"""The codes of the partitions in reach: from memory where they are kept there, else from the file."""

from __future__ import annotations

from typing import Final

import numpy as np

from lamina.adapters.sqlite.codes import as_rows, decode, unit
from lamina.adapters.sqlite.kept_codes import Codes
from lamina.adapters.sqlite.partitions import FEW, Reach, bounds
from lamina.adapters.sqlite.tables import Collection

__all__ = ["kept_or_read"]

BESIDE: Final = 16
"""Bytes that are kept beside a vector's codes."""

WORTHWHILE: Final = 256
"""Vectors in a partition, on average, from which on many partitions are kept one by one."""


def kept_or_read(collection: Collection, reach: Reach) -> list[Codes] | None:
    """The codes in reach; None where they are too many, or in too small pieces, to be kept."""
    kept = collection.kept
    if kept is None:
        return None
    query = "SELECT p.id, p.state, p.vectors, p.dimensions FROM {partitions} AS p WHERE p.vectors > 0 AND {reach}"
    partitions = collection.execute(query, reach.condition.parameters, reach=reach.condition.text).fetchall()
    number = sum(vectors for _, _, vectors, _ in partitions)
    size = sum(vectors * (dimensions + BESIDE) for _, _, vectors, dimensions in partitions)
    if size > kept.budget or number < WORTHWHILE * (len(partitions) - FEW):
        return None
    found = []
    for partition, state, *_ in partitions:
        codes = kept.get(partition, state)
        if codes is None:
            codes = _read(collection, partition, state)
            kept.put(partition, codes)
        found.append(codes)
    return found


def _read(collection: Collection, partition: int, state: int) -> Codes:
    query = "SELECT data FROM {blocks} WHERE key BETWEEN ? AND ?"
    data = [data for (data,) in collection.execute(query, bounds(partition))]
    query = "SELECT key, data FROM {vectors} INDEXED BY {vectors_loose} WHERE block IS NULL AND key BETWEEN ? AND ?"
    loose = collection.execute(query, bounds(partition)).fetchall()
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
        keys=(partition << 32) | counts[taken].astype(np.int64),
        codes=blocks["codes"].reshape(len(counts), -1)[taken],
        steps=blocks["steps"].ravel()[taken],
        differences=blocks["differences"].ravel()[taken],
        loose_keys=loose_keys,
        loose=exact,
    )
