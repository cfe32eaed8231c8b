"""Phase one: which packs a question is about, told from their summaries alone."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lamina.domain.closeness import cosines, cosines_of_parts
from lamina.domain.lexical import count_terms, held, index_terms, query_terms, term_weights
from lamina.domain.memory import Vector
from lamina.domain.pack import PackFace, PackMatch, PackStatus, PackType
from lamina.domain.recall import Degraded, Leg, Reason, Results
from lamina.errors import ProviderError
from lamina.memory.embedding import query_vector_of
from lamina.memory.fusion import fuse, text_share
from lamina.packs.heads import pack_text, summary_of
from lamina.ports.embedder import Embedder, Fingerprint, weighted_parts
from lamina.ports.pack_store import PackQuery, PackStore
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["DiscoverRequest", "Discoverer"]

_FEW: Final = 200
"""More packs than these are compared in a thread, so that nobody else waits for it."""
_PAGE: Final = 1_000
"""Packs that are held at a time."""

_comparing = WorkerThreads("lamina-discoveries", 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverRequest:
    """One search for packs, read and checked."""

    query: str
    owner: str | None
    type: PackType | None
    tags: tuple[str, ...]
    limit: int
    min_score: float
    min_match: float = 0.0
    """From where a pack matches, if it has a vector that is compared."""


class Discoverer:
    """Compares a question with every pack that may be seen; reads nothing of their memories."""

    def __init__(self, store: PackStore, *, tenant: str, embedder: Embedder | None) -> None:
        self._store = store
        self._tenant = tenant
        self._embedder = embedder

    async def discover(self, request: DiscoverRequest) -> Results[PackMatch]:
        """The best active packs, best first, ties by name; none that has nothing to do with the query at all.

        The score is made of the vectors' closeness and the words in common, as in a recall; of the words alone
        for a pack without a vector of the embedder's model. All packs are looked at, a page of them at a time.
        """
        degraded: list[Degraded] = []
        asked = self._asked(request)
        page = await self._store.pack_faces(asked, limit=_PAGE)
        vector = await self._vector(request.query, degraded) if page or self._embedder is None else None
        ranking = _Ranking(request, self._embedder, vector, self._mark(vector))
        while page:
            if len(page) > _FEW:
                await _comparing.run(ranking.add, page)
            else:
                ranking.add(page)
            page = await self._store.pack_faces(asked, limit=_PAGE, after=page[-1].id) if len(page) == _PAGE else []
        if vector is not None and ranking.is_without_vectors:
            degraded.append(Degraded(Leg.VECTOR, Reason.SOME_WITHOUT_VECTOR))
        best = await _comparing.run(ranking.best) if len(ranking) > _FEW else ranking.best()
        return Results(await self._shown(best), degraded=tuple(degraded))

    async def _shown(self, best: Sequence[tuple[str, float]]) -> list[PackMatch]:
        """The matches, as the packs are now; without those that are gone meanwhile."""
        found = await self._store.get_packs(self._tenant, [id for id, _ in best]) if best else []
        packs = {pack.id: summary_of(pack) for pack in found if pack.status is PackStatus.ACTIVE}
        return [PackMatch(packs[id], score) for id, score in best if id in packs]

    def _asked(self, request: DiscoverRequest) -> PackQuery:
        tag = request.tags[0] if request.tags else None
        return PackQuery(tenant=self._tenant, owner=request.owner, type=request.type, tag=tag)

    async def _vector(self, query: str, degraded: list[Degraded]) -> Vector | None:
        """The query's vector; None where there is none to compare."""
        if self._embedder is None:
            degraded.append(Degraded(Leg.VECTOR, Reason.NO_EMBEDDER))
            return None
        try:
            vector = await query_vector_of(self._embedder, query)
        except ProviderError as error:
            degraded.append(Degraded(Leg.VECTOR, Reason.EMBEDDER_FAILED, type(error).__name__))
            return None
        if not any(vector):
            degraded.append(Degraded(Leg.VECTOR, Reason.NO_VECTORS, "the embedder knows no word of the query"))
            return None
        return vector

    def _mark(self, vector: Vector | None) -> str | None:
        """Of the model whose vectors can be compared with this one."""
        if vector is None or self._embedder is None:
            return None
        return str(Fingerprint(self._embedder.provider, self._embedder.model, len(vector)))


def _sum_of_products(ones: Sequence[float], others: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(ones, others, strict=True))


class _Ranking:
    """The packs seen so far, of each no more than what decides its place.

    How much a word weighs, and a part of the vectors, is known only when all are seen.
    """

    def __init__(
        self, request: DiscoverRequest, embedder: Embedder | None, vector: Vector | None, mark: str | None
    ) -> None:
        self._request = request
        self._embedder = embedder
        self._vector = vector
        self._mark = mark
        self._terms = query_terms(request.query)
        self._frequencies = dict.fromkeys((form for term in self._terms for form in term.forms), 0)
        self._seen: list[tuple[str, str]] = []
        self._held: list[tuple[float, ...]] = []
        self._near: list[tuple[float, ...] | None] = []

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def is_without_vectors(self) -> bool:
        """Whether one of the packs has no vector that can be compared."""
        return None in self._near

    def add(self, page: Sequence[PackFace]) -> None:
        """Take note of those that have all the tags."""
        faces = [each for each in page if set(self._request.tags) <= set(each.tags)]
        near: dict[str, tuple[float, ...]] = {}
        if self._vector is not None:
            vectors = {
                each.id: each.embedding
                for each in faces
                if each.fingerprint == self._mark and each.embedding is not None
            }
            lengths = [length for length, _ in self._parts(None)]
            every = list(vectors.values())
            wholes, parts = cosines(self._vector, every), cosines_of_parts(self._vector, every, lengths)
            near = {id: (whole, *part) for id, whole, part in zip(vectors, wholes, parts, strict=True)}
        for each in faces:
            counted = count_terms(index_terms(pack_text(each)))
            for form in self._frequencies.keys() & counted.counts.keys():
                self._frequencies[form] += 1
            self._held.append(held(self._terms, counted))
            self._seen.append((each.name, each.id))
            self._near.append(near.get(each.id))

    def best(self) -> list[tuple[str, float]]:
        """The ids and scores of the best, best first."""
        weights = term_weights(self._terms, len(self), self._frequencies)
        total = sum(weights) or 1.0
        in_common = [_sum_of_products(weights, shares) / total for shares in self._held]
        parts = [share for _, share in self._parts(max(in_common, default=0.0))]
        share, least = text_share(self._request.query), self._request.min_match
        ranked = (
            (-fuse(None if near is None else _sum_of_products(parts, near[1:]), words, share), place)
            for near, words, place in zip(self._near, in_common, self._seen, strict=True)
            if near is None or fuse(near[0], words, share) >= least
        )
        found = ((score, place) for score, place in ranked if score < 0 and -score >= self._request.min_score)
        return [(id, -score) for score, (_, id) in heapq.nsmallest(self._request.limit, found)]

    def _parts(self, overlap: float | None) -> Sequence[tuple[int, float]]:
        """The parts of the vectors and their shares; one whole is one part."""
        if self._embedder is None or self._vector is None:
            return ()
        return weighted_parts(self._embedder, self._request.query, overlap) or ((len(self._vector), 1.0),)
