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
from lamina.adapters.postgres.reading import Rows, ask_for_found, entries_in
from lamina.adapters.postgres.tables import Collection
from lamina.domain.memory import MemoryEntry, Vector
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
    towards = direction(embedding)
    may_index = towards is not None and pgvector.scans_on and len(embedding) <= LONGEST_INDEXED
    may_index = may_index and _size(options) <= WIDTH
    with collection.together():
        asked = _ask_for_dimensions(collection)
        counted = _ask_whether_many(collection, options) if may_index else ()
    expected = next((length for (length,) in asked), None)
    if expected is None:
        return []
    if expected != len(embedding):
        raise EmbeddingDimensionError(expected, len(embedding))
    are_many = any(number > ALL_UP_TO for (number,) in counted)
    pool = _pool(collection, towards, options, pgvector, length=len(embedding), are_many=are_many)
    return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)


def _pool(
    collection: Collection,
    towards: Vector | None,
    options: SearchOptions,
    pgvector: Pgvector,
    *,
    length: int,
    are_many: bool,
) -> list[MemoryEntry]:
    """The entries among which the closest are."""
    if towards is None or length > LONGEST_VECTOR:
        return entries_in(collection, _everything(collection, options, is_zero=towards is None))
    if are_many:
        found = entries_in(collection, _by_index(collection, towards, options, pgvector))
        if len(found) >= _size(options):
            return found
    return entries_in(collection, _by_comparing(collection, towards, options, pgvector))


def _size(options: SearchOptions) -> int:
    """How many are looked for in the index."""
    return 4 * options.limit + _SPARE


def _ask_for_dimensions(collection: Collection) -> Rows:
    query = (
        "SELECT t.dimensions FROM {tenants} AS t WHERE t.name = %s"
        " AND EXISTS (SELECT FROM {vectors} AS v WHERE v.tenant = t.key)"
    )
    return collection.execute(query, (collection.tenant,))


def _ask_whether_many(collection: Collection, options: SearchOptions) -> Rows:
    condition = admitted(options.scope, options.filter)
    query = "SELECT count(*) FROM (SELECT FROM {rows} WHERE {condition} LIMIT %s) AS found"
    return collection.execute(query, (*condition.parameters, ALL_UP_TO + 1), rows=_ROWS, condition=condition.text)


def _by_index(collection: Collection, towards: Vector, options: SearchOptions, pgvector: Pgvector) -> Rows:
    size = _size(options)
    settings = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(max(LEAST_WIDTH, size)),
        "hnsw.max_scan_tuples": str(_SCANNED),
        "hnsw.scan_mem_multiplier": "8",
        "enable_sort": "off",  # which would compare all of them
    }
    setting = "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)"
    condition = admitted(options.scope, options.filter)
    found = (
        "SELECT v.seq FROM {rows} WHERE v.dimensions = {length} AND {condition}"
        " ORDER BY v.direction::{kind} {away} %s::real[]::{vector}::{kind} LIMIT %s"
    )
    parameters = (*condition.parameters, reals_of(towards), size)
    parts = {"rows": _ROWS, "condition": condition.text}
    own = pgvector.indexed(len(towards))
    with collection.together():
        collection.execute(setting, (list(settings), list(settings.values())))
        return ask_for_found(collection, found, parameters, embeddings=True, **parts, **own)


def _by_comparing(collection: Collection, towards: Vector, options: SearchOptions, pgvector: Pgvector) -> Rows:
    condition = admitted(options.scope, options.filter)
    found = (
        "WITH found AS MATERIALIZED (SELECT v.seq, m.id, v.direction {away} %s::real[]::{vector} AS away"
        " FROM {rows} WHERE {condition}) SELECT seq FROM found ORDER BY away, id LIMIT %s"
    )
    parameters = (reals_of(towards), *condition.parameters, options.limit + _SPARE)
    parts = {"rows": _ROWS, "condition": condition.text}
    return ask_for_found(collection, found, parameters, embeddings=True, **parts, **pgvector.parts)


def _everything(collection: Collection, options: SearchOptions, *, is_zero: bool) -> Rows:
    """All candidates; or as many as are asked for, by id, where all are equally far away."""
    condition = admitted(options.scope, options.filter)
    found = "SELECT v.seq FROM {rows} WHERE {condition} ORDER BY m.id LIMIT %s"
    parameters = (*condition.parameters, options.limit if is_zero else None)
    return ask_for_found(collection, found, parameters, embeddings=True, rows=_ROWS, condition=condition.text)
