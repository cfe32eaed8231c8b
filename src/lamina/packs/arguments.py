"""What callers ask for in packs becomes queries and requests: read and checked in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamina.domain.pack import MemoryType, PackStatus, PackType
from lamina.domain.pack_decay import Tier
from lamina.domain.recall import AUTO, Cutoff, SearchMode
from lamina.domain.text import check_name
from lamina.domain.validation import check_whole_number
from lamina.memory.fusion import least_match
from lamina.memory.inputs import read_mode, read_query, read_tags
from lamina.packs.discovering import DiscoverRequest
from lamina.packs.inputs import read_confidence, read_flag, read_kind, read_text
from lamina.packs.retrieving import RetrieveRequest
from lamina.ports.embedder import Embedder
from lamina.ports.pack_store import FOUND_TIERS, PackMemoryQuery, PackQuery
from lamina.settings.packs import PacksConfig

__all__ = ["Arguments"]


class Arguments:
    """Reads arguments for one tenant.

    Raises:
        InvalidInput: an argument has a value that cannot be taken.
        InvalidType: an argument has a type that cannot be taken.
    """

    def __init__(self, tenant: str, config: PacksConfig, embedder: Embedder | None) -> None:
        self._tenant = tenant
        self._config = config
        self._embedder = embedder

    def limit(self, value: object, field: str = "limit") -> int:
        """How many at most."""
        return check_whole_number(field, value, 1, self._config.max_limit)

    def packs(
        self, *, type: PackType | str | None, tag: str | None, status: PackStatus | str, owner: str | None
    ) -> PackQuery:
        """Which packs are listed."""
        return PackQuery(
            tenant=self._tenant,
            owner=None if owner is None else check_name("owner", owner),
            type=None if type is None else read_kind("type", type, PackType),
            tag=None if tag is None else read_text("tag", tag),
            statuses=frozenset({read_kind("status", status, PackStatus)}),
        )

    def memories(
        self,
        pack_ids: Sequence[str],
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        include_archived: bool = False,
    ) -> PackMemoryQuery:
        """Which memories of these packs."""
        return PackMemoryQuery(
            tenant=self._tenant,
            pack_ids=tuple(pack_ids),
            memory_type=None if memory_type is None else read_kind("memory_type", memory_type, MemoryType),
            name=None if name is None else check_name("name", name),
            tags=tuple(read_tags("tags", tags)),
            min_confidence=read_confidence(min_confidence, "min_confidence"),
            tiers=frozenset(Tier) if read_flag("include_archived", include_archived) else FOUND_TIERS,
            include_superseded=read_flag("include_superseded", include_superseded),
        )

    def retrieve(
        self,
        asked: PackMemoryQuery,
        *,
        query: str | None,
        limit: int | None,
        min_score: float | None = None,
        mode: SearchMode | str | None = None,
        touch: bool = True,
    ) -> RetrieveRequest:
        """A search among these memories."""
        text = None if query is None else read_query(query)
        searched = read_mode(mode, self._config.search_mode)
        said = self._config.min_similarity
        return RetrieveRequest(
            asked=asked,
            query=text,
            mode=searched,
            limit=min(self._config.limit, self._config.max_limit) if limit is None else self.limit(limit),
            min_score=0.0 if min_score is None else read_confidence(min_score, "min_score"),
            min_similarity=said if min_score is None and said is not None else 0.0,
            min_match=self._level(text, searched) if min_score is None and said is None else 0.0,
            touch=read_flag("touch", touch),
        )

    def discover(
        self,
        query: str,
        *,
        type: PackType | str | None,
        tags: Iterable[str],
        limit: int,
        min_score: Cutoff,
        owner: str | None,
    ) -> DiscoverRequest:
        """A search for packs."""
        text = read_query(query)
        return DiscoverRequest(
            query=text,
            owner=None if owner is None else check_name("owner", owner),
            type=None if type is None else read_kind("type", type, PackType),
            tags=tuple(read_tags("tags", tags)),
            limit=self.limit(limit),
            min_score=0.0 if min_score == AUTO else read_confidence(min_score, "min_score"),
            min_match=self._level(text, SearchMode.HYBRID) if min_score == AUTO else 0.0,
        )

    def _level(self, query: str | None, mode: SearchMode) -> float:
        """From where something has to do with the query."""
        if self._embedder is None or query is None:
            return 0.0
        return least_match(self._embedder, query, with_text=mode is not SearchMode.VECTOR)
