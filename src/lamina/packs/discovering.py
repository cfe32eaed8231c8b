"""Phase one: which packs a question is about, told from their summaries alone."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

from lamina.domain.closeness import cosines
from lamina.domain.lexical import index_terms, query_terms, similarity, term_weights
from lamina.domain.memory import Vector
from lamina.domain.pack import PackFace, PackMatch, PackStatus, PackType
from lamina.domain.recall import Degraded, Leg, Reason, Results
from lamina.errors import ProviderError
from lamina.memory.embedding import query_vector_of
from lamina.memory.fusion import fuse, text_weight
from lamina.packs.heads import pack_text, summary_of
from lamina.ports.embedder import Embedder, Fingerprint
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
        ranking = _Ranking(request, vector, self._mark(vector))
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


class _Ranking:
    """The packs seen so far, of each no more than what decides its place.

    How much a word weighs is known only when all are seen, so that which words of the query a pack has is kept, in
    sets that packs share: there are few different ones.
    """

    def __init__(self, request: DiscoverRequest, vector: Vector | None, mark: str | None) -> None:
        self._request = request
        self._vector = vector
        self._mark = mark
        self._terms = query_terms(request.query)
        self._forms = frozenset(form for term in self._terms for form in term.forms)
        self._seen: list[tuple[str, str]] = []
        self._words: list[frozenset[str]] = []
        self._near = array("d")
        self._alike: dict[frozenset[str], frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def is_without_vectors(self) -> bool:
        """Whether one of the packs has no vector that can be compared."""
        return any(map(isnan, self._near))

    def add(self, page: Sequence[PackFace]) -> None:
        """Take note of those that have all the tags."""
        faces = [each for each in page if set(self._request.tags) <= set(each.tags)]
        near: dict[str, float] = {}
        if self._vector is not None:
            vectors = {
                each.id: each.embedding
                for each in faces
                if each.fingerprint == self._mark and each.embedding is not None
            }
            near = dict(zip(vectors, cosines(self._vector, list(vectors.values())), strict=True))
        for each in faces:
            words = self._forms.intersection(index_terms(pack_text(each)))
            self._words.append(self._alike.setdefault(words, words))
            self._seen.append((each.name, each.id))
            self._near.append(near.get(each.id, nan))

    def best(self) -> list[tuple[str, float]]:
        """The ids and scores of the best, best first."""
        counts = Counter(self._words)
        frequencies = {form: sum(count for words, count in counts.items() if form in words) for form in self._forms}
        weights = term_weights(self._terms, len(self), frequencies)
        in_common = {words: similarity(self._terms, weights, words) for words in counts}
        weight = text_weight(self._request.query)
        ranked = (
            (-fuse(None if isnan(near) else near, in_common[words], weight), place)
            for near, words, place in zip(self._near, self._words, self._seen, strict=True)
        )
        found = ((score, place) for score, place in ranked if score < 0 and -score >= self._request.min_score)
        return [(id, -score) for score, (_, id) in heapq.nsmallest(self._request.limit, found)]
