"""Reads the stores for the checks: each thing once, no vector, and no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from lamina import registry
from lamina.conversation.compaction import compaction_of
from lamina.conversation.setbacks import Setbacks
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import SHARED_LAYERS, Layer, MemoryEntry
from lamina.domain.message import Message, Role
from lamina.domain.scope import Scope
from lamina.domain.thread import Thread, ThreadEvent, ThreadKind, ThreadStatus
from lamina.errors import InvalidInput, InvalidType
from lamina.kernel.checks.subject import ChunkFacts, MemoryFacts, Stock, ThreadFacts
from lamina.kernel.parts import Parts
from lamina.memory.earlier import mark_of
from lamina.memory.embedding import EmbeddingSpace
from lamina.memory.reading import count, pages
from lamina.memory.self_checks import ask_store
from lamina.ports.clock import Clock
from lamina.settings import LaminaConfig

__all__ = ["LONG_CHARS", "OLD_AGE", "THREADS", "survey"]

THREADS: Final = 100
"""How many threads, and how many sessions, are looked at: those with the newest activity."""
LONG_CHARS: Final = 2_000
OLD_AGE: Final = timedelta(days=30)
_FLOOR: Final = 0.1
"""Where decay stops by default."""


async def survey(parts: Parts, *, config: LaminaConfig, clock: Clock) -> Stock:
    """What is in the stores, expired memories and archived threads left out."""
    damages = await _damages(parts)
    return Stock(
        memories=await _memories(parts, clock()),
        is_earlier_waiting=await _is_earlier_waiting(parts, config),
        stats=await parts.memory.stats(),
        threads=[
            *await _threads(parts, ThreadKind.THREAD),
            *await _threads(parts, ThreadKind.SESSION),
        ],
        chunks=await _chunks(parts, clock),
        damages=damages,
        pack_damages=[each for each in await parts.packs.check() if each not in damages],
    )


async def _memories(parts: Parts, now: datetime) -> MemoryFacts:
    facts = MemoryFacts()
    # Not by the engine's own reading, which keeps to a namespace if it is strict: the checks look for what that hides.
    async for page in pages(parts.memory.adapter, Scope(parts.memory.tenant), MemoryFilter(now=now)):
        for entry in page:
            _count(facts, entry, now)
    return facts


def _count(facts: MemoryFacts, entry: MemoryEntry, now: datetime) -> None:
    facts.long += len(entry.content) > LONG_CHARS
    facts.namespaces[entry.namespace] += 1
    if entry.layer not in SHARED_LAYERS:
        facts.owners[entry.owner] += 1
    if entry.layer is not Layer.LONGTERM:
        return
    decayed = entry.relevance < entry.base_relevance
    facts.longterm += 1
    facts.decayed += decayed
    facts.faded += decayed and entry.relevance <= _FLOOR
    facts.old += now - entry.updated_at > OLD_AGE


async def _is_earlier_waiting(parts: Parts, config: LaminaConfig) -> bool:
    if config.memory.v1_path is None:
        return False
    mark = mark_of(registry.open_earlier(config.memory.v1_path))
    return await parts.memory.adapter.load_meta(Scope(parts.memory.tenant), mark) is None


async def _threads(parts: Parts, kind: ThreadKind) -> list[ThreadFacts]:
    tenant = parts.memory.tenant
    heads = await parts.state.list_threads(tenant, kind, status=ThreadStatus.ACTIVE, limit=THREADS)
    return [await _thread(parts, head) for head in heads]


async def _thread(parts: Parts, head: Thread) -> ThreadFacts:
    state = parts.state
    live = await state.events(head.ref, after=head.folded_through)
    system = await state.system_events(head.ref, before=head.folded_through + 1)
    summary = next(iter(await state.summaries(head.ref, limit=1)), None)
    setbacks = Setbacks.read(head.metadata)
    return ThreadFacts(
        id=head.id,
        kind=head.kind,
        last_index=head.last_index,
        tokens=sum(event.tokens for event in [*system, *live]) + (summary.tokens if summary else 0),
        summary=summary.source if summary else None,
        failures=setbacks.failures,
        problem=setbacks.problem,
        unanswered=_unanswered([event.message for event in live]),
        unreadable=sum(not _is_readable(event) for event in live),
    )


def _unanswered(messages: Sequence[Message]) -> int:
    """Calls without a result that somebody but a tool has spoken after."""
    waiting: set[str] = set()
    lost = 0
    for message in messages:
        if message.role is Role.TOOL:
            waiting.discard(message.tool_call_id or "")
        else:
            lost += len(waiting)
            waiting = {call.id for call in message.tool_calls}
    return lost


def _is_readable(event: ThreadEvent) -> bool:
    try:
        compaction_of(event)
    except (InvalidInput, InvalidType):
        return False
    return True


async def _chunks(parts: Parts, clock: Clock) -> ChunkFacts:
    scope = Scope(parts.memory.tenant)
    space = EmbeddingSpace(parts.chunks, scope, parts.memory.embedder, clock)
    await space.load()
    missing = MemoryFilter(now=clock(), has_embedding=False, expiry=Expiry.ANY)
    foreign = str(space.fingerprint) if space.needs_reembed else None
    return ChunkFacts(
        documents=await parts.rag.list_documents(),
        without_vector=await count(parts.chunks, scope, missing),
        made_by=foreign,
    )


async def _damages(parts: Parts) -> list[str]:
    """What the stores find wrong, as far as they can look; parts in one file may find the same."""
    told: dict[str, None] = {}
    stores: list[Any] = [parts.memory.adapter, parts.chunks, parts.state]
    for store in stores:
        told.update(dict.fromkeys(await ask_store(store, "check", parts.memory.tenant)))
    return list(told)
