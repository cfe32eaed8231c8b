"""What keeps threads, messages, summaries and the heads of documents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Self

from lamina.domain.document import Document
from lamina.domain.thread import Events, LiveThread, Summary, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus

__all__ = ["StateStore"]


class StateStore(ABC):
    """Relational state, the same on every backend. What a method returns from is durable.

    Every method is atomic, and safe beside any other, from other tasks, threads and processes too.
    Order is by index, never by the clock; texts are ordered by code point. What is returned is the
    caller's own. A tenant is part of every key and compared for equality, as every id is. Texts are
    kept clean (`lamina.domain.text.clean`), and returned so.

    Raises:
        InvalidInput: an argument cannot be taken (see `lamina.domain.storable`); nothing was written.
        InvalidType: likewise, for its type.
        AdapterUnavailable: it cannot be reached now; trying again may help.
        StoreDamaged: its data cannot be read as ours.
        AdapterError: anything else that went wrong in it.
    """

    name: ClassVar[str]

    @abstractmethod
    async def initialize(self) -> None:
        """Open it, and bring its layout up to date. Idempotent."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it. Idempotent."""

    async def __aenter__(self) -> Self:
        """Open it."""
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self.close()

    # Threads and sessions.

    @abstractmethod
    async def create_thread(self, thread: Thread) -> Thread:
        """The thread of this name as it is kept: the given one if there was none, else the one that was there.

        A new one begins empty, unfolded and with revision 1, whatever the given one says.
        """

    @abstractmethod
    async def begin_thread(
        self, thread: Thread, events: Sequence[ThreadEvent], *, now: datetime
    ) -> list[ThreadEvent] | None:
        """Make a thread with its first messages in one step, so that it is never seen without them.

        As `create_thread` and `append` together; None, and nothing is done, if there is a thread of this name already.
        """

    @abstractmethod
    async def get_thread(self, ref: ThreadRef) -> Thread | None:
        """The head, or None."""

    @abstractmethod
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
        """Heads, newest activity first, then by id. With an owner: that owner's, not those of nobody.

        `after` goes on behind this `updated_at` and id, whether or not there still is such a thread: pages that are
        taken so do not move when threads are made or deleted meanwhile.
        """

    @abstractmethod
    async def update_thread(
        self,
        ref: ThreadRef,
        *,
        now: datetime,
        status: ThreadStatus | None = None,
        metadata: dict[str, Any] | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        """Change the head; None leaves a field. False if there is none, or it has another revision."""

    @abstractmethod
    async def delete_thread(
        self, ref: ThreadRef, *, expected_revision: int | None = None, expected_created_at: datetime | None = None
    ) -> bool:
        """Delete the thread with all its messages and summaries.

        False, with nothing changed, if there is none, it has another revision than the expected one, or was made at
        another instant: a thread of this name that was deleted meanwhile and begun anew.
        """

    # Messages.

    @abstractmethod
    async def append(self, ref: ThreadRef, events: Sequence[ThreadEvent], *, now: datetime) -> list[ThreadEvent]:
        """Add messages at the end, all or none, and return them with their indexes, in order.

        Every message needs an id. One whose id the thread has already is not added a second time; the kept one
        is returned in its place. A message without `parent` gets the id of the one before it, one without
        `timestamp` gets `now`; its `index` is given here, whatever it was. If none was added, nothing changes.

        Raises:
            ThreadNotFound: there is no such thread.
            ThreadArchivedError: it is archived.
        """

    @abstractmethod
    async def events(
        self,
        ref: ThreadRef,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> Events:
        """Messages with `after < index < before`, in order; at most `limit` of them, the oldest or the newest.

        Empty if there is no such thread. A message that cannot be read is left out, counts towards no limit, and is
        told by its index.
        """

    @abstractmethod
    async def find_events(self, ref: ThreadRef, ids: Sequence[str]) -> list[ThreadEvent]:
        """The messages of these ids that there are, in order of index."""

    @abstractmethod
    async def system_events(self, ref: ThreadRef, *, before: int) -> Events:
        """The messages of the role system with an index below `before`, in order; as `events`."""

    @abstractmethod
    async def replace_events(
        self, ref: ThreadRef, events: Sequence[ThreadEvent], *, expected: Sequence[ThreadEvent]
    ) -> bool:
        """Put these in the place of the kept ones of the same index and id, all or none.

        `expected` are the events as they were read. False, with nothing changed, if one of them is no longer
        so, or one of `events` has no counterpart to replace.
        """

    @abstractmethod
    async def delete_events(self, ref: ThreadRef, ids: Sequence[str]) -> int:
        """Delete messages for good; how many there were. Indexes are not given again."""

    @abstractmethod
    async def live_size(self, ref: ThreadRef) -> tuple[int, int]:
        """How many live messages the thread has, and the sum of their `tokens`; those of the role system count."""

    async def live(self, ref: ThreadRef, *, with_events: bool = True) -> LiveThread | None:
        """The thread as it stands; None if there is none. `with_events` off leaves the live messages out.

        As a rule one look at the store. This body makes of it several, between which the thread may change: then the
        summary, which says what is live, is newer than the head.
        """
        head = await self.get_thread(ref)
        if head is None:
            return None
        current = next(iter(await self.summaries(ref, limit=1)), None)
        folded = 0 if current is None else current.to_index
        count, tokens = await self.live_size(ref)
        return LiveThread(
            head=head,
            summary=current,
            system=await self.system_events(ref, before=folded + 1) if folded else Events(),
            events=await self.events(ref, after=folded) if with_events else Events(),
            count=count,
            tokens=tokens,
        )

    # Summaries.

    @abstractmethod
    async def fold(
        self,
        ref: ThreadRef,
        summary: Summary,
        *,
        expected_folded_through: int,
        now: datetime,
        expected_created_at: datetime | None = None,
    ) -> bool:
        """Make this the current summary, and the messages up to its `to_index` no longer live, in one step.

        The messages stay, and so does the former summary. False, with nothing changed, if the thread is not
        folded through exactly the expected index, or there is none, or it was made at another instant than
        the expected one: a thread of this name that was deleted meanwhile and begun anew.

        Raises:
            InvalidInput: the summary ends before the expected index, or after the newest message.
        """

    @abstractmethod
    async def summaries(self, ref: ThreadRef, *, limit: int | None = None) -> list[Summary]:
        """All summaries that were ever current, newest first."""

    @abstractmethod
    async def unfold(self, ref: ThreadRef, *, expected_folded_through: int, now: datetime) -> bool:
        """Undo the last fold: drop the current summary, and go back to the one before.

        False, with nothing changed, if the thread is not folded through exactly the expected index, or nothing is
        folded.
        """

    # Heads of documents.

    @abstractmethod
    async def save_document(self, document: Document, *, expected_generation: int | None) -> bool:
        """Insert (expected None) or replace the head; False, with nothing changed, if another generation is kept.

        Where None is expected, False means that the id is taken.
        """

    @abstractmethod
    async def get_documents(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        """The heads of these ids that there are, by id."""

    @abstractmethod
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
        """Heads, by source and then id. With an owner: that owner's, and the shared ones unless told otherwise.

        Without an owner: everybody's; with `include_shared` off then those that have an owner. `after` goes on
        behind this source and id, as in `list_threads`.
        """

    @abstractmethod
    async def delete_document(self, tenant: str, id: str, *, expected_generation: int | None = None) -> bool:
        """Delete the head; False if there is none, or it has another generation."""
