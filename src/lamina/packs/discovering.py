"""Phase one: which packs a question is about, told from their summaries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lamina.domain.closeness import cosines
from lamina.domain.lexical import similarities
from lamina.domain.memory import Vector
from lamina.domain.pack import Pack, PackMatch, PackType
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
        for a pack without a vector of the embedder's model.
        """
        packs = await self._candidates(request)
        degraded: list[Degraded] = []
        vector = await self._vector(request.query, packs, degraded)
        vectors = self._comparable(packs, vector)
        if vector is not None and len(vectors) < len(packs):
            degraded.append(Degraded(Leg.VECTOR, Reason.SOME_WITHOUT_VECTOR))
        if len(packs) > _FEW:
            found = await _comparing.run(_best, request, packs, vector, vectors)
        else:
            found = _best(request, packs, vector, vectors)
        return Results(found, degraded=tuple(degraded))

    async def _candidates(self, request: DiscoverRequest) -> list[Pack]:
        query = PackQuery(
            tenant=self._tenant,
            owner=request.owner,
            type=request.type,
            tag=request.tags[0] if request.tags else None,
        )
        packs = await self._store.list_packs(query, include_embeddings=self._embedder is not None)
        return [pack for pack in packs if set(request.tags) <= set(pack.tags)]

    async def _vector(self, query: str, packs: Sequence[Pack], degraded: list[Degraded]) -> Vector | None:
        """The query's vector; None where there is none to compare."""
        if self._embedder is None:
            degraded.append(Degraded(Leg.VECTOR, Reason.NO_EMBEDDER))
            return None
        if not packs:
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

    def _comparable(self, packs: Sequence[Pack], vector: Vector | None) -> dict[str, Vector]:
        """The vectors of packs that the model of the query's has made, by the packs' ids."""
        if vector is None or self._embedder is None:
            return {}
        mark = str(Fingerprint(self._embedder.provider, self._embedder.model, len(vector)))
        return {pack.id: pack.embedding for pack in packs if pack.fingerprint == mark and pack.embedding is not None}


def _best(
    request: DiscoverRequest, packs: Sequence[Pack], vector: Vector | None, vectors: Mapping[str, Vector]
) -> list[PackMatch]:
    """The best of the packs by closeness, where both have a vector, and by words."""
    near: dict[str, float] = {}
    if vector is not None:
        near = dict(zip(vectors, cosines(vector, list(vectors.values())), strict=True))
    in_common = similarities(request.query, list(map(pack_text, packs)))
    weight = text_weight(request.query)
    matches = [
        PackMatch(summary_of(pack), fuse(near.get(pack.id), words, weight))
        for pack, words in zip(packs, in_common, strict=True)
    ]
    matches.sort(key=lambda match: (-match.score, match.pack.name, match.pack.id))
    found = [match for match in matches if match.score > 0 and match.score >= request.min_score]
    return found[: request.limit]
