"""What is there after a kill, and whether it holds together: read through a new kernel, and past it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime

from kill_places import COLLECTIONS, Place, options
from kill_writers import OWNER, THREADS, words_of

from lamina import Kernel
from lamina.domain.document import RagChunk
from lamina.domain.pack_decay import Tier
from lamina.errors import LaminaError
from lamina.testing import FrozenClock

POOL, LIMIT = 100, 5
"""Of how many that come for an item's own words it has to be one of the most similar."""


class Sight:
    """What was found, what is wrong with it, and a kernel to ask."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.found: dict[str, str] = {}
        self.findings: list[str] = []

    async def not_found(self, keys: Iterable[str]) -> list[str]:
        """Those that do not come for their own words: by the text index, and by their vectors."""
        missed = []
        for key in keys:
            kind, _, id = key.partition(":")
            ask = {"memory": self._memory, "document": self._document, "pack": self._pack}.get(kind)
            try:
                if ask is not None and not await ask(id, self.found[key]):
                    missed.append(f"{key} is not found by its own words")
            except LaminaError as error:
                missed.append(f"{key} cannot be asked for: {error}")
        return missed

    async def _memory(self, id: str, content: str) -> bool:
        for query, mode in ((content.partition(" ")[0], "text"), (content, "vector")):
            results = await self.kernel.memory_engine.recall(query, mode=mode, limit=POOL, touch=False)
            results.sort(key=lambda result: -result.score_breakdown.similarity)  # of those that faded fewer are first
            if id not in [result.entry.id for result in results[:LIMIT]]:
                return False
        return True

    async def _document(self, source: str, version: str) -> bool:
        hits = await self.kernel.rag.retrieve(version, top_k=LIMIT, mode="text")
        return bool(hits) and {version} == words_of([hit.content for hit in hits if version in hit.content])

    async def _pack(self, id: str, content: str) -> bool:
        """One that has faded has lost words; its row holds what it has left."""
        packs = self.kernel.packs
        memory = await packs.memory(id, touch=False, owner=OWNER)
        rows = await packs._index.rows([id])
        if memory.tier is Tier.ARCHIVED:
            return not rows
        if memory.tier is not Tier.FULL:
            return id in rows
        word = content.partition(" ")[0]
        hits = await packs.retrieve(memory.pack_id, word, by="id", mode="text", min_score=0, touch=False, owner=OWNER)
        return id in [hit.memory.id for hit in hits]


@asynccontextmanager
async def look(place: Place, way: str, now: datetime) -> AsyncIterator[Sight]:
    """Open the place anew, as the program that takes over would, and read everything.

    Sweeps and copies of files that were cut off are gone on with: what they left half done is theirs to mend.
    """
    async with Kernel(place.settings(), **options(FrozenClock(now))) as kernel:
        if way == "sweeping":
            await kernel.packs.degrade()
        if way == "migrating":
            await kernel.memory_engine.reembed_missing()
        await kernel.rag.purge_orphans()
        sight = Sight(kernel)
        sight.found.update([each async for each in memories(kernel)])
        sight.found.update([each async for each in pack_memories(kernel, place)])
        sight.found.update([each async for each in documents(kernel)])
        for thread in THREADS:
            sight.findings += [each async for each in messages(kernel, thread, sight.found)]
        sight.findings += [*place.unsound(), *[each async for each in own_checks(kernel)], *drift(place)]
        yield sight


async def memories(kernel: Kernel) -> AsyncIterator[tuple[str, str]]:
    async for entry in kernel.memory_engine.scan():
        yield f"memory:{entry.id}", entry.content


async def pack_memories(kernel: Kernel, place: Place) -> AsyncIterator[tuple[str, str]]:
    """The originals of all memories of packs, archived ones too."""
    ids = place.ids_of_pack_memories()
    for start in range(0, len(ids), 500):
        for each in await kernel.packs._store.get_memories(kernel.packs.tenant, ids[start : start + 500]):
            yield f"pack:{each.id}", each.content


async def documents(kernel: Kernel) -> AsyncIterator[tuple[str, str]]:
    """The version of each document: one that is not whole, or of two versions, has none that was ever written."""
    for document in await kernel.rag.list_documents():
        chunks = await kernel.rag.chunks(document.id)
        yield f"document:{document.source}", version_of(chunks, document.chunks)


def version_of(chunks: list[RagChunk], number: int) -> str:
    versions = words_of([chunk.content for chunk in chunks])
    is_whole = [chunk.chunk_index for chunk in chunks] == list(range(number)) and chunks
    if not is_whole or len(versions) != 1 or not chunks[-1].content.endswith(f"The end of {max(versions)}."):
        return f"{len(chunks)} of {number} chunks, of {sorted(versions)}"
    return versions.pop()


async def messages(kernel: Kernel, thread: str, found: dict[str, str]) -> AsyncIterator[str]:
    """Put the messages of a thread into what was found; what of them contradicts itself."""
    kept = await kernel.conversation.retrieve(thread)
    if kept is None:
        return
    history = await kernel.conversation.history(thread)
    found.update({f"message:{thread}:{each.id}": each.text for each in history})
    if [each.index for each in history] != list(range(1, len(history) + 1)):
        yield f"the messages of {thread} are not numbered one after the other"
    if [each.index for each in kept.messages] != list(range(kept.folded_through + 1, kept.last_index + 1)):
        yield f"the live messages of {thread} are not those behind what was folded"
    places = {each.id: each.index for each in history}
    for one in history:
        word, _, role = one.id.partition("-")
        if role == "user" and places.get(f"{word}-assistant") != one.index + 1:
            yield f"the exchange {word} of {thread} is parted"


async def own_checks(kernel: Kernel) -> AsyncIterator[str]:
    """What the stores say of themselves, those that can."""
    parts = kernel._opened().parts
    stores = [parts.memory.adapter, parts.chunks, parts.state, parts.packs._store]
    for store in stores:
        check = getattr(store, "check", None)
        for finding in await check() if check is not None else []:
            yield f"{type(store).__name__}: {finding}"


def drift(place: Place) -> Iterator[str]:
    """Whether each collection has as many rows as entries in its text index and as vectors."""
    for collection in COLLECTIONS:
        rows, texts, vectors = place.counts(collection)
        if not rows == texts == vectors:
            yield f"{collection} has {rows} rows, {texts} in the text index, {vectors} vectors"
