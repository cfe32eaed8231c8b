"""Vector search: a first look at the codes, then the exact cosine of every entry that can be among the best.

Scope and filter hold before anything is ranked. The result is that of an exact scan: codes only rule
out what their known difference proves to be farther away than the `limit`-th best.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lamina.adapters._shared.instants import to_micros
from lamina.adapters._shared.where_sql import is_plain, json_list
from lamina.adapters.sqlite.codes import Block, as_rows, cosines
from lamina.adapters.sqlite.partitions import IN_PARTITION, LAST, Reach
from lamina.adapters.sqlite.reading import condition_of
from lamina.adapters.sqlite.tables import Tables
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.ports.memory_adapter import SearchOptions

__all__ = ["nearest"]

Keys = NDArray[np.int64]
Numbers = NDArray[np.float64]

AT_ONCE: Final = 8
"""Blocks widened to float32 together: 512 rows, which stay in the processor's cache and on one thread."""

RESCORED_AT_ONCE: Final = 512
"""Up to so many admitted entries are compared exactly right away."""

ROUNDING: Final = 1e-5
"""More than what float32 arithmetic can be off by in one product of unit vectors."""


def nearest(
    connection: sqlite3.Connection, tables: Tables, query: bytes, reach: Reach, options: SearchOptions
) -> list[tuple[int, float]]:
    """The keys and cosines of the entries in reach that are closest, best first, ties by id."""
    wanted = as_rows([query])[0]
    admitted = None if is_plain(options.filter) else _admitted(connection, tables, reach, options)
    if admitted is not None and len(admitted) <= RESCORED_AT_ONCE:
        candidates = admitted
    else:
        expired = _expired(connection, tables, reach, options) if admitted is None else None
        candidates = _candidates(connection, tables, wanted, reach, options.limit, admitted, expired)
    return _best(connection, tables, wanted, candidates, options.limit)


def _admitted(connection: sqlite3.Connection, tables: Tables, reach: Reach, options: SearchOptions) -> Keys:
    """The keys in reach that have a vector and pass the filter."""
    condition = condition_of(tables, options.filter)
    template = (
        "SELECT m.key FROM {partitions} AS p CROSS JOIN {memories} AS m ON m.partition = p.id "
        "WHERE {reach} AND {condition} AND EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key = m.key)"
    )
    query = tables.sql(template, reach=reach.condition.text, condition=condition.text)
    return _keys(connection, query, (*reach.condition.parameters, *condition.parameters))


def _expired(connection: sqlite3.Connection, tables: Tables, reach: Reach, options: SearchOptions) -> Keys:
    template = (
        "SELECT m.key FROM {partitions} AS p CROSS JOIN {memories} AS m ON m.partition = p.id "
        "WHERE {reach} AND m.expires_at <= ?"
    )
    query = tables.sql(template, reach=reach.condition.text)
    return _keys(connection, query, (*reach.condition.parameters, to_micros(options.filter.now)))


def _candidates(  # noqa: PLR0917 - one computation with all its facts
    connection: sqlite3.Connection,
    tables: Tables,
    wanted: Numbers,
    reach: Reach,
    limit: int,
    admitted: Keys | None,
    expired: Keys | None,
) -> Keys:
    """The keys that can be among the `limit` best: no other can, whatever its exact cosine."""
    parts = [*_coded(connection, tables, wanted, reach), *_loose(connection, tables, wanted, reach)]
    if not parts:
        return np.empty(0, np.int64)
    keys, near, differences = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    seen = keys & LAST != 0  # the others are empty slots
    if admitted is not None:
        seen &= np.isin(keys, admitted)
    elif expired is not None and len(expired):
        seen &= ~np.isin(keys, expired)
    keys, near, differences = keys[seen], near[seen], differences[seen]
    if len(keys) <= limit:
        return keys
    surely = near - differences
    threshold = np.partition(surely, len(keys) - limit)[len(keys) - limit]
    return keys[near + differences >= threshold - ROUNDING]


def _coded(
    connection: sqlite3.Connection, tables: Tables, wanted: Numbers, reach: Reach
) -> Iterator[tuple[Keys, Numbers, Numbers]]:
    """Keys, cosines by the codes, and how far those may be off, of what stands in blocks."""
    length = np.linalg.norm(wanted)
    direction = (wanted / length if length > 0 else wanted).astype(np.float32)
    template = (
        "SELECT b.key, b.data FROM {partitions} AS p CROSS JOIN {blocks} AS b ON b.key "
        + IN_PARTITION
        + " WHERE {reach}"
    )
    rows = connection.execute(tables.sql(template, reach=reach.condition.text), reach.condition.parameters)
    while chunk := list(islice(rows, AT_ONCE)):
        blocks = [Block(data) for _, data in chunk]
        codes = np.concatenate([block.codes for block in blocks]).astype(np.float32)
        steps = np.concatenate([block.steps for block in blocks])
        keys = np.concatenate(
            [(key & ~LAST) | block.counts.astype(np.int64) for (key, _), block in zip(chunk, blocks, strict=True)]
        )
        differences = np.concatenate([block.differences for block in blocks])
        yield keys, (codes @ direction) * steps, differences


def _loose(
    connection: sqlite3.Connection, tables: Tables, wanted: Numbers, reach: Reach
) -> Iterator[tuple[Keys, Numbers, Numbers]]:
    """Keys and exact cosines of what stands in no block yet."""
    template = (
        "SELECT v.key, v.data FROM {partitions} AS p CROSS JOIN {vectors} AS v INDEXED BY {vectors}_loose "
        "ON v.block IS NULL AND v.key " + IN_PARTITION + " WHERE {reach}"
    )
    rows = connection.execute(tables.sql(template, reach=reach.condition.text), reach.condition.parameters).fetchall()
    if rows:
        exact = cosines(as_rows([data for _, data in rows]), wanted)
        yield np.array([key for key, _ in rows], np.int64), exact, np.zeros(len(rows))


def _best(
    connection: sqlite3.Connection, tables: Tables, wanted: Numbers, candidates: Keys, limit: int
) -> list[tuple[int, float]]:
    vectors = read_vectors(connection, tables, candidates.tolist())
    if not vectors:
        return []
    keys = list(vectors)
    exact = cosines(as_rows(list(vectors.values())), wanted)
    if len(keys) > limit:  # all that are as close as the last one, so that their ids decide
        last = np.partition(exact, len(keys) - limit)[len(keys) - limit]
        keys = [key for key, cosine in zip(keys, exact, strict=True) if cosine >= last]
        exact = exact[exact >= last]
    query = tables.sql("SELECT key, id FROM {memories} WHERE key IN (SELECT value FROM json_each(?))")
    ids = dict(connection.execute(query, (json_list(keys),)).fetchall())
    ranked = sorted(zip(keys, exact.tolist(), strict=True), key=lambda pair: (-pair[1], ids[pair[0]]))
    return ranked[:limit]


def _keys(connection: sqlite3.Connection, query: str, parameters: tuple[object, ...]) -> Keys:
    return np.array([key for (key,) in connection.execute(query, parameters)], np.int64)
