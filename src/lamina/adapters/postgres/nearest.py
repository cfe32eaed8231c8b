"""Vector search: the closest by direction from the server, then exact cosines of those.

Few candidates are all compared, and so is whatever the index cannot answer. Many are looked for in the HNSW index,
which goes on until as many as asked for have passed scope and filter; where it gives up before, all are compared.
"""

from __future__ import annotations

from typing import Final

from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters.postgres.arrays import reals_of
from lamina.adapters.postgres.conditions import admitted
from lamina.adapters.postgres.pgvector import LONGEST_INDEXED, LONGEST_VECTOR, Pgvector
from lamina.adapters.postgres.reading import entries_by_seq
from lamina.adapters.postgres.tables import Collection
from lamina.domain.memory import Vector
from lamina.errors import EmbeddingDimensionError
from lamina.ports.memory_adapter import SearchHit, SearchOptions

__all__ = ["nearest"]

ALL_UP_TO: Final = 10_000
"""Up to so many candidates are all compared."""

WIDTH: Final = 1_000
"""The greatest pool that pgvector's index keeps while it searches."""

LEAST_WIDTH: Final = 400
"""The pool of a small search: with it, and with an index built as ours, ten of ten are found in hard cases."""

_SPARE: Final = 32
_SCANNED: Final = 200_000
"""How many entries an index scan may look at before it gives up."""

_ROWS: Final = "{vectors} AS v JOIN {memories} AS m ON m.tenant = v.tenant AND m.seq = v.seq"


def nearest(collection: Collection, embedding: Vector, options: SearchOptions, pgvector: Pgvector) -> list[SearchHit]:
    """As `MemoryAdapter.search_by_vector`."""
    expected = _expected_dimensions(collection)
    if expected is None:
        return []
    if expected != len(embedding):
        raise EmbeddingDimensionError(expected, len(embedding))
    seqs = _pool(collection, embedding, options, pgvector)
    pool = entries_by_seq(collection, seqs, embeddings=True)
    return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)


def _expected_dimensions(collection: Collection) -> int | None:
    query = (
        "SELECT t.dimensions FROM {tenants} AS t WHERE t.name = %s"
        " AND EXISTS (SELECT FROM {vectors} AS v WHERE v.tenant = t.key)"
    )
    row = collection.execute(query, (collection.tenant,)).fetchone()
    return None if row is None else row[0]


def _pool(collection: Collection, embedding: Vector, options: SearchOptions, pgvector: Pgvector) -> list[int]:
    towards = direction(embedding)
    if towards is None or len(embedding) > LONGEST_VECTOR:
        return _everything(collection, options, is_zero=towards is None)
    size = 4 * options.limit + _SPARE
    if pgvector.scans_on and len(embedding) <= LONGEST_INDEXED and size <= WIDTH and _are_many(collection, options):
        found = _by_index(collection, towards, options, pgvector)
        if len(found) >= size:
            return found
    return _by_comparing(collection, towards, options, pgvector)


def _are_many(collection: Collection, options: SearchOptions) -> bool:
    condition = admitted(options.scope, options.filter)
    query = "SELECT count(*) FROM (SELECT FROM {rows} WHERE {condition} LIMIT %s) AS found"
    parameters = (*condition.parameters, ALL_UP_TO + 1)
    (number,) = collection.execute(query, parameters, rows=_ROWS, condition=condition.text).fetchone() or (0,)
    return bool(number > ALL_UP_TO)


def _by_index(collection: Collection, towards: Vector, options: SearchOptions, pgvector: Pgvector) -> list[int]:
    size = 4 * options.limit + _SPARE
    settings = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(max(LEAST_WIDTH, size)),
        "hnsw.max_scan_tuples": str(_SCANNED),
        "hnsw.scan_mem_multiplier": "8",
        "enable_sort": "off",  # which would compare all of them
    }
    query = "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)"
    collection.execute(query, (list(settings), list(settings.values())))
    condition = admitted(options.scope, options.filter)
    query = (
        "SELECT v.seq FROM {rows} WHERE v.dimensions = {length} AND {condition}"
        " ORDER BY v.direction::{kind} {away} %s::real[]::{vector}::{kind} LIMIT %s"
    )
    parameters = (*condition.parameters, reals_of(towards), size)
    rows = collection.execute(query, parameters, rows=_ROWS, condition=condition.text, **pgvector.indexed(len(towards)))
    return [seq for (seq,) in rows]


def _by_comparing(collection: Collection, towards: Vector, options: SearchOptions, pgvector: Pgvector) -> list[int]:
    condition = admitted(options.scope, options.filter)
    query = (
        "WITH found AS MATERIALIZED (SELECT v.seq, m.id, v.direction {away} %s::real[]::{vector} AS away"
        " FROM {rows} WHERE {condition}) SELECT seq FROM found ORDER BY away, id LIMIT %s"
    )
    parameters = (reals_of(towards), *condition.parameters, options.limit + _SPARE)
    rows = collection.execute(query, parameters, rows=_ROWS, condition=condition.text, **pgvector.parts)
    return [seq for (seq,) in rows]


def _everything(collection: Collection, options: SearchOptions, *, is_zero: bool) -> list[int]:
    """All candidates; or as many as are asked for, by id, where all are equally far away."""
    condition = admitted(options.scope, options.filter)
    query = "SELECT v.seq FROM {rows} WHERE {condition} ORDER BY m.id LIMIT %s"
    parameters = (*condition.parameters, options.limit if is_zero else None)
    return [seq for (seq,) in collection.execute(query, parameters, rows=_ROWS, condition=condition.text)]
