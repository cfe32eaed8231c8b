"""Reading threads: what goes into a context, what is live, what ever was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from lamina.conversation.compaction import originals
from lamina.conversation.folding import warnings_of
from lamina.conversation.messages import check_same
from lamina.conversation.rolling import rendered
from lamina.conversation.setbacks import Setbacks, of_user
from lamina.conversation.summarizer import Summarizer
from lamina.conversation.tiers import Tier, tier_of
from lamina.conversation.window import view
from lamina.domain.message import Message
from lamina.domain.message_size import MESSAGE_OVERHEAD, message_tokens
from lamina.domain.text import check_name
from lamina.domain.thread import LiveThread, Thread, ThreadContext, ThreadEvent, ThreadRef, ThreadStatus
from lamina.errors import InvalidInput, MessageNotFound, ScopeError, ThreadNotFound
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings.tiers import ContextThresholds

__all__ = ["ThreadOriginals", "ThreadReader", "check_owner", "without_reserved"]

_ALL: Final = "all"
_NAMED: Final = 10


class ThreadReader:
    """The reading half of a conversation manager. A thread that has an owner is refused to any other one."""

    def __init__(
        self,
        store: StateStore,
        summarizer: Summarizer,
        counter: TokenCounter,
        thresholds: ContextThresholds | None = None,
    ) -> None:
        self._thresholds = thresholds
        self._store = store
        self._summarizer = summarizer
        self._counter = counter

    async def find(self, ref: ThreadRef, owner: str | None) -> Thread | None:
        """The head, or None.

        Raises:
            ScopeError: the thread is another owner's.
        """
        thread = await self._store.get_thread(ref)
        if thread is not None:
            check_owner(thread, owner)
        return thread

    async def heads(
        self,
        tenant: str,
        owner: str | None,
        status: ThreadStatus | str,
        *,
        limit: int,
        offset: int,
        after: tuple[datetime, str] | None,
    ) -> list[Thread]:
        """See `ConversationManager.list_threads`."""
        try:
            wanted = None if status == _ALL else ThreadStatus(status)
        except ValueError:
            remedy = f"Use one of: {', '.join(ThreadStatus)}, {_ALL}."
            raise InvalidInput("status", f"{status!r:.50} is unknown", remedy) from None
        found = await self._store.list_threads(
            tenant, owner=owner, status=wanted, limit=limit, offset=offset, after=after
        )
        return [without_reserved(thread) for thread in found]

    async def known(self, ref: ThreadRef, owner: str | None) -> Thread:
        """The head.

        Raises:
            ThreadNotFound: there is no such thread.
            ScopeError: the thread is another owner's.
        """
        thread = await self.find(ref, owner)
        if thread is None:
            raise ThreadNotFound(ref.id)
        return thread

    async def context(self, ref: ThreadRef, owner: str | None, most: int | None) -> ThreadContext:
        """See `ConversationManager.get_thread_context`."""
        now = await self._live(ref, owner)
        if now is None or now.head.status is ThreadStatus.ARCHIVED:
            return ThreadContext(thread_id=ref.id)
        live = now.events
        seen = view([event.message for event in live], most)
        events = [*now.system, *(live[place] for place in seen.shown)]
        texts = [] if now.summary is None else [rendered(now.summary)]
        summary = await self._summary(texts, [live[place] for place in seen.covered])
        tokens = self._tokens(summary, events)
        return ThreadContext(
            summary=summary,
            messages=[event.message for event in events],
            thread_id=ref.id,
            tokens=tokens,
            warnings=[
                *warnings_of(Setbacks.read(now.head.metadata)),
                *_left_out([*now.system.unreadable, *live.unreadable]),
                *self._over_budget(tokens),
            ],
        )

    async def thread(self, ref: ThreadRef, owner: str | None) -> Thread | None:
        """See `ConversationManager.retrieve`."""
        now = await self._live(ref, owner)
        if now is None:
            return None
        summaries = [] if now.summary is None else [now.summary]
        return without_reserved(now.head).replace(messages=[event.message for event in now.events], summaries=summaries)

    async def history(self, thread: Thread, offset: int, limit: int | None) -> list[Message]:
        """See `ConversationManager.history`. Messages of a thread are never deleted singly, so indexes have no gap."""
        return originals(await self._store.events(thread.ref, after=offset, limit=limit))

    async def original(self, thread: Thread, reference: str | int) -> Message:
        """See `ConversationManager.expand`."""
        found: list[ThreadEvent] = []
        if isinstance(reference, bool) or not isinstance(reference, int):
            found = await self._store.find_events(thread.ref, [check_name("reference", reference)])
        by_index = re.fullmatch(r"#?(\d{1,10})", str(reference).strip())
        if not found and by_index is not None and (index := int(by_index[1])):
            found = await self._store.events(thread.ref, after=index - 1, before=index + 1)
        if not found:
            raise MessageNotFound(str(reference))
        return originals(found)[0]

    async def check_ids(self, ref: ThreadRef, events: Sequence[ThreadEvent], named: set[str]) -> None:
        """Refuse an id that is taken by a message which says something else, before anything is written.

        Only the `named`, which callers gave, are looked up: a new one is nobody else's.

        Raises:
            Conflict: it is.
        """
        given = {event.message.id: event.message for event in events if event.message.id in named}
        for kept in await self._store.find_events(ref, list(given)) if given else ():
            check_same(originals([kept])[0], given[kept.message.id])

    async def _live(self, ref: ThreadRef, owner: str | None) -> LiveThread | None:
        now = await self._store.live(ref)
        if now is not None:
            check_owner(now.head, owner)
        return now

    def _over_budget(self, tokens: int) -> list[str]:
        if self._thresholds is None or tier_of(tokens, self._thresholds) is not Tier.SUMMARIZATION:
            return []
        limit = int(self._thresholds.summarize_from)
        return [f"The thread has {tokens} tokens, over its budget of {limit}: what stays in full is that large."]

    async def _summary(self, texts: list[str], covered: Sequence[ThreadEvent]) -> str | None:
        if covered:
            texts = [*texts, await self._summarizer.cover(originals(covered))]
        return "\n\n".join(texts) if texts else None

    def _tokens(self, summary: str | None, events: Sequence[ThreadEvent]) -> int:
        """By the counts that were kept, where they are of the counter in force."""
        count, name = self._counter.count, self._counter.name
        size = 0 if summary is None else count(summary) + MESSAGE_OVERHEAD
        return size + sum(
            event.tokens if event.counter == name else message_tokens(event.message, count) for event in events
        )


class ThreadOriginals:
    """The originals of one owner's threads, as an `expand` tool asks for them."""

    def __init__(self, reader: ThreadReader, tenant: str, owner: str | None) -> None:
        self._reader = reader
        self._tenant = tenant
        self._owner = owner

    async def expand(self, reference: str | int, session_id: str | None = None) -> Message:
        """The original of the message; `session_id` is the thread's."""
        ref = ThreadRef(self._tenant, check_name("thread_id", session_id))
        return await self._reader.original(await self._reader.known(ref, self._owner), reference)


def check_owner(thread: Thread, owner: str | None) -> None:
    """Refuse a thread that has an owner to any other one.

    Raises:
        ScopeError: it is another owner's.
    """
    if owner is not None:
        check_name("owner", owner)
        if thread.owner is not None and thread.owner != owner:
            raise ScopeError(f"The thread {thread.id!r} belongs to another owner.")


def without_reserved(thread: Thread) -> Thread:
    """The thread with the user's own metadata alone."""
    return thread.replace(metadata=of_user(thread.metadata))


def _left_out(indexes: Sequence[int]) -> list[str]:
    """That messages of these indexes are missing, if some are."""
    if not indexes:
        return []
    named = ", ".join(f"#{index}" for index in indexes[:_NAMED]) + (" and more" if len(indexes) > _NAMED else "")
    return [f"messages cannot be read and were left out ({named}); `lamina check` says what is wrong"]
