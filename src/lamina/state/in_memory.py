"""State in this process's memory: nothing to open, nothing that outlives it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from lamina.domain.document import Document
from lamina.domain.message import Role
from lamina.domain.storable import (
    check_paging,
    check_ref,
    storable_document,
    storable_event,
    storable_json,
    storable_summary,
    storable_thread,
)
from lamina.domain.text import check_name
from lamina.domain.thread import Summary, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus
from lamina.errors import ThreadArchivedError, ThreadNotFound
from lamina.ports.state_store import StateStore

__all__ = ["InMemoryStateStore"]


@dataclass(slots=True)
class _Kept:
    """One thread: its head, its messages by index, and its summaries, oldest first."""

    head: Thread
    events: dict[int, ThreadEvent] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    system: list[int] = field(default_factory=list)
    live_count: int = 0
    live_tokens: int = 0
    summaries: list[tuple[Summary, int]] = field(default_factory=list)
    """Each with how far the thread was folded before it."""

    def measure(self) -> None:
        """Count the live messages anew, after a change that was no append."""
        live = [event for index, event in self.events.items() if index > self.head.folded_through]
        self.live_count, self.live_tokens = len(live), sum(event.tokens for event in live)


class InMemoryStateStore(StateStore):
    """Keeps everything in dicts; usable from any event loop of one thread, without being opened first.

    No method waits for anything, so each is atomic beside the other tasks of its thread.
    """

    name: ClassVar[str] = "memory"

    def __init__(self) -> None:
        self._threads: dict[ThreadRef, _Kept] = {}
        self._documents: dict[tuple[str, str], Document] = {}

    async def initialize(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to let go of; what it holds goes with the object."""

    async def create_thread(self, thread: Thread) -> Thread:
        thread = storable_thread(thread)
        return copy.deepcopy(self._threads.setdefault(thread.ref, _Kept(thread)).head)

    async def get_thread(self, ref: ThreadRef) -> Thread | None:
        check_ref(ref)
        kept = self._threads.get(ref)
        return None if kept is None else copy.deepcopy(kept.head)

    async def list_threads(
        self,
        tenant: str,
        kind: ThreadKind = ThreadKind.THREAD,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Thread]:
        check_name("tenant", tenant)
        check_paging(limit, offset)
        heads = [
            kept.head
            for ref, kept in self._threads.items()
            if (ref.tenant, ref.kind) == (tenant, kind)
            and (owner is None or kept.head.owner == owner)
            and (status is None or kept.head.status is status)
        ]
        heads.sort(key=lambda head: head.id)
        heads.sort(key=lambda head: head.updated_at, reverse=True)
        return copy.deepcopy(heads[offset : offset + limit])

    async def update_thread(
        self,
        ref: ThreadRef,
        *,
        now: datetime,
        status: ThreadStatus | None = None,
        metadata: dict[str, Any] | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        check_ref(ref)
        metadata = None if metadata is None else storable_json("metadata", metadata)
        kept = self._threads.get(ref)
        if kept is None or expected_revision not in {None, kept.head.revision}:
            return False
        head = kept.head
        kept.head = head.replace(
            status=head.status if status is None else status,
            metadata=head.metadata if metadata is None else metadata,
            updated_at=now,
            revision=head.revision + 1,
        )
        return True

    async def delete_thread(self, ref: ThreadRef) -> bool:
        check_ref(ref)
        return self._threads.pop(ref, None) is not None

    async def append(self, ref: ThreadRef, events: Sequence[ThreadEvent], *, now: datetime) -> list[ThreadEvent]:
        check_ref(ref)
        events = [storable_event(event) for event in events]
        kept = self._threads.get(ref)
        if kept is None:
            raise ThreadNotFound(ref.id)
        if kept.head.status is ThreadStatus.ARCHIVED:
            raise ThreadArchivedError(ref.id)
        places = []
        for event in events:
            place = kept.places.get(event.message.id)
            places.append(self._append_one(kept, event) if place is None else place)
        if events:
            kept.head = kept.head.replace(updated_at=now)
        return [copy.deepcopy(kept.events[place]) for place in places]

    def _append_one(self, kept: _Kept, event: ThreadEvent) -> int:
        index = kept.head.last_index + 1
        message = event.message
        before = next(reversed(kept.events.values()), None)
        parent = message.parent if message.parent is not None or before is None else before.message.id
        kept.events[index] = event.replace(message=message.replace(index=index, parent=parent))
        kept.places[message.id] = index
        if message.role is Role.SYSTEM:
            kept.system.append(index)
        kept.head = kept.head.replace(last_index=index)
        kept.live_count += 1
        kept.live_tokens += event.tokens
        return index

    async def events(
        self,
        ref: ThreadRef,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[ThreadEvent]:
        check_ref(ref)
        check_paging(limit)
        kept = self._threads.get(ref)
        if kept is None:
            return []
        stop = kept.head.last_index + 1 if before is None else min(before, kept.head.last_index + 1)
        indexes = range(after + 1, stop)
        found: list[ThreadEvent] = []
        for index in reversed(indexes) if newest else indexes:
            if limit is not None and len(found) >= limit:
                break
            if index in kept.events:
                found.append(kept.events[index])
        return copy.deepcopy(found[::-1] if newest else found)

    async def find_events(self, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
        check_ref(ref)
        kept = self._threads.get(ref)
        if kept is None:
            return []
        return [
            copy.deepcopy(kept.events[place]) for place in sorted({kept.places[i] for i in ids if i in kept.places})
        ]

    async def system_events(self, ref: ThreadRef, *, before: int) -> list[ThreadEvent]:
        check_ref(ref)
        kept = self._threads.get(ref)
        return [] if kept is None else [copy.deepcopy(kept.events[each]) for each in kept.system if each < before]

    async def replace_events(
        self, ref: ThreadRef, events: Sequence[ThreadEvent], *, expected: Sequence[ThreadEvent]
    ) -> bool:
        check_ref(ref)
        events = [storable_event(event) for event in events]
        kept = self._threads.get(ref)
        if kept is None or any(kept.events.get(each.message.index) != each for each in expected):
            return False
        if any(kept.places.get(each.message.id) != each.message.index for each in events):
            return False
        for event in events:
            kept.events[event.message.index] = event
        kept.system = [index for index, event in kept.events.items() if event.message.role is Role.SYSTEM]
        kept.measure()
        return True

    async def delete_events(self, ref: ThreadRef, ids: Sequence[str]) -> int:
        check_ref(ref)
        kept = self._threads.get(ref)
        if kept is None:
            return 0
        indexes = {kept.places.pop(id) for id in set(ids) if id in kept.places}
        kept.events = {index: event for index, event in kept.events.items() if index not in indexes}
        kept.system = [index for index in kept.system if index not in indexes]
        kept.measure()
        return len(indexes)

    async def live_size(self, ref: ThreadRef) -> tuple[int, int]:
        check_ref(ref)
        kept = self._threads.get(ref)
        return (0, 0) if kept is None else (kept.live_count, kept.live_tokens)

    async def fold(self, ref: ThreadRef, summary: Summary, *, expected_folded_through: int, now: datetime) -> bool:
        check_ref(ref)
        summary = storable_summary(summary)
        kept = self._threads.get(ref)
        if kept is None or kept.head.folded_through != expected_folded_through:
            return False
        kept.summaries.append((summary, expected_folded_through))
        kept.head = kept.head.replace(folded_through=summary.to_index, updated_at=now, revision=kept.head.revision + 1)
        kept.measure()
        return True

    async def summaries(self, ref: ThreadRef, *, limit: int | None = None) -> list[Summary]:
        check_ref(ref)
        check_paging(limit)
        kept = self._threads.get(ref)
        chain = [] if kept is None else [summary for summary, _ in reversed(kept.summaries)]
        return copy.deepcopy(chain[:limit])

    async def unfold(self, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
        check_ref(ref)
        kept = self._threads.get(ref)
        if kept is None or not kept.summaries or kept.head.folded_through != expected_folded_through:
            return False
        _, before = kept.summaries.pop()
        kept.head = kept.head.replace(folded_through=before, updated_at=now, revision=kept.head.revision + 1)
        kept.measure()
        return True

    async def save_document(self, document: Document, *, expected_generation: int | None) -> bool:
        document = storable_document(document)
        key = (document.tenant, document.id)
        kept = self._documents.get(key)
        if (None if kept is None else kept.generation) != expected_generation:
            return False
        self._documents[key] = document
        return True

    async def get_documents(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        check_name("tenant", tenant)
        return [
            copy.deepcopy(self._documents[tenant, id]) for id in dict.fromkeys(ids) if (tenant, id) in self._documents
        ]

    async def find_documents(
        self,
        tenant: str,
        *,
        source: str | None = None,
        owner: str | None = None,
        include_shared: bool = True,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Document]:
        check_name("tenant", tenant)
        check_paging(limit, offset)
        found = [
            document
            for (of, _), document in self._documents.items()
            if of == tenant
            and source in {None, document.source}
            and (owner is None or document.owner in {owner, None})
            and (include_shared or document.owner is not None)
        ]
        found.sort(key=lambda document: (document.source, document.id))
        return copy.deepcopy(found[offset : None if limit is None else offset + limit])

    async def delete_document(self, tenant: str, id: str, *, expected_generation: int | None = None) -> bool:
        check_name("tenant", tenant)
        kept = self._documents.get((tenant, id))
        if kept is None or expected_generation not in {None, kept.generation}:
            return False
        del self._documents[tenant, id]
        return True
