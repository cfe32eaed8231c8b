"""The searchable rows of pack memories: a projection of what the store says, never the truth itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.pack import Pack, PackMemory, PackStatus
from lamina.domain.pack_decay import Tier
from lamina.domain.recall import Results
from lamina.domain.scope import Scope
from lamina.memory.reading import pages
from lamina.memory.recall import RecallRequest
from lamina.memory.side_collection import SideCollection
from lamina.packs.pack_rows import MARKER, REDUCED, SLOTS, PackRow, digest_of, entry_of, read_row, row_id
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import FOUND_TIERS, PackQuery, PackStore

__all__ = ["FoundRow", "PackIndex"]

BATCH: Final = 256
"""Rows that are written or deleted at a time."""

ROUNDS: Final = 20
"""How often a row is written again because its memory changed while it was being written."""

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row that a search found, its similarity, and how far it matches (see `ScoreBreakdown`)."""

    row: PackRow
    similarity: float
    match: float


class PackIndex:
    """Writes, finds and deletes the rows of one tenant. A row is in the namespace of its pack.

    What each row holds is what the tier has left of a memory; its vector is that of the original. Memories
    that are deleted or archived have no row.
    """

    def __init__(
        self,
        adapter: MemoryAdapter,
        store: PackStore,
        *,
        tenant: str,
        embedder: Embedder | None,
        clock: Clock,
        new_id: IdFactory,
    ) -> None:
        self._rows = SideCollection(
            adapter, tenant=tenant, embedder=embedder, clock=clock, new_id=new_id, texts_of=self._originals
        )
        self.adapter = adapter
        self.space = self._rows.space
        self._store = store
        self._tenant = tenant
        self._clock = clock
        self._is_loaded = False

    async def load(self) -> None:
        """Open the adapter and read which model made the vectors, once: who only looks for packs needs neither."""
        if not self._is_loaded:
            await self.adapter.initialize()
            await self.space.load()
            self._is_loaded = True

    async def close(self) -> None:
        """Let go of the adapter; `load` opens it again."""
        self._is_loaded = False
        await self.adapter.close()

    async def write(self, memories: Sequence[PackMemory], texts: Mapping[str, str] = _NO_TEXTS) -> None:
        """Write a row for each memory, and delete that of its former revision.

        `texts` is what the tier has left, by id; a full memory and an existence marker need none. A memory whose
        `content` is '' counts as unchanged in its original. The vector of an unchanged original is kept; others
        are made of the original, and where the embedder fails the row is kept without one.

        Raises:
            KeyError: a memory at `summary` or `key_facts` has no text.
            EmbeddingDimensionError: the embedder gives vectors of another length than before.
        """
        await self.load()
        for start in range(0, len(memories), BATCH):
            await self._write(memories[start : start + BATCH], texts)

    async def project(self, memories: Sequence[PackMemory], texts: Mapping[str, str] = _NO_TEXTS) -> list[str]:
        """Make the rows what the memories are, and note in the store that they are.

        If one changed meanwhile, its row is made what it is now; so of all who write it at once, the last
        leaves the newest. A memory at `summary` or `key_facts` keeps the text of its row where none is given. Where
        there is no row of that tier it stays `unprojected`, for the next sweep; those ids are returned.
        """
        waiting: list[str] = []
        left = list(memories)
        for _ in range(ROUNDS):
            if not left:
                break
            ready, lacking, known = await self._with_texts([each for each in left if _has_row(each)], texts)
            waiting += lacking
            await self.remove([each.id for each in left if not _has_row(each)])
            await self.write(ready, known)
            done = [each for each in left if each.id not in lacking]
            left = await self._settle(done)
            texts = _NO_TEXTS  # those that were given may be of another tier than a memory is in by now
        return waiting

    async def mend(self, *, limit: int = BATCH) -> None:
        """Project what a failure left behind; at most so many, and none that needs a reducer."""
        left = await self._store.unprojected(self._tenant, limit=limit)
        if left:
            await self.project(left)

    async def search(self, pack_id: str, request: RecallRequest) -> Results[FoundRow]:
        """The pack's best rows with their similarities."""
        await self.load()
        results = await self._rows.search(request)
        rows = [
            FoundRow(self._row(result.entry), result.score, result.score_breakdown.match or 0.0)
            for result in results
            if result.entry.namespace == pack_id
        ]
        return Results(rows, degraded=results.degraded)

    def scope_of(self, pack_id: str) -> Scope:
        """The rows of a pack."""
        return Scope(self._tenant, namespace=pack_id)

    async def rows(self, ids: Iterable[str]) -> dict[str, PackRow]:
        """The newest row of each memory that has one, with its vector, by the memory's id."""
        return _newest(await self._all_rows(ids))

    async def remove(self, ids: Iterable[str]) -> None:
        """Delete the rows of these memories, with all that the adapter remembers of them."""
        places = _places(ids)
        if places:
            await self.load()
        await self._delete(places)

    async def remove_pack(self, pack_id: str) -> None:
        """Delete all rows of a pack."""
        await self.load()
        everything = MemoryFilter(now=self._clock(), expiry=Expiry.ANY)
        scope = self.scope_of(pack_id)
        async for page in pages(self.adapter, scope, everything):
            await self.adapter.delete_many(scope, [entry.id for entry in page])

    async def purge_orphans(self) -> int:
        """Delete the rows of memories that are gone, or whose pack is; how many there were. Reads everything."""
        if not await self._store.count_packs(_any_pack(self._tenant)):
            return 0  # and no collection is made for packs that there are not
        await self.load()
        deleted = 0
        everything = MemoryFilter(now=self._clock(), expiry=Expiry.ANY)
        async for page in pages(self.adapter, self._rows.scope, everything):
            places = {entry.id: self._row(entry).id for entry in page}
            ids = sorted(set(places.values()))
            known = await self._kept(ids)
            orphans = [place for place, id in places.items() if id not in known]
            deleted += sum(await self.adapter.delete_many(self._rows.scope, orphans))
            lost = sorted({places[place] for place in orphans})
            await self.project(await self._store.get_memories(self._tenant, lost))  # added again meanwhile
        return deleted

    async def _write(self, memories: Sequence[PackMemory], texts: Mapping[str, str]) -> None:
        packs = await self._open_packs(memories)
        found = await self._all_rows(each.id for each in memories if each.revision > 1)
        former, taken = _newest(found), {row.entry.id for row in found}
        originals = await self._needed_originals(memories, former)
        drafts: list[tuple[MemoryEntry, str]] = []
        for each in memories:
            row, original = former.get(each.id), originals.get(each.id, "")
            digest = row.digest if row is not None and not original else digest_of(original)
            text = _text_of(each, original, texts)
            if not text or each.pack_id not in packs or _is_written(row, each, text, digest):  # gone, or done
                continue
            entry = entry_of(each, packs[each.pack_id], original or text, digest)
            if row is not None and row.digest == digest and not self.space.needs_reembed:
                entry.embedding = row.entry.embedding
            drafts.append((entry, text))
        await self.space.embed_new([entry for entry, _ in drafts if entry.embedding is None])
        for entry, text in drafts:
            entry.content = text
        # A failure may have skipped a revision: a row that is replaced would leave its text in the history.
        await self._delete([entry.id for entry, _ in drafts if entry.id in taken])
        await self._rows.write([entry for entry, _ in drafts])
        await self._delete([row_id(each.id, each.revision - 1) for each in memories if each.revision > 1])

    async def _all_rows(self, ids: Iterable[str]) -> list[PackRow]:
        """All rows of these memories: a failure may have left two of one."""
        places = _places(ids)
        if places:
            await self.load()
        found = await asyncio.gather(*(self.adapter.get(self._rows.scope, place) for place in places))
        return [self._row(entry) for entry in found if entry is not None]

    async def _delete(self, places: Sequence[str]) -> None:
        for start in range(0, len(places), BATCH):
            await self.adapter.delete_many(self._rows.scope, places[start : start + BATCH])

    async def _kept(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are memories of packs that are not deleted."""
        found = await self._fresh(ids)
        packs = await self._open_packs(found)
        return {each.id for each in found if each.pack_id in packs}

    async def _open_packs(self, memories: Sequence[PackMemory]) -> dict[str, Pack]:
        found = await self._store.get_packs(self._tenant, sorted({each.pack_id for each in memories}))
        return {pack.id: pack for pack in found if pack.status is not PackStatus.DELETED}

    async def _needed_originals(self, memories: Sequence[PackMemory], former: Mapping[str, PackRow]) -> dict[str, str]:
        """The originals that were given, and those that a row cannot be written without."""
        given = {each.id: each.content for each in memories if each.content}
        missing = [
            each.id
            for each in memories
            if each.id not in given
            and (each.tier is Tier.FULL or each.id not in former or former[each.id].entry.embedding is None)
        ]
        return {**given, **(await self._contents(missing))}

    async def _contents(self, ids: Sequence[str]) -> dict[str, str]:
        found = await self._store.get_memories(self._tenant, ids) if ids else []
        return {each.id: each.content for each in found}

    async def _originals(self, entries: Sequence[MemoryEntry]) -> list[str]:
        """What the vectors of rows are made of; the row's own text where the memory is gone."""
        rows = [self._row(entry) for entry in entries]
        contents = await self._contents([row.id for row in rows])
        return [contents.get(row.id) or row.entry.content for row in rows]

    async def _with_texts(
        self, memories: Sequence[PackMemory], given: Mapping[str, str]
    ) -> tuple[list[PackMemory], list[str], Mapping[str, str]]:
        """Those that can be written, the ids of the others, and the texts: those given and those that rows hold."""
        lacking = [each for each in memories if each.tier in REDUCED and each.id not in given]
        if not lacking:
            return list(memories), [], given
        rows = await self.rows(each.id for each in lacking)
        kept = {
            each.id: rows[each.id].entry.content
            for each in lacking
            if each.id in rows
            and rows[each.id].tier is each.tier
            and (not each.content or rows[each.id].digest == digest_of(each.content))
        }
        texts = {**given, **kept}
        ready = [each for each in memories if each.tier not in REDUCED or each.id in texts]
        return ready, [each.id for each in lacking if each.id not in kept], texts

    async def _settle(self, written: Sequence[PackMemory]) -> list[PackMemory]:
        """Note what was projected; the memories that changed meanwhile, as they are now."""
        now = {each.id: each for each in await self._fresh([each.id for each in written])}
        purged = [each.id for each in written if each.id not in now]
        if purged:
            await self.remove(purged)
        same = {each.id: each.revision for each in written if each.id in now and now[each.id].revision == each.revision}
        if same:
            await self._store.mark_projected(self._tenant, same)
        changed = [id for id in now if id not in same]
        return await self._store.get_memories(self._tenant, changed) if changed else []

    async def _fresh(self, ids: Sequence[str]) -> list[PackMemory]:
        return await self._store.get_memories(self._tenant, ids, with_content=False) if ids else []

    def _row(self, entry: MemoryEntry) -> PackRow:
        return read_row(entry, self.adapter.name)


def _places(ids: Iterable[str]) -> list[str]:
    return [f"{slot}:{id}" for id in dict.fromkeys(ids) for slot in SLOTS]


def _any_pack(tenant: str) -> PackQuery:
    return PackQuery(tenant=tenant, any_owner=True, statuses=frozenset(PackStatus))


def _has_row(memory: PackMemory) -> bool:
    return not memory.is_deleted and memory.tier in FOUND_TIERS


def _text_of(memory: PackMemory, original: str, texts: Mapping[str, str]) -> str:
    if memory.tier is Tier.FULL:
        return original
    return texts.get(memory.id, MARKER) if memory.tier is Tier.EXISTENCE_MARKER else texts[memory.id]


def _is_written(row: PackRow | None, memory: PackMemory, text: str, digest: str) -> bool:
    """Whether another writer has written this very row, with its vector, already."""
    return (
        row is not None
        and (row.revision, row.digest, row.entry.content) == (memory.revision, digest, text)
        and row.entry.embedding is not None
    )


def _newest(rows: Iterable[PackRow]) -> dict[str, PackRow]:
    newest: dict[str, PackRow] = {}
    for row in rows:
        if row.id not in newest or newest[row.id].revision < row.revision:
            newest[row.id] = row
    return newest
