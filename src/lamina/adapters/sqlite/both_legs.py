"""Both searches of a recall as one job, over one state of the file."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.adapters._shared.where_sql import is_plain
from lamina.adapters.sqlite.exact_words import admission, suits, words_of
from lamina.adapters.sqlite.nearest import cosines_of, nearest
from lamina.adapters.sqlite.partitions import Reach, expected_dimensions, resolve
from lamina.adapters.sqlite.reading import keys_left_out, meta_value, rows_by_key
from lamina.adapters.sqlite.rows import ID, StoredEntry
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.domain.lexical import Term
from lamina.domain.scope import Scope
from lamina.errors import EmbeddingDimensionError
from lamina.ports.memory_adapter import BothLegs, SearchOptions
from lamina.ports.memory_requests import PoolHit

__all__ = ["are_comparable", "search_both"]


def search_both(
    collection: Collection, query: bytes | None, terms: Sequence[Term], options: SearchOptions, *, meta_key: str
) -> BothLegs | None:
    """As `MemoryAdapter.search_both`, with a packed vector; None where the words are better looked for by bm25."""
    whole = resolve(collection, options.scope)
    if terms and not suits(whole, options.filter):
        return None
    reach = whole if options.filter.layers is None else resolve(collection, options.scope, options.filter.layers)
    has_vectors = query is not None and are_comparable(collection, query, options.scope, whole)
    if reach.is_empty:
        return BothLegs([], [], {}, {}, statistics=None, meta=meta_value(collection, options.scope, meta_key))
    gone = keys_left_out(collection, reach, options.filter) if is_plain(options.filter) else None
    near: dict[int, float] = {}
    if query is not None and has_vectors:
        near = dict(nearest(collection, query, reach, options, gone=gone))
    words, held = None, {}
    if terms:
        words = words_of(collection, terms, whole, options.filter, gone=gone if reach is whole else None)
        held = words.best(options.limit, admission(collection, reach, options.filter, gone=gone))
    rows = rows_by_key(collection, dict.fromkeys([*near, *held]))
    best = sorted(held.items(), key=lambda pair: (-pair[1], rows[pair[0]][ID]))[: options.limit]
    held = dict(best)

    keys = [*near, *(key for key in held if key not in near)]
    vectors = read_vectors(collection, keys) if options.include_embeddings else {}
    entries = {key: StoredEntry(rows[key], vectors.get(key)) for key in keys}
    others = [] if query is None else [key for key in keys if key not in near]
    cosines = near if not others or query is None else near | cosines_of(collection, query, others)
    similarities = {} if words is None else held | words.similarities(key for key in near if key not in held)
    return BothLegs(
        by_vector=[PoolHit(entries[key], value) for key, value in near.items()],
        by_text=[PoolHit(entries[key], value) for key, value in held.items()],
        cosines={entries[key].id: value for key, value in cosines.items()},
        similarities={entries[key].id: value for key, value in similarities.items()},
        statistics=None if words is None else words.statistics,
        meta=meta_value(collection, options.scope, meta_key),
    )


def are_comparable(collection: Collection, query: bytes, scope: Scope, reach: Reach) -> bool:
    """Whether the tenant, some of whose partitions are in reach, has vectors at all.

    Raises:
        EmbeddingDimensionError: they have another length.
    """
    known = (each.dimensions for each in reach.partitions or () if each.vectors)
    expected = next(known, None) or expected_dimensions(collection, scope.tenant)
    if expected is not None and expected != len(query) // 4:
        raise EmbeddingDimensionError(expected, len(query) // 4)
    return expected is not None
