"""The state store: each method of the port as one job for the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from lamina.databases.postgres.schema import Session
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
from lamina.domain.thread import Events, Summary, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus
from lamina.domain.validation import check_instant
from lamina.ports.state_store import StateStore
from lamina.state.postgres import checking, documents, messages, summaries, threads
from lamina.state.postgres.joined_store import JoinedStore
from lamina.state.postgres.rows import FRAGMENTS

__all__ = ["PostgresStateStore"]

T = TypeVar("T")

STEPS = ("001_tables.sql",)


class PostgresStateStore(JoinedStore, StateStore):
    """Conversations, their summaries and the heads of documents, in one schema of a PostgreSQL database.

    Args:
        url: The database, as `PostgresDatabase` takes it.
        database: In place of `url` and of the limits: a database that others use too. It stays open as long as
            one of its users does.
        schema: Holds the tables; it is made if there is none.
        connections: How many connections may be open at the same time; calls beyond that wait.
        connect_timeout: How long, in seconds, to wait for the server when one is made.
        statement_timeout: How long, in seconds, a statement may take, waiting for locks included.
    """

    _tables = "state"
    _fragments = FRAGMENTS
    _steps: ClassVar[Sequence[str]] = STEPS

    async def create_thread(self, thread: Thread) -> Thread:
        checked = storable_thread(thread)
        return await self._write(lambda session: threads.create_thread(session, checked), thread.ref)

    async def begin_thread(
        self, thread: Thread, events: Sequence[ThreadEvent], *, now: datetime
    ) -> list[ThreadEvent] | None:
        head = storable_thread(thread)
        check_change(thread.ref, now)
        checked = storable_events(events)
        return await self._write(lambda session: messages.begin_thread(session, head, checked, now), thread.ref)

    async def get_thread(self, ref: ThreadRef) -> Thread | None:
        check_ref(ref)
        return await self._read(lambda session: threads.get_thread(session, ref))

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
            lambda session: threads.list_threads(
                session, tenant, kind, owner=owner, status=status, limit=limit, offset=offset, after=after
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
        stored = None if metadata is None else storable_metadata(metadata)
        return await self._write(
            lambda session: threads.update_thread(
                session, ref, now=now, status=status, metadata=stored, expected_revision=expected_revision
            ),
            ref,
        )

    async def delete_thread(
        self, ref: ThreadRef, *, expected_revision: int | None = None, expected_created_at: datetime | None = None
    ) -> bool:
        check_delete(ref, expected_revision, expected_created_at)
        return await self._write(
            lambda session: threads.delete_thread(session, ref, expected_revision, expected_created_at), ref
        )

    async def append(self, ref: ThreadRef, events: Sequence[ThreadEvent], *, now: datetime) -> list[ThreadEvent]:
        check_change(ref, now)
        checked = storable_events(events)
        return await self._write(lambda session: messages.append(session, ref, checked, now), ref)

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
            lambda session: messages.events(session, ref, after=after, before=before, limit=limit, newest=newest)
        )

    async def find_events(self, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
        check_ref(ref)
        possible = possible_ids(ids)
        return await self._read(lambda session: messages.find_events(session, ref, possible))

    async def system_events(self, ref: ThreadRef, *, before: int) -> Events:
        check_range(ref, before, before, None)
        return await self._read(lambda session: messages.system_events(session, ref, before))

    async def replace_events(
        self, ref: ThreadRef, events: Sequence[ThreadEvent], *, expected: Sequence[ThreadEvent]
    ) -> bool:
        check_ref(ref)
        new, old = storable_replacement(events, expected)
        return await self._write(lambda session: messages.replace_events(session, ref, new, old), ref)

    async def delete_events(self, ref: ThreadRef, ids: Sequence[str]) -> int:
        check_ref(ref)
        possible = possible_ids(ids)
        return await self._write(lambda session: messages.delete_events(session, ref, possible), ref)

    async def live_size(self, ref: ThreadRef) -> tuple[int, int]:
        check_ref(ref)
        return await self._read(lambda session: messages.live_size(session, ref))

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
            lambda session: summaries.fold(
                session,
                ref,
                checked,
                expected_folded_through=expected_folded_through,
                now=now,
                expected_created_at=expected_created_at,
            ),
            ref,
        )

    async def summaries(self, ref: ThreadRef, *, limit: int | None = None) -> list[Summary]:
        check_ref(ref)
        check_paging(limit)
        return await self._read(lambda session: summaries.summaries(session, ref, limit))

    async def unfold(self, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
        check_change(ref, now)
        return await self._write(
            lambda session: summaries.unfold(session, ref, expected_folded_through=expected_folded_through, now=now),
            ref,
        )

    async def save_document(self, document: Document, *, expected_generation: int | None) -> bool:
        checked = storable_document(document)
        check_expected("expected_generation", expected_generation)
        return await self._write(lambda session: documents.save_document(session, checked, expected_generation))

    async def get_documents(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        check_name("tenant", tenant)
        possible = possible_ids(ids)
        return await self._read(lambda session: documents.get_documents(session, tenant, possible))

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
            lambda session: documents.find_documents(
                session,
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
        return await self._write(lambda session: documents.delete_document(session, tenant, id, expected_generation))

    async def check(self) -> list[str]:
        """Look the state of all tenants over; what is wrong, in plain words. Empty if it is sound. Reads everything."""
        return await self._read(checking.find_contradictions)

    async def repair(self) -> list[str]:
        """Mend what the rows themselves tell, such as what is counted; what was done. No row is dropped."""
        return await self._write(checking.repair_state)

    async def _read(self, work: Callable[[Session], T]) -> T:
        return await self._opened().read(work)

    async def _write(self, work: Callable[[Session], T], ref: ThreadRef | None = None) -> T:
        return await self._opened().write(work, ref)
