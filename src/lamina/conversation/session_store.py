"""Sessions in a state store: opened on first use, one tenant, and, if bound to one, one owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from lamina.conversation.compaction import originals
from lamina.conversation.context_window import partners
from lamina.conversation.messages import check_same
from lamina.domain.message import Message
from lamina.domain.text import check_name
from lamina.domain.thread import Summary, Thread, ThreadEvent, ThreadKind, ThreadRef
from lamina.errors import Conflict, InvalidInput, InvalidType, MessageNotFound, ScopeError, ThreadNotFound
from lamina.ports.clock import Clock
from lamina.ports.state_store import StateStore

__all__ = ["SessionLocks", "SessionStore"]

_PAGE: Final = 500
_TRIES: Final = 5
_NEAR: Final = 1_000
"""How far from a tool call its results are looked for."""


class SessionStore:
    """What short-term memory does to a `StateStore`: every call checks that the session is the owner's."""

    def __init__(self, store: StateStore, clock: Clock, *, tenant: str, owner: str | None) -> None:
        self.state = store
        self.tenant = check_name("tenant", tenant)
        self.owner = None if owner is None else check_name("owner", owner)
        self._clock = clock
        self._is_open = False

    async def open(self) -> None:
        """Open the store, unless this has done so before."""
        if not self._is_open:
            await self.state.initialize()
            self._is_open = True

    async def close(self) -> None:
        """Let go of the store; the next call opens it anew."""
        self._is_open = False
        await self.state.close()

    def ref(self, session_id: str) -> ThreadRef:
        """What names the session."""
        return ThreadRef(self.tenant, check_name("session_id", session_id), ThreadKind.SESSION)

    async def head(self, session_id: str) -> Thread | None:
        """The session's head, None if there is none.

        Raises:
            ScopeError: it belongs to another owner.
        """
        await self.open()
        return self._checked(await self.state.get_thread(self.ref(session_id)))

    async def append(self, session_id: str, events: Sequence[ThreadEvent]) -> list[ThreadEvent]:
        """Add events at the end, and begin the session if there is none.

        Raises:
            Conflict: an id is that of a message which says something else; nothing was added.
        """
        ref = self.ref(session_id)
        given: dict[str, Message] = {}
        for event in events:
            check_same(given.setdefault(event.message.id, event.message), event.message)
        for _ in range(_TRIES):
            now = self._clock()
            if await self.head(session_id) is None:
                new = Thread(session_id, self.tenant, now, now, ThreadKind.SESSION, owner=self.owner)
                begun = await self.state.begin_thread(new, events, now=now)
                if begun is not None:
                    return begun
                continue  # begun by somebody else meanwhile, who may be another owner
            for kept in originals(await self.state.find_events(ref, list(given))):
                check_same(kept, given[kept.id])
            try:
                return await self.state.append(ref, events, now=now)
            except ThreadNotFound:  # deleted by somebody in between: it is begun anew
                continue
        raise Conflict(f"The session {session_id!r}", "is begun and deleted again and again meanwhile")

    async def live(self, head: Thread) -> list[ThreadEvent]:
        """The events that are shown in full, in order."""
        return await self.state.events(head.ref, after=head.folded_through)

    async def system(self, head: Thread) -> list[ThreadEvent]:
        """Events of the role system that a summary covers; they are shown all the same."""
        if not head.folded_through:
            return []
        return await self.state.system_events(head.ref, before=head.folded_through + 1)

    async def summaries(self, head: Thread, *, limit: int | None = None) -> list[Summary]:
        """The summaries that were ever current, newest first."""
        return await self.state.summaries(head.ref, limit=limit)

    async def pages(self, head: Thread, *, through: int | None = None) -> AsyncIterator[list[ThreadEvent]]:
        """All events up to an index, those that a summary covers as well, in order."""
        after = 0
        before = None if through is None else through + 1
        while page := await self.state.events(head.ref, after=after, before=before, limit=_PAGE):
            yield page
            after = page[-1].message.index

    async def find(self, head: Thread, name: str | int) -> ThreadEvent | None:
        """The event of this message id or index; `#12` is the index 12, unless a message has that id."""
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InvalidType("id", f"must be a message id or an index, not {type(name).__name__}", "Give one of them.")
        if isinstance(name, str):
            found = await self.state.find_events(head.ref, [check_name("id", name)])
            if found:
                return found[0]
            digits = name.strip().removeprefix("#")
            if not digits.isdecimal() or len(digits) > 10:  # noqa: PLR2004 - an index has 31 bits
                return None
            name = int(digits)
        if name < 1:
            raise InvalidInput("id", f"is {name}", "Indexes count from 1.")
        found = await self.state.events(head.ref, after=name - 1, before=name + 1)
        return found[0] if found else None

    async def find_or_raise(self, session_id: str, name: str | int) -> tuple[Thread, ThreadEvent]:
        """The event with its session's head.

        Raises:
            MessageNotFound: there is none.
        """
        head = await self.head(session_id)
        event = None if head is None else await self.find(head, name)
        if head is None or event is None:
            raise MessageNotFound(str(name))
        return head, event

    async def replace(self, head: Thread, new: ThreadEvent, old: ThreadEvent) -> None:
        """Put one event in the place of another.

        Raises:
            Conflict: it is no longer as it was read.
        """
        if not await self.state.replace_events(head.ref, [new], expected=[old]):
            raise Conflict(f"The message {old.message.id!r}", "was changed by somebody else")

    async def delete_with_partners(self, head: Thread, message: Message) -> int:
        """Delete the message; a tool call with its results, a result with its call. How many were deleted."""
        ids = {message.id}
        if message.tool_calls or message.tool_call_id is not None:
            near = await self.state.events(head.ref, after=max(0, message.index - _NEAR), before=message.index + _NEAR)
            ids.update(partners([event.message for event in near], message))
        return await self.state.delete_events(head.ref, sorted(ids))

    async def heads(self, limit: int, after: tuple[datetime, str] | None = None) -> list[Thread]:
        """The heads of sessions, newest activity first, behind this `updated_at` and id."""
        await self.open()
        return await self.state.list_threads(
            self.tenant, ThreadKind.SESSION, owner=self.owner, limit=limit, after=after
        )

    async def all_heads(self) -> list[Thread]:
        """The heads of all sessions, newest activity first."""
        heads: list[Thread] = []
        while page := await self.heads(_PAGE, (heads[-1].updated_at, heads[-1].id) if heads else None):
            heads += page
        return heads

    async def add_to_metadata(self, session_id: str, key: str, value: str, *, most: int) -> None:
        """Put a text to the end of a list in the head's metadata; of more than `most` the oldest go.

        Raises:
            Conflict: the head keeps changing.
        """
        for _ in range(_TRIES):
            head = await self.head(session_id)
            if head is None:
                return
            listed = [each for each in head.metadata.get(key, ()) if each != value]
            metadata = {**head.metadata, key: [*listed, value][-most:]}
            if await self.state.update_thread(
                head.ref, now=self._clock(), metadata=metadata, expected_revision=head.revision
            ):
                return
        raise Conflict(f"The session {session_id!r}", "keeps changing")

    def _checked(self, head: Thread | None) -> Thread | None:
        if head is not None and self.owner is not None and head.owner != self.owner:
            raise ScopeError(f"The session {head.id!r} belongs to another owner.")
        return head


class SessionLocks:
    """One at a time for each session, in each event loop; nothing is kept for sessions that nobody waits for."""

    def __init__(self) -> None:
        self._locks: dict[tuple[asyncio.AbstractEventLoop, str], tuple[asyncio.Lock, list[None]]] = {}

    @asynccontextmanager
    async def hold(self, session_id: str) -> AsyncIterator[None]:
        """Wait for the session's turn, and have it."""
        key = (asyncio.get_running_loop(), session_id)
        lock, users = self._locks.setdefault(key, (asyncio.Lock(), []))
        users.append(None)
        try:
            async with lock:
                yield
        finally:
            users.pop()
            if not users:
                self._locks.pop(key, None)
