"""Vector search: a first look at the codes, then the exact cosine of every entry that can be among the best.

Scope and filter hold before anything is ranked. The result is that of an exact scan: codes only rule
out what their known difference proves to be farther away than the `limit`-th best.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lamina.adapters._shared.where_sql import Sql, conjunction, is_plain
from lamina.adapters.sqlite.block_layout import BLOCK
from lamina.adapters.sqlite.codes import as_rows, cosines, decode, unit
from lamina.adapters.sqlite.exact_words import admitted_keys
from lamina.adapters.sqlite.kept_codes import Codes
from lamina.adapters.sqlite.partitions import LAST, Reach
from lamina.adapters.sqlite.reading import condition_of, ids_by_key, keys_left_out
from lamina.adapters.sqlite.reading_codes import kept_or_read
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.ports.memory_adapter import SearchOptions

__all__ = ["cosines_of", "nearest"]

Keys = NDArray[np.int64]
Near = NDArray[np.float32]
Numbers = NDArray[np.float64]

AT_ONCE: Final = 8
"""Blocks widened to float32 together: 512 rows, which stay in the processor's cache and on one thread."""

ROWS: Final = AT_ONCE * BLOCK

RESCORED_AT_ONCE: Final = 512
"""Up to so many admitted entries are compared exactly right away."""

ROUNDING: Final = 1e-5
"""More than what float32 arithmetic can be off by in one product of unit vectors."""


def nearest(
    collection: Collection, query: bytes, reach: Reach, options: SearchOptions, *, gone: Sequence[int] | None = None
) -> list[tuple[int, float]]:
    """The keys and cosines of the entries in reach that are closest, best first, ties by id.

    `gone` are the keys in reach that the filter leaves out, if that is plain and they are known.
    """
    if reach.is_empty:
        return []
    wanted = as_rows([query])[0]
    if is_plain(options.filter):
        keys, near, off = _first_look(collection, wanted, reach)
        if gone is None:
            gone = keys_left_out(collection, reach, options.filter)
        if gone:
            seen = ~np.isin(keys, gone)
            keys, near, off = keys[seen], near[seen], off[seen]
        return _best(collection, wanted, _contenders(keys, near, off, options.limit), options.limit)
    has_vector = collection.tables.sql("EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key = m.key)")
    condition = conjunction([condition_of(collection, options.filter), Sql(has_vector)])
    admitted = np.array(admitted_keys(collection, reach, condition), np.int64)
    if len(admitted) > RESCORED_AT_ONCE:
        keys, near, off = _first_look(collection, wanted, reach)
        seen = np.isin(keys, admitted)
        admitted = _contenders(keys[seen], near[seen], off[seen], options.limit)
    return _best(collection, wanted, admitted, options.limit)


def cosines_of(collection: Collection, query: bytes, keys: Iterable[int]) -> dict[int, float]:
    """The exact cosine of each of these entries that has a vector."""
    vectors = read_vectors(collection, keys)
    if not vectors:
        return {}
    exact = cosines(as_rows(list(vectors.values())), as_rows([query])[0])
    return dict(zip(vectors, exact.tolist(), strict=True))


def _contenders(keys: Keys, near: Near, off: Near, limit: int) -> Keys:
    """The keys that can be among the `limit` best: no other can, whatever its exact cosine."""
    if len(keys) <= limit:
        return keys
    surely = near - off
    threshold = np.partition(surely, len(keys) - limit)[len(keys) - limit]
    contenders: Keys = keys[near + off >= threshold - ROUNDING]
    return contenders


def _first_look(collection: Collection, wanted: Numbers, reach: Reach) -> tuple[Keys, Near, Near]:
    """Of all vectors in reach: keys, cosines, and how far those may be off."""
    direction = unit(wanted[None])[0].astype(np.float32)
    kept = kept_or_read(collection, reach)
    if kept is not None:
        return _of_kept(kept, direction)
    parts = [(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))]
    parts += _coded(collection, direction, reach)
    parts += _loose(collection, direction, reach)
    keys, near, off = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    taken = keys & LAST != 0  # the others are empty slots
    return keys[taken], near[taken], off[taken]


def _of_kept(kept: Sequence[Codes], direction: Near) -> tuple[Keys, Near, Near]:
    """What was kept of partitions."""
    number = sum(len(codes.keys) + len(codes.loose_keys) for codes in kept)
    keys, near, off = np.empty(number, np.int64), np.empty(number, np.float32), np.zeros(number, np.float32)
    end = 0
    for codes in kept:
        begin, end = end, end + len(codes.keys)
        keys[begin:end] = codes.keys
        off[begin:end] = codes.differences
        for start in range(0, len(codes.keys), ROWS):
            rows = codes.codes[start : start + ROWS]
            widened = _room(rows.shape)
            np.copyto(widened, rows)
            np.matmul(widened, direction, out=near[begin + start : begin + start + len(rows)])
        near[begin:end] *= codes.steps
        begin, end = end, end + len(codes.loose_keys)
        if begin < end:
            keys[begin:end] = codes.loose_keys
            np.matmul(codes.loose, direction, out=near[begin:end])
    return keys, near, off


class _Rooms(threading.local):
    """One thread's own: memory that is asked for anew each time costs as much as the product."""

    room: NDArray[np.float32] = np.empty(0, np.float32)


_rooms = _Rooms()


def _room(shape: tuple[int, ...]) -> NDArray[np.float32]:
    size = shape[0] * shape[1]
    if len(_rooms.room) < size:
        _rooms.room = np.empty(size, np.float32)
    return _rooms.room[:size].reshape(shape)


def _coded(collection: Collection, direction: Near, reach: Reach) -> Iterator[tuple[Keys, Near, Near]]:
    """What stands in blocks, by its codes."""
    query = "SELECT b.key, b.data FROM {partitions} AS p CROSS JOIN {blocks} AS b ON b.key {in_partition} WHERE {reach}"
    rows = collection.execute(query, reach.condition.parameters, reach=reach.condition.text)
    while chunk := list(islice(rows, AT_ONCE)):
        blocks = decode([data for _, data in chunk])
        firsts = np.array([key & ~LAST for key, _ in chunk], np.int64)
        keys = firsts[:, None] | blocks["counts"]
        near = (blocks["codes"].astype(np.float32) @ direction) * blocks["steps"]
        yield keys.ravel(), near.ravel(), blocks["differences"].ravel()


def _loose(collection: Collection, direction: Near, reach: Reach) -> Iterator[tuple[Keys, Near, Near]]:
    """What stands in no block yet."""
    query = (
        "SELECT v.key, v.data FROM {partitions} AS p CROSS JOIN {vectors} AS v INDEXED BY {vectors_loose} "
        "ON v.block IS NULL AND v.key {in_partition} WHERE {reach}"
    )
    rows = collection.execute(query, reach.condition.parameters, reach=reach.condition.text).fetchall()
    if rows:
        near = unit(as_rows([data for _, data in rows])).astype(np.float32) @ direction
        yield np.array([key for key, _ in rows], np.int64), near, np.zeros(len(rows), np.float32)


def _best(collection: Collection, wanted: Numbers, candidates: Keys, limit: int) -> list[tuple[int, float]]:
    """The best of the candidates by their exact cosines."""
    vectors = read_vectors(collection, candidates.tolist())
    if not vectors:
        return []
    keys = np.array(list(vectors), np.int64)
    exact = cosines(as_rows(list(vectors.values())), wanted)
    if len(keys) > limit:  # all that are as close as the last one, so that their ids decide
        tied = exact >= np.partition(exact, len(keys) - limit)[len(keys) - limit]
        keys, exact = keys[tied], exact[tied]
    order = np.argsort(-exact)
    keys, exact = keys[order], exact[order]
    ranked = list(zip(keys.tolist(), exact.tolist(), strict=True))
    if (exact[1:] == exact[:-1]).any():
        ids = ids_by_key(collection, keys.tolist())
        ranked.sort(key=lambda pair: (-pair[1], ids[pair[0]]))
    return ranked[:limit]
