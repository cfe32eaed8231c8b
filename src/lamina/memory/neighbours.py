"""The turns of a conversation around what was found: read from the store, and the one before taken together with each.

What answers a question may hold none of its words and be close to nothing in it: "A blue one." So the turns around the
best candidates become candidates too. And a turn is compared with the query once more together with the one before it,
as one text would be: by the sum of both vectors, which needs no model. The figures are in `docs/retrieval.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.memory.candidates import Candidate
from lamina.memory.fusion import closeness, fuse, text_share
from lamina.memory.reading import filters_natively
from lamina.memory.surroundings import NEIGHBOURS, borrowing, conversation_of
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import ListOptions, MemoryAdapter

__all__ = ["join_turns", "turns_near"]

BEST: Final = 10
"""So many of the candidates bring the turns around them."""

REACH: Final = max(step for step, _ in NEIGHBOURS)

JOINED: Final = 0.4
"""What the vector of the turn before counts for beside a short turn's own, which counts 1."""


async def turns_near(
    store: MemoryAdapter, candidates: Sequence[Candidate], *, scope: Scope, filter: MemoryFilter
) -> list[Candidate]:
    """The turns right around the best of these candidates, which are of this store, with their vectors, by their order.

    Only what scope and filter admit, and no candidate again.
    """
    if all(each.view.source is None for each in candidates):  # none is of a conversation
        return []
    best = sorted(candidates, key=lambda each: (-each.similarity, each.view.id))[:BEST]
    anchors = {each.view.seq: place for each in best if (place := conversation_of(each.view)) is not None}
    steps = [step for step in range(-REACH, REACH + 1) if step]
    known = {each.view.seq for each in candidates}
    wanted = {seq + step for seq in anchors for step in steps} - known
    found = await _read(store, list(_runs(wanted)), scope=scope, filter=filter)
    return [
        Candidate(entry)
        for entries in found
        for entry in entries
        if entry.seq not in known
        and (place := conversation_of(entry)) is not None
        and any(anchors.get(entry.seq + step) == place for step in steps)
    ]


def join_turns(
    candidates: Sequence[Candidate], embedder: Embedder | None, query: str, vector: Vector, *, overlap: float | None
) -> None:
    """Give each turn whose predecessor is among them the similarity that both have together."""
    import numpy as np  # as in `lamina.domain.closeness`: not before the first vector

    at = {(conversation_of(each.view), each.view.seq): each.view.embedding for each in candidates}
    turns, sums = [], []
    for each in candidates:
        place, own = conversation_of(each.view), each.view.embedding
        before = None if place is None else at.get((place, each.view.seq - 1))
        if own is not None and before is not None and len(own) == len(before) == len(vector):
            turns.append(each)
            sums.append((np.asarray(own) + JOINED * borrowing(each.view) * np.asarray(before)).tolist())
    share = text_share(query)
    for each, near in zip(turns, closeness(embedder, query, vector, sums, overlap=overlap), strict=True):
        each.similarity = fuse(near, each.text, share)


def _runs(places: Collection[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that lie so close together that one read is cheaper than two."""
    run: list[int] = []
    for place in sorted(place for place in places if place > 0):
        if run and place - run[-1] > 2 * REACH:
            yield run[0], run[-1]
            run = []
        run.append(place)
    if run:
        yield run[0], run[-1]


async def _read(
    store: MemoryAdapter, runs: Sequence[tuple[int, int]], *, scope: Scope, filter: MemoryFilter
) -> list[list[MemoryEntry]]:
    """The entries of each run of places, if there is one."""
    native = filters_natively(store, filter)
    asked = filter if native else replace(filter, where=None)
    pages = [
        ListOptions(scope=scope, filter=asked, after=first - 1, limit=last - first + 1, include_embeddings=True)
        for first, last in runs
    ]
    found = await store.list_each(pages) if pages else []
    return [
        [
            entry
            for entry in entries
            if entry.seq <= last and (native or filter.where is None or filter.where.matches(entry.metadata))
        ]
        for (_, last), entries in zip(runs, found, strict=True)
    ]
