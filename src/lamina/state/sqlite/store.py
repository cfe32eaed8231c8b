"""The state store: each method of the port as one job for the threads that own the connections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from lamina.databases.sqlite.components import Component, Step
from lamina.domain.document import Document
from lamina.domain.listing import check_document_listing, check_thread_listing
from lamina.domain.storable import (
    check_change,
    check_delete,
    check_expected,
    check_paging,
    check_range,
    check_ref,
    check_update,
    possible_ids,
    storable_document,
    storable_events,
    storable_fold,
    storable_metadata,
    storable_replacement,
    storable_thread,
)
from lamina.domain.text import check_name
from lamina.domain.thread import Events, LiveThread, Summary, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus
from lamina.domain.validation import check_instant
from lamina.errors import StoreDamaged
from lamina.ports.state_store import StateStore
from lamina.state.sqlite import documents, messages, summaries, threads
from lamina.state.sqlite.checking import find_contradictions
from lamina.state.sqlite.joined_store import JoinedStore
from lamina.state.sqlite.repairing import repair_state
from lamina.state.sqlite.tables import STEPS, state_tables

__all__ = ["SqliteStateStore"]


class SqliteStateStore(JoinedStore, StateStore):
    """Conversations, their summaries and the heads of documents, in one SQLite file.

    Args:
        path: The file, made with its folders if there is none; a relative one is taken from where
            the process is now. `:memory:` keeps all in this process's memory, until `close`.
        database: In place of `path` and what follows: a database that others use too, such as
            `SqliteAdapter`. It stays open as long as one of its users does.
        busy_timeout: How long, in seconds, a call waits for another process that is writing.
        readers: How many threads read beside the one that writes; with 0 that one does both.
        backup: Whether the file is copied beside itself before a newer Lamina changes its layout.
    """

    _steps: ClassVar[tuple[Step, ...]] = STEPS

    def _component(self) -> Component:
        return state_tables(self._steps)

    async def create_thread(self, thread: Thread) -> Thread:
        checked = storable_thread(thread)
        return await self._write(lambda connection: threads.create_thread(connection, checked))

    async def begin_thread(
        self, thread: Thread, events: Sequence[ThreadEvent], *, now: datetime
    ) -> list[ThreadEvent] | None:
        head = storable_thread(thread)
        check_change(thread.ref, now)
        checked = storable_events(events)
        return await self._write(lambda connection: messages.begin_thread(connection, head, checked, now))

    async def get_thread(self, ref: ThreadRef) -> Thread | None:
        check_ref(ref)
        return await self._read(lambda connection: threads.get_thread(connection, ref))

    async def list_threads(
        self,
        tenant: str,
        kind: ThreadKind = ThreadKind.THREAD,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        limit: int = 100,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
    ) -> list[Thread]:
        check_thread_listing(tenant, kind, owner=owner, status=status, limit=limit, offset=offset, after=after)
        return await self._read(
            lambda connection: threads.list_threads(
                connection, tenant, kind, owner=owner, status=status, limit=limit, offset=offset, after=after
            )
        )

    async def update_thread(
        self,
        ref: ThreadRef,
        *,
        now: datetime,
        status: ThreadStatus | None = None,
        metadata: dict[str, Any] | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        check_update(ref, now, status=status, expected_revision=expected_revision)
        checked = None if metadata is None else storable_metadata(metadata)
        return await self._write(
            lambda connection: threads.update_thread(
                connection, ref, now=now, status=status, metadata=checked, expected_revision=expected_revision
            )
        )

    async def delete_thread(
        self, ref: ThreadRef, *, expected_revision: int | None = None, expected_created_at: datetime | None = None
    ) -> bool:
        check_delete(ref, expected_revision, expected_created_at)
        return await self._write(
            lambda connection: threads.delete_thread(connection, ref, expected_revision, expected_created_at)
        )

    async def append(self, ref: ThreadRef, events: Sequence[ThreadEvent], *, now: datetime) -> list[ThreadEvent]:
        check_change(ref, now)
        checked = storable_events(events)
        return await self._write(lambda connection: messages.append(connection, ref, checked, now))

    async def events(
        self,
        ref: ThreadRef,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> Events:
        check_range(ref, after, before, limit)
        return await self._read(
            lambda connection: messages.events(connection, ref, after=after, before=before, limit=limit, newest=newest)
        )

    async def find_events(self, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
        check_ref(ref)
        possible = possible_ids(ids)
        return await self._read(lambda connection: messages.find_events(connection, ref, possible))

    async def system_events(self, ref: ThreadRef, *, before: int) -> Events:
        check_range(ref, before, before, None)
        return await self._read(lambda connection: messages.system_events(connection, ref, before))

    async def replace_events(
        self, ref: ThreadRef, events: Sequence[ThreadEvent], *, expected: Sequence[ThreadEvent]
    ) -> bool:
        check_ref(ref)
        new, old = storable_replacement(events, expected)
        return await self._write(lambda connection: messages.replace_events(connection, ref, new, old))

    async def delete_events(self, ref: ThreadRef, ids: Sequence[str]) -> int:
        check_ref(ref)
        possible = possible_ids(ids)
        return await self._write(lambda connection: messages.delete_events(connection, ref, possible))

    async def live_size(self, ref: ThreadRef) -> tuple[int, int]:
        check_ref(ref)
        return await self._read(lambda connection: messages.live_size(connection, ref))

    async def live(self, ref: ThreadRef, *, with_events: bool = True) -> LiveThread | None:
        check_ref(ref)
        return await self._read(lambda connection: summaries.live(connection, ref, with_events=with_events))

    async def fold(
        self,
        ref: ThreadRef,
        summary: Summary,
        *,
        expected_folded_through: int,
        now: datetime,
        expected_created_at: datetime | None = None,
    ) -> bool:
        check_change(ref, now)
        checked = storable_fold(summary, expected_folded_through)
        if expected_created_at is not None:
            check_instant("expected_created_at", expected_created_at)
        return await self._write(
            lambda connection: summaries.fold(
                connection,
                ref,
                checked,
                expected_folded_through=expected_folded_through,
                now=now,
                expected_created_at=expected_created_at,
            )
        )

    async def summaries(self, ref: ThreadRef, *, limit: int | None = None) -> list[Summary]:
        check_ref(ref)
        check_paging(limit)
        return await self._read(lambda connection: summaries.summaries(connection, ref, limit))

    async def unfold(self, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
        check_change(ref, now)
        return await self._write(
            lambda connection: summaries.unfold(
                connection, ref, expected_folded_through=expected_folded_through, now=now
            )
        )

    async def save_document(self, document: Document, *, expected_generation: int | None) -> bool:
        checked = storable_document(document)
        check_expected("expected_generation", expected_generation)
        return await self._write(lambda connection: documents.save_document(connection, checked, expected_generation))

    async def get_documents(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        check_name("tenant", tenant)
        possible = possible_ids(ids)
        return await self._read(lambda connection: documents.get_documents(connection, tenant, possible))

    async def find_documents(
        self,
        tenant: str,
        *,
        source: str | None = None,
        owner: str | None = None,
        include_shared: bool = True,
        limit: int | None = None,
        offset: int = 0,
        after: tuple[str, str] | None = None,
    ) -> list[Document]:
        check_document_listing(tenant, source=source, owner=owner, limit=limit, offset=offset, after=after)
        return await self._read(
            lambda connection: documents.find_documents(
                connection,
                tenant,
                source=source,
                owner=owner,
                include_shared=include_shared,
                limit=limit,
                offset=offset,
                after=after,
            )
        )

    async def delete_document(self, tenant: str, id: str, *, expected_generation: int | None = None) -> bool:
        check_name("tenant", tenant)
        check_name("id", id)
        check_expected("expected_generation", expected_generation)
        return await self._write(
            lambda connection: documents.delete_document(connection, tenant, id, expected_generation)
        )

    async def check(self) -> list[str]:
        """Look the state over; what is wrong, in plain words. Empty if it is sound. Reads everything."""
        try:
            return await self._read(find_contradictions)
        except StoreDamaged as error:
            return [error.problem]

    async def repair(self) -> list[str]:
        """Mend what the rows themselves tell, such as what is counted; what was done. No row is dropped."""
        return await self._write(repair_state)
