"""Erasing a person: everything of an owner, wherever a kernel keeps it, and a receipt that another read has made.

What was deleted is counted anew through the stores, the stores look themselves over, and where they are a file, its
bytes and those of its log are searched for what was in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from lamina.databases.sqlite.contents import standing_in_rows
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.pack import Pack, PackStatus
from lamina.domain.pack_query import PackMemoryQuery, PackQuery
from lamina.domain.scope import Scope
from lamina.domain.text import check_name
from lamina.domain.thread import Thread, ThreadKind
from lamina.errors import AdapterUnavailable
from lamina.kernel.parts import Backends, Parts
from lamina.kernel.stores import database_file, server_store_of
from lamina.memory.erasing import Erased
from lamina.memory.reading import count
from lamina.memory.self_checks import ask_store
from lamina.ports.clock import Clock
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.server_store import ServerStore
from lamina.settings import LaminaConfig

__all__ = ["ErasureReceipt", "erase_owner"]

ROUNDS: Final = 3
"""How often a log that is read by another is tried to be emptied before it is told as pending."""
_POSTGRES_NOTE: Final = (
    "PostgreSQL: what was deleted is vacuumed; archives of its log, replicas that lag "
    "and backups keep it until they expire"
)
_COPIES: Final = ("*.backup", "*.before-restore-*", "*.part")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What there was before and is now, by kind, without content. `mark` is the keyed hash that stands for the owner.

    `derived` counts what was made from the owner's and was others'. `bytes_left` tells how many of the `looked_for`
    texts, contents and ids, stand in `files` outside any row; None where there are no files to search. What is
    `pending` was not done; it is when it is run again.
    """

    tenant: str
    mark: str
    erased_at: datetime
    before: dict[str, int]
    after: dict[str, int]
    derived: int
    cached_vectors: int
    looked_for: int
    bytes_left: int | None
    files: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left, and nothing pending."""
        return not (any(self.after.values()) or self.pending or self.bytes_left)


async def erase_owner(
    config: LaminaConfig, parts: Parts, backends: Backends, owner: str, *, clock: Clock
) -> ErasureReceipt:
    """Erase everything of the owner in the tenant; done again, it goes on where it stopped.

    Raises:
        InvalidInput: no owner can have the name.
        AdapterError: a store failed; what was not done is when it is run again.
    """
    check_name("owner", owner)
    async with _server(config, backends) as server:
        eraser = _Eraser(parts, backends, server, owner, clock=clock)
        before = await eraser.counted()
        erased = await parts.memory.erase(owner)
        made_of_others = await eraser.erase(erased)
        before |= {"tokens": eraser.tokens, "kept_answers": eraser.answers}
        cached = _clear_cache(parts)
        pending = [*await eraser.scrub(), *await _unsound(parts, backends)]
        after = await eraser.counted() | dict(
            zip(("tokens", "kept_answers"), await eraser.forget_access(), strict=True)
        )
    file = database_file(config)
    files = [] if file is None else [each for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")) if each.exists()]
    left = await asyncio.to_thread(_left, files, erased.samples.texts) if files else None
    return ErasureReceipt(
        tenant=parts.memory.tenant,
        mark=erased.mark,
        erased_at=clock(),
        before=before,
        after=after,
        derived=erased.derived + made_of_others,
        cached_vectors=cached,
        looked_for=len(erased.samples.texts),
        bytes_left=left,
        files=[str(each) for each in files],
        pending=pending,
        notes=_notes(config, file),
    )


class _Eraser:
    """What a kernel keeps beside memories: threads, sessions, documents, packs, access."""

    def __init__(self, parts: Parts, backends: Backends, server: ServerStore, owner: str, *, clock: Clock) -> None:
        self._parts = parts
        self._backends = backends
        self._server = server
        self._owner = owner
        self._tenant = parts.memory.tenant
        self._clock = clock
        self.tokens = 0
        self.answers = 0

    async def counted(self) -> dict[str, int]:
        """How much of each kind is the owner's now."""
        threads = {kind: len([each async for each in self._threads(kind)]) for kind in ThreadKind}
        packs = await self._packs()
        return {
            "memories": await self._count(self._parts.memory.adapter),
            "threads": threads[ThreadKind.THREAD],
            "sessions": threads[ThreadKind.SESSION],
            "documents": len(await self._documents()),
            "chunks": await self._count(self._parts.chunks),
            "packs": len(packs),
        }

    async def erase(self, erased: Erased) -> int:
        """Delete it; how many memories were derived from it, whoever's they were."""
        sources = [source async for source in self._forget_threads(erased)]
        for head in await self._documents():
            erased.samples.add(head.id, head.source)
            for chunk in await self._parts.rag.chunks(head.id, owner=self._owner):
                erased.samples.add(chunk.content)
            sources.append(head.id)
        await self._parts.rag.clear(owner=self._owner)
        await self._parts.rag.purge_orphans()
        await self._forget_packs(erased)
        self.tokens, self.answers = await self.forget_access()
        return await self._parts.memory.erase_derived(erased, sources)

    async def forget_access(self) -> tuple[int, int]:
        """Remove the owner's tokens and the tenant's kept answers; how many there were."""
        return await self._server.forget_owner(self._tenant, self._owner)

    async def scrub(self) -> list[str]:
        """See to it that no file or log holds what was deleted; what could not be done."""
        stores: dict[str, Any] = {
            "memories": self._backends.memory.adapter,
            "documents": self._backends.chunks,
            "threads": self._backends.state,
            "packs": self._backends.packs,
        }
        if await self._backends.packs.tenants():
            await self._backends.pack_rows.initialize()  # which a kernel does only when it first needs them
            stores["rows of packs"] = self._backends.pack_rows
        pending = []
        for name, store in stores.items():
            problem = await _scrubbed(store)
            if problem is not None:
                pending.append(f"{name}: {problem}")
        return list(dict.fromkeys(pending))

    async def _count(self, adapter: MemoryAdapter) -> int:
        everything = MemoryFilter(now=self._clock(), expiry=Expiry.ANY)
        return await count(adapter, Scope(self._tenant, self._owner), everything)

    async def _threads(self, kind: ThreadKind) -> AsyncIterator[Thread]:
        after: tuple[datetime, str] | None = None
        while page := await self._backends.state.list_threads(self._tenant, kind, owner=self._owner, after=after):
            for head in page:
                yield head
            after = page[-1].updated_at, page[-1].id

    async def _forget_threads(self, erased: Erased) -> AsyncIterator[str]:
        """Delete the owner's threads and sessions; their ids, and those of their messages."""
        state = self._backends.state
        for kind in ThreadKind:
            async for head in self._threads(kind):
                yield head.id
                erased.samples.add(head.id)
                for event in await state.events(head.ref):
                    erased.samples.add(event.message.text)
                    yield event.message.id
                for summary in await state.summaries(head.ref):
                    erased.samples.add(summary.text)
                await state.delete_thread(head.ref)

    async def _documents(self) -> list[Any]:
        return await self._backends.state.find_documents(self._tenant, owner=self._owner, include_shared=False)

    async def _packs(self) -> list[Pack]:
        query = PackQuery(tenant=self._tenant, owner=self._owner, statuses=frozenset(PackStatus))
        return [pack for pack in await self._backends.packs.list_packs(query) if pack.owner == self._owner]

    async def _forget_packs(self, erased: Erased) -> None:
        """Delete the owner's packs for good, and what was taken from erased memories into others' and shared ones."""
        for pack in await self._packs():
            for memory in await self._memories(pack):
                erased.samples.add(memory.content)
            await self._parts.packs.delete(pack.name, permanent=True, owner=self._owner)
        query = PackQuery(tenant=self._tenant, any_owner=True, statuses=frozenset(PackStatus))
        for pack in await self._backends.packs.list_packs(query):
            for memory in await self._memories(pack):
                if memory.metadata.get("entry_id") in erased.ids:
                    erased.samples.add(memory.content)
                    erased.derived += 1
                    await self._parts.packs.delete_memory(memory.id, permanent=True, owner=pack.owner)

    async def _memories(self, pack: Pack) -> list[Any]:
        query = PackMemoryQuery(tenant=self._tenant, pack_ids=(pack.id,), include_superseded=True)
        return await self._backends.packs.find_memories(query)


@asynccontextmanager
async def _server(config: LaminaConfig, backends: Backends) -> AsyncIterator[ServerStore]:
    """The server store: one of its own, since the process's may be in use, or never opened; in memory there is one."""
    if config.is_ephemeral:
        await backends.server.initialize()
        yield backends.server
        return
    async with server_store_of(config) as store:
        yield store


async def _scrubbed(store: Any) -> str | None:
    """Scrub it, if it can; what keeps it from being done."""
    if not hasattr(store, "scrub"):
        return None
    problem: str | None = None
    for _ in range(ROUNDS):
        try:
            await store.scrub()
        except AdapterUnavailable as error:
            problem = error.problem
        else:
            problem = None
            break
    return problem


async def _unsound(parts: Parts, backends: Backends) -> list[str]:
    """What the stores find wrong after it, such as words or vectors that belong to nothing."""
    stores = (backends.memory.adapter, backends.chunks, backends.state, parts.packs)
    found = [one for store in stores for one in await ask_store(store, "check", parts.memory.tenant)]
    return list(dict.fromkeys(found))


def _clear_cache(parts: Parts) -> int:
    """Let go of the vectors that are kept in the process; how many there were."""
    clear = getattr(parts.memory.embedder, "clear_cache", None)
    return 0 if clear is None else int(clear())


def _left(files: list[Path], texts: set[bytes]) -> int:
    """How many of the texts stand in one of the files where no row holds them: others may say the same."""
    contents = [path.read_bytes() for path in files]
    found = {text for text in texts if any(text in content for content in contents)}
    return len(found - standing_in_rows(files[0], found)) if found else 0


def _notes(config: LaminaConfig, file: Path | None) -> list[str]:
    """What is out of reach."""
    notes = []
    if config.memory.adapter_name() == "postgres" or (config.state_url or "").startswith("postgres"):
        notes.append(_POSTGRES_NOTE)
    if file is not None:
        copies = sorted(str(path) for pattern in _COPIES for path in file.parent.glob(f"{file.name}{pattern[1:]}"))
        copies += sorted(str(path) for path in file.parent.glob(f"{file.name}.*.backup"))
        notes += [f"a copy of before is not touched: {path}" for path in dict.fromkeys(copies)]
    notes.append("exports, backups and prompts that hold a copy are out of reach")
    return notes
