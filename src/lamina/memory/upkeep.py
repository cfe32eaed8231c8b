"""What keeps a store of memories in shape: fading, forgetting, and computing vectors anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.memory import Layer
from lamina.domain.text import check_name
from lamina.errors import InvalidInput
from lamina.memory.decay import DecayReport
from lamina.memory.embedding import Progress, ReembedReport
from lamina.memory.erasing import Erased, erase, erase_derived
from lamina.memory.forgetting import Forgetter
from lamina.memory.inputs import has_condition, read_age, read_cutoff, read_filter
from lamina.memory.quarantining import Quarantine, QuarantineReceipt
from lamina.memory.runtime import Runtime
from lamina.ports.hooks import ForgetReason

__all__ = ["Upkeep"]


class Upkeep:
    """The part of a memory engine that removes and renews."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._forgetter = Forgetter(runtime)
        self._quarantine = Quarantine(runtime)

    async def erase(self, owner: str) -> Erased:
        """Delete all that is an owner's, in every layer and namespace, with what was derived from it; leave a mark.

        Expired memories and former versions too. The mark, a keyed hash without content, keeps an import of what was
        stored before from bringing it back. `Kernel.erase` does so for all that a kernel keeps.

        Raises:
            InvalidInput: no owner can have the name.
        """
        return await erase(self._runtime, check_name("owner", owner))

    async def erased_at(self, *, owner: str | None = None, id: str | None = None) -> datetime | None:
        """When the owner was erased, or the memory of this id deleted, last; None if never.

        Memories that expired, or went with all of the tenant by `clear`, are not remembered.
        """
        marks = self._forgetter.tombstones
        found = [
            None if owner is None else await marks.erased_at("owner", owner),
            None if id is None else await marks.erased_at("memory", id),
        ]
        return max(filter(None, found), default=None)

    async def erase_derived(self, erased: Erased, sources: Iterable[str]) -> int:
        """Delete what was derived from what `erase` deleted, or from these sources; how many there were."""
        return await erase_derived(self._runtime, erased, sources)

    async def decay(
        self,
        *,
        factor: float = 0.95,
        min_relevance: float = 0.1,
        older_than: timedelta = timedelta(hours=24),
        older_than_ms: float | None = None,
        owner: str | None = None,
        namespace: str | None = None,
    ) -> DecayReport:
        """One cycle: multiply the relevance of memories not changed or confirmed lately, down to a floor.

        `min_relevance` is the floor; a memory below it stays where it is. Each call is a cycle of
        its own: calling twice fades twice. Nothing does this by itself.
        """
        now = self._runtime.clock()
        aged = MemoryFilter(now=now, updated_before=read_cutoff("older_than", read_age(older_than, older_than_ms), now))
        return await self._forgetter.decay(self._runtime.write_scope(owner, namespace), aged, factor, min_relevance)

    async def forget(self, id: str, *, owner: str | None = None, expected_revision: int | None = None) -> bool:
        """Delete the memory with its vector and history, only the expected revision of it; False if there is none.

        What it superseded goes to whatever supersedes it, or holds again.
        """
        check_name("id", id)
        return await self._forgetter.forget(id, owner, expected_revision)

    async def forget_where(
        self,
        *,
        layer: Layer | str | None = None,
        layers: Iterable[Layer | str] | None = None,
        owner: str | None = None,
        namespace: str | None = None,
        tags: Iterable[str] = (),
        tags_any: Iterable[str] = (),
        where: Filter | Mapping[str, Any] | None = None,
        older_than: datetime | timedelta | str | None = None,
        dry_run: bool = False,
    ) -> int:
        """Delete every memory that meets all these conditions, and return how many; `dry_run` only counts.

        `older_than` is strict and on `created_at`: an age, an instant, or ISO text. An owner binds
        every layer here.

        Raises:
            InvalidInput: no condition was given; deleting everything is `clear(confirm=True)`.
        """
        now = self._runtime.clock()
        before = read_cutoff("older_than", older_than, now)
        filter = read_filter(
            now, layer=layer, layers=layers, tags=tags, tags_any=tags_any, where=where, created_before=before
        )
        scope = self._runtime.write_scope(owner, namespace)
        if not (has_condition(filter) or owner or namespace):
            raise InvalidInput("filter", "has no condition", "To delete everything call clear(confirm=True).")
        if dry_run:
            return await self._forgetter.count(scope, filter)
        return await self._forgetter.forget_all(scope, filter, ForgetReason.FILTER)

    async def quarantine(
        self,
        *,
        source: str | None = None,
        prefix: str | None = None,
        owner: str | None = None,
        origins: Collection[str] = (),
    ) -> QuarantineReceipt:
        """Take all memories from a source out of recall and contexts, with all that was made from them.

        `source` is compared whole; `prefix` means all sources that begin so, and ends with `:`, `/` or `#`. What was
        made from them is found by `derived_from`, through any number of steps; an owner binds all of it. What
        they superseded holds again. Nothing is deleted: `release` takes the receipt's `id` and undoes it. Reads
        every memory of the owner, or of the tenant. `origins` are ids of other things from there, such as documents:
        `Kernel.quarantine` takes these out too.

        Raises:
            InvalidInput: not exactly one of both is given, or the prefix ends with no separator.
        """
        return await self._quarantine.put(self._runtime.write_scope(owner), source, prefix, origins)

    async def quarantined(self, *, owner: str | None = None) -> list[QuarantineReceipt]:
        """What is in quarantine, by the act that put it there, the first first."""
        return await self._quarantine.listed(self._runtime.write_scope(owner))

    async def release(self, id: str, *, owner: str | None = None) -> list[str]:
        """Undo a quarantine: what it took out is recalled again, and supersedes what it did. The ids of that.

        Raises:
            MemoryNotFound: there is no quarantine of this id (and owner), or nothing of it left.
        """
        return await self._quarantine.release(self._runtime.write_scope(owner), check_name("id", id))

    async def forget_source(
        self,
        *,
        source: str | None = None,
        prefix: str | None = None,
        owner: str | None = None,
        dry_run: bool = False,
        origins: Collection[str] = (),
    ) -> int:
        """Delete what `quarantine` would take out, and return how many; `dry_run` only counts.

        Raises:
            InvalidInput: as for `quarantine`.
        """
        scope = self._runtime.write_scope(owner)
        from_source, derived = await self._quarantine.affected(scope, source, prefix, origins)
        ids = [*from_source, *derived]
        return len(ids) if dry_run else await self._forgetter.forget_ids(scope, ids)

    async def clear(self, *, confirm: bool = False) -> int:
        """Delete every memory of the tenant, expired ones too, and return how many; refused unless confirmed."""
        if confirm is not True:
            raise InvalidInput("confirm", "is not given", "Call clear(confirm=True) to delete every memory.")
        return await self._forgetter.clear()

    async def purge_expired(self) -> int:
        """Delete what has expired, and return how much there was; the engine does so now and then by itself."""
        return await self._forgetter.purge_expired()

    async def reembed(self, *, force: bool = False, progress: Progress | None = None) -> ReembedReport:
        """Change the store over to the configured embedder, then embed whatever has no vector.

        If the stored vectors are another model's (or with `force`) they are dropped first; from
        then on searches go by keyword and by the vectors made so far. May be interrupted and
        called again: it goes on where it stopped.

        Raises:
            ConfigError: no embedder is configured.
            ProviderError: the embedder failed; what was embedded until then is kept.
        """
        return await self._runtime.space.reembed(force=force, progress=progress)

    async def reembed_missing(self, *, progress: Progress | None = None) -> ReembedReport:
        """Embed the memories that have no vector, as after a failure of the embedder.

        Raises:
            EmbeddingFingerprintError: the stored vectors are another model's; see `reembed`.
            ProviderError: the embedder failed; what was embedded until then is kept.
        """
        return await self._runtime.space.embed_missing(progress=progress)
