"""Phase one: which packs a question is about, told from their summaries alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.domain.closeness import cosines
from lamina.domain.lexical import similarities
from lamina.domain.pack import Pack, PackMatch, PackType
from lamina.domain.recall import Degraded, Leg, Reason, Results
from lamina.errors import ProviderError
from lamina.memory.fusion import fuse, text_weight
from lamina.packs.heads import pack_text, summary_of
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.ports.pack_store import PackQuery, PackStore

__all__ = ["DiscoverRequest", "Discoverer"]


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
        closeness = await self._closeness(request.query, packs, degraded)
        in_common = similarities(request.query, list(map(pack_text, packs)))
        weight = text_weight(request.query)
        matches = [
            PackMatch(summary_of(pack), fuse(near, words, weight))
            for pack, near, words in zip(packs, closeness, in_common, strict=True)
        ]
        matches.sort(key=lambda match: (-match.score, match.pack.name, match.pack.id))
        found = [match for match in matches if match.score > 0 and match.score >= request.min_score]
        return Results(found[: request.limit], degraded=tuple(degraded))

    async def _candidates(self, request: DiscoverRequest) -> list[Pack]:
        query = PackQuery(
            tenant=self._tenant,
            owner=request.owner,
            type=request.type,
            tag=request.tags[0] if request.tags else None,
        )
        packs = await self._store.list_packs(query, include_embeddings=self._embedder is not None)
        return [pack for pack in packs if set(request.tags) <= set(pack.tags)]

    async def _closeness(self, query: str, packs: Sequence[Pack], degraded: list[Degraded]) -> list[float | None]:
        """The cosine of each pack's vector with the query's; None where they cannot be compared."""
        nothing: list[float | None] = [None] * len(packs)
        if self._embedder is None:
            degraded.append(Degraded(Leg.VECTOR, Reason.NO_EMBEDDER))
            return nothing
        if not packs:
            return nothing
        try:
            vector = await self._embedder.embed_query(query)
        except ProviderError as error:
            degraded.append(Degraded(Leg.VECTOR, Reason.EMBEDDER_FAILED, type(error).__name__))
            return nothing
        if not any(vector):
            degraded.append(Degraded(Leg.VECTOR, Reason.NO_VECTORS, "the embedder knows no word of the query"))
            return nothing
        mark = str(Fingerprint(self._embedder.provider, self._embedder.model, len(vector)))
        vectors = {pack.id: pack.embedding for pack in packs if pack.fingerprint == mark and pack.embedding is not None}
        if len(vectors) < len(packs):
            degraded.append(Degraded(Leg.VECTOR, Reason.SOME_WITHOUT_VECTOR))
        near = dict(zip(vectors, cosines(vector, list(vectors.values())), strict=True))
        return [near.get(pack.id) for pack in packs]
