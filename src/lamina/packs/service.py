"""Context Packs: knowledge in named containers, found in two phases, that fades when nobody needs it."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from lamina.domain.context import PackHit as ContextHit
from lamina.domain.memory import MemoryEntry
from lamina.domain.pack import MemoryType, PackHit, PackMatch, PackType
from lamina.domain.recall import AUTO, Cutoff, Results, SearchMode
from lamina.memory.embedding import Progress, ReembedReport
from lamina.memory.scrubbing import scrub_all
from lamina.memory.self_checks import ask_store
from lamina.packs.bridging import ImportReport, entry_of_memory, imported_id, input_of
from lamina.packs.comparing import Drift, find_drift
from lamina.packs.fading import DegradationReport, FadingStep
from lamina.packs.inputs import read_confidence, read_entries, read_flag
from lamina.packs.memories import PackMemories
from lamina.packs.pack_rows import trust_of

__all__ = ["ContextPacks"]

BATCH = 100
"""Entries that are imported, and memories that are exported, at a time."""


class ContextPacks(PackMemories):
    """The packs of one tenant and their memories.

    With an `owner`, a call sees that owner's own packs and the shared ones of the tenant, and a name means the
    owner's own pack first; without, the shared ones alone. What is another's is as absent as what there is not.
    A memory that is retrieved or listed comes back whole, however far it had faded, and counts as read; with
    `touch` off it is shown as its tier has left it, and nothing changes. All coroutines may run side by side,
    in several processes too.

    Args:
        store: The truth about packs and their memories, such as `SqlitePackStore(path)`.
        adapter: What search runs over: a collection of their own, such as `SqliteAdapter(path, table="lamina_packs")`.
        tenant: Whose packs they are.
        embedder: What makes the vectors: by default the one that comes with Lamina; None for a search by words alone.
        config: Defaults and limits.
        clock: Where times come from.
        new_id: Where ids come from.
        emit: Told of memories that come back whole, and of those that fade.
        reducer: What makes the texts of memories that fade; by default rules, which need no model.
    """

    async def discover(
        self,
        query: str,
        *,
        type: PackType | str | None = None,
        tags: Iterable[str] = (),
        limit: int = 5,
        min_score: Cutoff = 0.0,
        owner: str | None = None,
    ) -> Results[PackMatch]:
        """Phase one: the packs that the query is about, best first, told from their summaries alone.

        The score is in [0, 1], and `min_score` inclusive ("auto": what has to do with the query); `tags` must all
        be there. Packs that have nothing in common with the query are never among them, nor are archived ones. If
        vectors cannot be compared, words are, and the list's `degraded` says so.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
        """
        return await self._discoverer.discover(
            self._arguments.discover(query, type=type, tags=tags, limit=limit, min_score=min_score, owner=owner)
        )

    async def retrieve(
        self,
        pack: str | Iterable[str],
        query: str | None = None,
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        limit: int | None = None,
        min_score: float | None = None,
        mode: SearchMode | str | None = None,
        touch: bool = True,
        by: Literal["name", "id"] = "name",
        owner: str | None = None,
    ) -> Results[PackHit]:
        """Phase two: the memories of one or several packs that answer the query best, best first.

        The score is similarity x confidence x a factor of the tier that the memory was found in; without a query
        it is None, and the newest access comes first. At most `limit` in all, of every pack together. With
        `by="id"` the packs are given by their ids.

        Raises:
            PackNotFound: there is no such pack that the owner sees.
            InvalidInput: the query is blank, or an argument is out of range.
        """
        asked = self._arguments.memories(
            await self._found(pack, owner, by),
            memory_type=memory_type,
            name=name,
            tags=tags,
            min_confidence=min_confidence,
            include_superseded=include_superseded,
        )
        request = self._arguments.retrieve(asked, query=query, limit=limit, min_score=min_score, mode=mode, touch=touch)
        return await self._retriever.retrieve(request)

    async def rank(
        self,
        pack: str | Iterable[str],
        query: str | None = None,
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        limit: int | None = None,
        min_score: float = 0.0,
        mode: SearchMode | str | None = None,
        owner: str | None = None,
    ) -> Results[PackHit]:
        """What `retrieve` would give, without contents and without reading it: for a choice among them, then `read`.

        Raises:
            PackNotFound: there is no such pack that the owner sees.
            InvalidInput: the query is blank, or an argument is out of range.
        """
        asked = self._arguments.memories(
            await self._found(pack, owner),
            memory_type=memory_type,
            name=name,
            tags=tags,
            min_confidence=min_confidence,
            include_superseded=include_superseded,
        )
        return await self._retriever.rank(
            self._arguments.retrieve(asked, query=query, limit=limit, min_score=min_score, mode=mode)
        )

    async def search(
        self,
        query: str,
        *,
        packs: int = 2,
        per_pack: int = 5,
        type: PackType | str | None = None,
        min_pack_score: Cutoff = 0.0,
        min_score: float | None = None,
        touch: bool = True,
        owner: str | None = None,
    ) -> Results[PackHit]:
        """Both phases: the best memories of the packs that match best, at most `per_pack` of each, by score.

        `min_score` is as in `retrieve`.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
        """
        read_flag("touch", touch)
        least: Cutoff = AUTO if min_pack_score == AUTO else read_confidence(min_pack_score, "min_pack_score")
        self._arguments.limit(per_pack, "per_pack")
        matches = await self.discover(
            query, type=type, limit=self._arguments.limit(packs, "packs"), min_score=least, owner=owner
        )
        hits: builtins.list[PackHit] = []
        degraded = dict.fromkeys(matches.degraded)
        for match in matches:
            asked = self._arguments.memories([match.pack.id])
            request = self._arguments.retrieve(asked, query=query, limit=per_pack, min_score=min_score, touch=touch)
            found = await self._retriever.retrieve(request)
            hits += found
            degraded.update(dict.fromkeys(found.degraded))
        hits.sort(key=lambda hit: (-(hit.score or 0.0), hit.memory.id))
        return Results(hits, degraded=tuple(degraded))

    async def find(
        self,
        query: str,
        *,
        owner: str | None = None,
        max_packs: int,
        min_score: Cutoff,
        per_pack: int,
        touch: bool = True,
    ) -> Results[ContextHit]:
        """What a context engine asks of its source of packs: `search`, with the names of the packs.

        Packs and memories below `min_score` do not match; under "auto" those that have nothing to do with the
        query. With `touch` off nothing counts as read, and yet all is shown whole: as it would be sent.
        """
        hits = await self.search(
            query,
            packs=max_packs,
            per_pack=per_pack,
            min_pack_score=min_score,
            min_score=None if min_score == AUTO else min_score,
            touch=touch,
            owner=owner,
        )
        packs = await self._heads.visible(sorted({hit.memory.pack_id for hit in hits}), owner)
        ids = [hit.memory.id for hit in hits]
        kept = await self._store.get_memories(self.tenant, ids) if ids else []
        whole = {each.id: each.content for each in kept if not each.is_deleted}
        found = [
            ContextHit(
                id=hit.memory.id,
                pack=packs[hit.memory.pack_id].name,
                content=whole[hit.memory.id],
                score=hit.score or 0.0,
                source=hit.memory.provenance,
                trust=trust_of(hit.memory.source),
                metadata=hit.memory.metadata,
            )
            for hit in hits
            if hit.memory.id in whole and hit.memory.pack_id in packs
        ]
        return Results(found, degraded=hits.degraded)

    # What leads to a memory engine and back.

    async def import_entries(
        self,
        pack: str,
        entries: Iterable[MemoryEntry],
        *,
        memory_type: MemoryType | str | None = None,
        owner: str | None = None,
    ) -> ImportReport:
        """Add entries of a memory engine, such as those of `engine.query(...)`, as memories of the pack.

        The type is the given one, else that of an entry's `metadata["memory_type"]`, else `fact`. Ids are made of
        the pack's and the entry's, so that what was imported before, and even deleted since, is passed over.

        Raises:
            PackNotFound: there is none that the owner sees.
            InvalidInput: an entry is of another tenant, or personal and of another owner than the pack, and nothing
                is added; or one names a type that there is not, and those before its batch are.
        """
        found = await self._heads.find_to_change(pack, owner)
        report = ImportReport()
        given = {imported_id(found, entry): entry for entry in read_entries(entries, found)}
        ids = [*given]
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            there = {each.id for each in await self._store.get_memories(self.tenant, batch, with_content=False)}
            new = [id for id in batch if id not in there]
            added = await self._writer.add(found, [input_of(given[id], found, memory_type) for id in new])
            report.added += [each.id for each in added]
            report.skipped += [id for id in batch if id in there]
        return report

    async def export_entries(
        self, pack: str, *, include_superseded: bool = False, owner: str | None = None
    ) -> builtins.list[MemoryEntry]:
        """The pack's memories, whole, as entries that `engine.restore` takes; counts as no access.

        A shared pack becomes organizational memory; of an owner's, a session pack goes into the session layer and
        any other into the longterm layer. Archived memories stay behind.

        Raises:
            PackNotFound: there is none that the owner sees.
        """
        found = await self._heads.find(pack, owner)
        asked = self._arguments.memories([found.id], include_superseded=include_superseded)
        # In one look, not by pages: each page would count through all before it.
        return [entry_of_memory(each, found) for each in await self._store.find_memories(asked)]

    # Fading and upkeep, of every owner's packs.

    async def degrade(self, now: datetime | None = None, *, limit: int | None = None) -> DegradationReport:
        """Let each memory that is due fade to the tier that its idle time asks for; one sweep, whoever owns it.

        The longest due first; at most `limit` are looked at, and the next such sweep goes on behind them. What has
        expired is archived. What an earlier failure left half done is mended first. `now` is the clock's, unless
        given. Sweeps may run beside readers, who win.

        Raises:
            InvalidInput: `now` has no time zone, or `limit` is no number above zero.
            AdapterError: the store or the index failed. All that was done holds, and the next sweep does the rest.
        """
        return await self._fading.degrade(now, limit=limit)

    async def preview(
        self,
        until: datetime | None = None,
        *,
        limit: int = 100,
        pack: str | None = None,
        owner: str | None = None,
    ) -> builtins.list[FadingStep]:
        """What fades next, and when, the first first; at most `limit`, each with its next step.

        Of the pack of this name that the owner sees; without one, in all packs, whoever owns them. Changes nothing,
        and counts as no access.

        Raises:
            PackNotFound: there is no such pack.
        """
        found = None if pack is None else await self._heads.find(pack, owner)
        return await self._fading.preview(until, limit=limit, pack_id=None if found is None else found.id)

    async def reembed_missing(self, *, progress: Progress | None = None) -> ReembedReport:
        """Embed the packs and memories that have no vector, as after a failure of the embedder.

        Raises:
            EmbeddingFingerprintError: the stored vectors are another model's; see `reembed`.
            ProviderError: the embedder failed; what was embedded until then is kept.
        """
        await self._index.load()
        await self._heads.embed_anew(force=False)
        return await self._index.space.embed_missing(progress=progress)

    async def reembed(self, *, force: bool = False, progress: Progress | None = None) -> ReembedReport:
        """Change packs and memories over to the configured embedder, then embed whatever has no vector."""
        await self._index.load()
        await self._heads.embed_anew(force=force)
        return await self._index.space.reembed(force=force, progress=progress)

    async def purge_orphans(self) -> int:
        """Delete what the index holds of memories that are gone; how many rows there were. Reads everything."""
        return await self._index.purge_orphans()

    async def check(self) -> builtins.list[str]:
        """Look the packs over; what is wrong, in plain words. Empty if they are sound. Reads everything.

        As far as the store and the adapter can look: those of SQLite, whichever tenant's they are, and of PostgreSQL.
        The rows that are searched are compared with the memories that there are.
        """
        told: dict[str, None] = {}
        for each in await self._kept():
            told.update(dict.fromkeys(await ask_store(each, "check", self.tenant)))
        return [*told, *((await self._drift()).told() if not told else ())]

    async def repair(self) -> builtins.list[str]:
        """Mend what can be made anew from the rows: the index that is searched, and what is counted; what was done.

        Nothing that can be read is dropped; what it cannot mend, `check` still finds.
        """
        done = [one for each in await self._kept() for one in await ask_store(each, "repair", self.tenant)]
        drift = await self._drift()
        if drift.orphans:
            done.append(f"{await self._index.purge_orphans()} rows of the packs' index, of no memory, were removed")
        if drift.missing:
            waiting = await self._index.project(await self._store.get_memories(self.tenant, drift.missing))
            done.append(f"{len(drift.missing) - len(waiting)} memories of packs were given a row in the index")
        return done

    async def _kept(self) -> builtins.list[Any]:
        """The store, and the adapter of the rows, if there can be some: else a collection would be made for none."""
        if not await self._store.tenants():
            return [self._store]
        await self._index.load()
        return [self._store, self._index.adapter]

    async def _drift(self) -> Drift:
        if not await self._store.tenants():
            return Drift([], [])
        return await find_drift(self._index, self._store, tenant=self.tenant, clock=self._clock)

    async def scrub(self) -> None:
        """See to it that of what has faded, was replaced or deleted nothing is left in the index's file or its log.

        Words may be left there by an SQLite before 3.42, and anything in the log until it is emptied. The original
        of a memory that has faded is kept, compressed, until the memory is deleted for good.

        Raises:
            Unsupported: the store or the adapter cannot; the one that can has done it.
            AdapterUnavailable: another process reads on, so that the log could not be emptied; try again.
        """
        await self._index.load()
        await scrub_all([self._index.adapter, self._store])
