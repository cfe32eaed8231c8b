"""Memories of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from lamina.client.reading import memory_of, quarantine_of, recalled
from lamina.client.resource import Resource, if_match, sendable
from lamina.client.transport import Request
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Trust, Unset
from lamina.domain.recall import Cutoff, RecallResult, Results, SearchMode
from lamina.domain.text import check_name
from lamina.errors import InvalidInput, MemoryNotFound
from lamina.memory.quarantining import QuarantineReceipt

__all__ = ["Memories"]

_ROOT = ("v1", "memories")


class Selection(TypedDict, total=False):
    """Which memories: all conditions must hold."""

    layers: Sequence[Layer | str] | None
    owner: str | None
    namespace: str | None
    tags: Sequence[str]
    tags_any: Sequence[str]
    where: Mapping[str, Any] | None


class Memories(Resource):
    """The verbs of `lamina.MemoryEngine`, which says what they mean."""

    async def store(
        self,
        content: str | Mapping[str, Any],
        *,
        layer: Layer | str | None = None,
        owner: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        relevance: float | None = None,
        confidence: float | None = None,
        ttl: float | timedelta | Unset | None = UNSET,
        id: str | None = None,
        occurred_at: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        source: str | None = None,
        trust: Trust | str | None = None,
        derived_from: Sequence[str] = (),
        supersedes: Sequence[str] = (),
        supersede_reason: str | None = None,
    ) -> str | None:
        """Remember a text and return its id; None if a hook of the server vetoed it.

        Raises:
            InvalidInput: a field has a value that cannot be stored; nothing was written.
            Conflict: the given id names a memory that says something else, or a memory to supersede is
                superseded by another one already.
        """
        fields = {
            "layer": layer,
            "namespace": namespace,
            "tags": list(tags) or None,
            "metadata": metadata,
            "relevance": relevance,
            "confidence": confidence,
            "id": id,
            "occurred_at": occurred_at,
            "valid_until": valid_until,
            "source": source,
            "trust": trust,
            "derived_from": list(derived_from) or None,
            "supersedes": list(supersedes) or None,
            "supersede_reason": supersede_reason,
        }
        said = {"content": content} if isinstance(content, str) else content
        body = self._new({**said, **sendable(fields), **_ttl(ttl)}, owner)
        return await self._ask(Request(method="POST", path=_ROOT, body=body), lambda answer: answer["id"])

    async def store_many(self, items: Iterable[str | Mapping[str, Any]]) -> list[str | None]:
        """Remember many texts, all or none; ids in order, None for vetoed ones. At most 1,000 at a time."""
        bodies = [self._new({"content": each} if isinstance(each, str) else each, None) for each in items]
        if not bodies:
            return []
        asked = Request(method="POST", path=(*_ROOT, "batch"), body={"memories": bodies})
        return await self._ask(asked, lambda answer: list(answer["ids"]))

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        mode: SearchMode | str | None = None,
        min_score: float | None = None,
        rerank: str | None = None,
        min_match: Cutoff | None = None,
        touch: bool = True,
        explain: bool = False,
        include_superseded: bool = False,
        **filters: Unpack[Selection],
    ) -> Results[RecallResult]:
        """The memories that answer the query best, best first; `rerank` is `cross-encoder` or `none`.

        What is superseded or no longer valid comes only if `include_superseded` asks for it.
        """
        body = {
            "query": query,
            "limit": limit,
            "offset": offset,
            "mode": mode,
            "min_score": min_score,
            "rerank": rerank,
            "min_match": min_match,
            "touch": touch,
            "explain": explain,
            "include_superseded": include_superseded,
            **self._selection(filters),
        }
        asked = Request(method="POST", path=(*_ROOT, "recall"), body=sendable(body), reads=True)
        return await self._ask(asked, recalled)

    async def get(self, id: str, *, owner: str | None = None) -> MemoryEntry | None:
        """The memory, or None."""
        try:
            return await self._ask(self._one("GET", id, owner), memory_of)
        except MemoryNotFound:
            return None

    async def history(self, id: str, *, owner: str | None = None) -> list[MemoryEntry]:
        """Its earlier versions, the oldest first; empty if there is no such memory."""
        pages = self._pages((*_ROOT, check_name("id", id), "history"), {"owner": self._for(owner)}, memory_of)
        try:
            return [each async for each in pages]
        except MemoryNotFound:
            return []

    async def scan(
        self,
        *,
        layers: Sequence[Layer | str] | None = None,
        owner: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
    ) -> AsyncIterator[MemoryEntry]:
        """All memories that meet the conditions, in the order of remembering, fetched page by page."""
        query = {"layer": layers, "owner": self._for(owner), "namespace": namespace, "tag": list(tags)}
        async for entry in self._pages(_ROOT, query, memory_of):
            yield entry

    async def update(
        self,
        id: str,
        *,
        owner: str | None = None,
        expected_revision: int | None = None,
        ttl: float | timedelta | Unset | None = UNSET,
        **changes: Any,
    ) -> MemoryEntry:
        """Change fields of the memory, and return it.

        Raises:
            MemoryNotFound: there is none.
            Conflict: it has another revision than the expected one.
        """
        body = {**{name: _plain(value) for name, value in changes.items()}, **_ttl(ttl)}
        asked = self._one("PATCH", id, owner, body=body, if_match=if_match(expected_revision))
        return await self._ask(asked, memory_of)

    async def supersede(
        self, old_id: str, *, by: str, reason: str | None = None, owner: str | None = None
    ) -> MemoryEntry:
        """Say that the memory `by` holds in place of the old one; the old one, as it is now.

        Raises:
            MemoryNotFound: there is no old memory of this id.
            InvalidInput: `by` names none of the same owner, or is superseded by the old one.
            Conflict: the old one is superseded by a third.
        """
        path = (*_ROOT, check_name("id", old_id), "supersede")
        body = sendable({"by": by, "reason": reason})
        asked = Request(method="POST", path=path, query={"owner": self._for(owner)}, body=body)
        return await self._ask(asked, memory_of)

    async def forget(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> bool:
        """Forget the memory; False if there is none.

        Raises:
            Conflict: it has another revision than the expected one.
        """
        try:
            await self._transport.ask(self._one("DELETE", id, owner, if_match=if_match(expected_revision)))
        except MemoryNotFound:
            return False
        return True

    async def forget_where(
        self, *, older_than: datetime | str | None = None, dry_run: bool = False, **filters: Unpack[Selection]
    ) -> int:
        """Forget every memory that meets all conditions; how many there were.

        Raises:
            InvalidInput: the call has no condition. That the client is an owner's is none: name the owner to mean it.
        """
        if older_than is None and not any(filters.values()):
            raise InvalidInput("filter", "has no condition", "Say which, or owner=… for all of that owner's.")
        body = sendable({"older_than": older_than, "dry_run": dry_run, **self._selection(filters)})
        asked = Request(method="POST", path=(*_ROOT, "forget"), body=body, reads=dry_run)
        return await self._ask(asked, lambda answer: int(answer["count"]))

    async def quarantine(
        self, *, source: str | None = None, prefix: str | None = None, owner: str | None = None
    ) -> QuarantineReceipt:
        """Take all from a source out of recall, with what was made from it; `release` of the receipt's `id` undoes it.

        Raises:
            InvalidInput: not exactly one of both is given, or the prefix ends with none of `:`, `/` and `#`.
        """
        body = sendable({"source": source, "prefix": prefix, "owner": self._for(owner)})
        return await self._ask(Request(method="POST", path=(*_ROOT, "quarantine"), body=body), quarantine_of)

    async def quarantined(self, *, owner: str | None = None) -> list[QuarantineReceipt]:
        """What is in quarantine, by the act that put it there, the first first."""
        asked = Request(method="GET", path=(*_ROOT, "quarantine"), query={"owner": self._for(owner)})
        return await self._ask(asked, lambda answer: [quarantine_of(each) for each in answer["data"]])

    async def release(self, id: str, *, owner: str | None = None) -> list[str]:
        """Undo a quarantine; the ids of memories and documents that are found again.

        Raises:
            MemoryNotFound: there is none of this id.
        """
        body = sendable({"id": check_name("id", id), "owner": self._for(owner)})
        asked = Request(method="POST", path=(*_ROOT, "release"), body=body)
        return await self._ask(asked, lambda answer: list(answer["ids"]))

    async def forget_source(
        self, *, source: str | None = None, prefix: str | None = None, owner: str | None = None, dry_run: bool = False
    ) -> int:
        """Delete what `quarantine` would take out, and return how many it is; `dry_run` only counts."""
        body = sendable({"source": source, "prefix": prefix, "owner": self._for(owner), "dry_run": dry_run})
        asked = Request(method="POST", path=(*_ROOT, "forget-source"), body=body, reads=dry_run)
        return await self._ask(asked, lambda answer: int(answer["count"]))

    def _one(self, method: str, id: str, owner: str | None, **more: Any) -> Request:
        return Request(method=method, path=(*_ROOT, check_name("id", id)), query={"owner": self._for(owner)}, **more)

    def _new(self, fields: Mapping[str, Any], owner: str | None) -> dict[str, Any]:
        plain = {name: _plain(value) for name, value in fields.items() if name != "ttl"}
        whose = self._for(plain.get("owner") if owner is None else owner)
        own = {} if whose is None else {"owner": whose}
        return {**plain, **_ttl(fields.get("ttl", UNSET)), **own}

    def _selection(self, filters: Selection) -> dict[str, Any]:
        given: dict[str, Any] = {**filters, "owner": self._for(filters.get("owner"))}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _ttl(ttl: Any) -> dict[str, Any]:
    if isinstance(ttl, Unset):
        return {}
    return {"ttl": ttl.total_seconds() if isinstance(ttl, timedelta) else ttl}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
