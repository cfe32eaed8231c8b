"""Short-term memory: the messages of sessions, kept at a size that a model answers well at."""

from __future__ import annotations

import asyncio
import builtins
import copy
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from lamina.conversation.callbacks import BeforeSummarize, Labeler, MemorySummarizer, check_callbacks
from lamina.conversation.compaction import compact_event, complete_compaction, decompress_event, is_compacted
from lamina.conversation.context_window import fit_messages, without_orphans
from lamina.conversation.labels import label_of
from lamina.conversation.memory_events import (
    MemoryEvent,
    MemoryEventInput,
    changed_event,
    named_session,
    read_event,
    session_of,
)
from lamina.conversation.messages import new_message_id
from lamina.conversation.session_reading import SessionReader
from lamina.conversation.session_store import SessionLocks, SessionStore
from lamina.conversation.structured import StructuredSummary
from lamina.conversation.structured_summarizer import summarize_by_model, summarize_by_rules
from lamina.conversation.tiering import PINNED_KEY, TierManager, TierSteps, size_of
from lamina.conversation.tiers import ContextReport, Tier, tier_of
from lamina.domain.memory import DEFAULT_NAME, UNSET, Unset
from lamina.domain.message import ContentPart, Message
from lamina.domain.message_size import message_tokens
from lamina.domain.thread import Summary, Thread, ThreadEvent, ThreadRef
from lamina.domain.validation import check_whole_number
from lamina.errors import Conflict, ContextOverflowError, InvalidInput, InvalidType
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.language_model import LanguageModel
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import EstimateCounter
from lamina.settings.tiers import ContextThresholds
from lamina.state.sqlite import SqliteStateStore

__all__ = ["BaseMemory"]

log = logging.getLogger(__name__)

_MOST_PINNED = 1_000


class BaseMemory(SessionReader):
    """Messages of sessions, managed by size: in full, then as references, then behind a structured summary.

    Use it as it is, or derive from it and override `compact_event`, `summarize`, `store_summary` or
    `clear_summarized_events`. Nothing needs to be opened. Calls may run side by side. Where a session id is
    left out, it is taken from the event's state (`session_id` or `sessionId`), else it is `default`.

    Args:
        store: What keeps the sessions; None: this process's memory.
        tenant: Whose sessions these are; those of other tenants do not exist here.
        owner: If given, only this owner's sessions can be read and written.
        summarizer: Makes the summary in place of `llm`.
        llm: A model that fills in the summary. Without one and without `summarizer`, sentences and facts are
            picked by rules.
        labeler: Says what a compacted message holds, in place of the built-in rules.
        thresholds: When what is done; a mapping may leave fields out.
        enable_context_management: Whether each `add` manages; if not, call `manage_context`.
        counter: Counts tokens; None: an estimate.
        compaction_filter: Which events may be compacted; None: all but system messages.
        on_before_summarize: Gets a session's id and the events that are about to be replaced; if it raises,
            they are not.
        clock: What says the time.
        new_id: Makes ids of messages that come without one.
        emit: Told of each compaction and summary.
        secrets: The policy about them: `off`, `flag`, `mask` or `refuse`.
    """

    def __init__(
        self,
        store: StateStore | None = None,
        *,
        tenant: str = DEFAULT_NAME,
        owner: str | None = None,
        summarizer: MemorySummarizer | None = None,
        llm: LanguageModel | None = None,
        labeler: Labeler | None = None,
        thresholds: ContextThresholds | Mapping[str, Any] | None = None,
        enable_context_management: bool = True,
        counter: TokenCounter | None = None,
        compaction_filter: Callable[[MemoryEvent], bool] | None = None,
        on_before_summarize: BeforeSummarize | None = None,
        clock: Clock = utc_now,
        new_id: IdFactory = new_message_id,
        emit: Emit | None = None,
        secrets: SecretScreen | str = "off",
    ) -> None:
        check_callbacks(summarizer=summarizer, labeler=labeler)
        check_callbacks(compaction_filter=compaction_filter, on_before_summarize=on_before_summarize)
        self.thresholds = ContextThresholds.of(thresholds)
        self.counter = EstimateCounter() if counter is None else counter
        self._sessions = SessionStore(store or SqliteStateStore(":memory:"), clock, tenant=tenant, owner=owner)
        self._summarizer = summarizer
        self._llm = llm
        self._labeler = labeler
        self._filter = compaction_filter
        self._is_managed = enable_context_management
        self._on_before_summarize = on_before_summarize
        self._clock = clock
        self._new_id = new_id
        self._emit = emit
        self._secrets = SecretScreen.of(secrets, tenant=tenant, clock=clock, emit=emit)
        self._locks = SessionLocks()
        self._waiting: dict[str, tuple[Thread, Summary]] = {}
        steps = TierSteps(self._compact, self._summarize, self._keep, before=self._before)
        self._tiers = TierManager(self._sessions.state, self.thresholds, self.counter, clock, steps=steps)

    async def __aenter__(self) -> Self:
        await self._sessions.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the store. Idempotent."""
        await self._sessions.close()

    # Writing.

    async def add(self, event: MemoryEventInput, session_id: str | None = None) -> MemoryEvent:
        """Add an event at the end of its session, and return it as it is kept; then manage, if that is on.

        An id and a time are given if there are none. An event that is kept already, by its message's id, is not
        added again: the kept one is returned. Once this returns, the event is kept, whatever failed in managing;
        that is logged, and tried again at the next `add`.

        Raises:
            InvalidInput: a field has a value that cannot be taken; nothing was written. InvalidType: a type.
            ScopeError: the session belongs to another owner.
            Conflict: another message has the id; nothing was written.
        """
        return (await self.add_list([event], session_id))[0]

    async def add_list(
        self, events: Iterable[MemoryEventInput], session_id: str | None = None
    ) -> builtins.list[MemoryEvent]:
        """Add events in order, those of one session all or none, and manage once at the end."""
        if isinstance(events, str | Mapping) or not isinstance(events, Iterable):
            raise InvalidType("events", "must be a list", "Use add for a single event.")
        now = self._clock()
        read = [read_event(event, self.counter, self._new_id, now, secrets=self._secrets) for event in events]
        by_session: dict[str, list[int]] = {}
        for place, event in enumerate(read):
            by_session.setdefault(session_of(event, session_id), []).append(place)
        added = [*read]
        for session, places in by_session.items():
            kept = await self._sessions.append(session, [read[place] for place in places])
            for place, event in zip(places, kept, strict=True):
                added[place] = event
        if self._is_managed:
            for session in by_session:
                await self._manage_after_adding(session)
        return added

    async def update(
        self,
        id: str | int,
        session_id: str | None = None,
        *,
        content: str | builtins.list[ContentPart] | Unset = UNSET,
        state: Mapping[str, Any] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
    ) -> MemoryEvent:
        """Change an event's content, state or metadata, and return it.

        New content is in full, also where a reference stood. `state` takes the place of all state but the
        record of a compaction.

        Raises:
            MessageNotFound: the session has no such message.
            Conflict: a summary covers the message already, or somebody else changed it.
        """
        session = named_session(session_id)
        head, old = await self._sessions.find_or_raise(session, id)
        if old.message.index <= head.folded_through:
            raise Conflict(f"The message {old.message.id!r}", "is covered by a summary already", "Add a new message.")
        secrets, counter = self._secrets, self.counter
        new = changed_event(old, content=content, state=state, metadata=metadata, counter=counter, secrets=secrets)
        await self._sessions.replace(head, new, old)
        return new

    async def delete(self, id: str | int, session_id: str | None = None) -> int:
        """Delete the message of this id or index for good, and return how many were deleted; 0 if there is none.

        A tool call goes with its results, and a result with its call, for neither can be sent alone. What a
        summary says of a message that it covers stays in it: use `clear` to leave no trace.
        """
        session = named_session(session_id)
        async with self._locks.hold(session):
            head = await self._sessions.head(session)
            event = None if head is None else await self._sessions.find(head, id)
            if head is None or event is None:
                return 0
            return await self._sessions.delete_with_partners(head, event.message)

    async def clear(self, session_id: str | None = None) -> int:
        """Delete a session with its archive and summaries, or, without an id, all sessions; how many there were."""
        if session_id is not None:
            heads = [head for head in [await self._sessions.head(session_id)] if head is not None]
        else:
            heads = await self._sessions.all_heads()
        cleared = 0
        for head in heads:
            self._tiers.forget(head.ref)
            cleared += await self._sessions.state.delete_thread(head.ref, expected_created_at=head.created_at)
        return cleared

    # Size.

    async def tier(self, session_id: str | None = None) -> Tier:
        """In which tier the session is now."""
        head = await self._sessions.head(named_session(session_id))
        size = None if head is None else await size_of(self._sessions.state, head.ref)
        return Tier.NORMAL if size is None else tier_of(size.tokens, self.thresholds)

    async def manage_context(self, session_id: str | None = None) -> ContextReport:
        """Compact and summarise as the session's size asks for; nothing, if it is small.

        What a summariser, a labeller or a model raised is in the report's warnings; the messages stay then.

        Raises:
            AdapterError: the store failed; each of its changes is whole or was not made.
        """
        return await self._manage(named_session(session_id), is_asked_for=True)

    async def get_context(
        self, session_id: str | None = None, *, max_tokens: int | None = None
    ) -> builtins.list[Message]:
        """What to send to a model: the summary and system messages first, then the live messages in order.

        With `max_tokens`, the newest that fit; a tool call and its results are never parted, and messages of
        the role system never left out. A tool result whose call is gone is quoted as text.

        Raises:
            ContextOverflowError: it is above `hard_limit`, after it was managed; or the messages of the role
                system alone are above `max_tokens`.
        """
        session = named_session(session_id)
        if max_tokens is not None:
            check_whole_number("max_tokens", max_tokens, 1, 2**40)
        shown = await self.list(session_id=session)
        if max_tokens is None and _tokens(shown) > self.thresholds.hard_limit:
            await self._manage(session, is_asked_for=True)
            shown = await self.list(session_id=session)
            if (tokens := _tokens(shown)) > self.thresholds.hard_limit:
                raise ContextOverflowError(tokens, self.thresholds.hard_limit)
        messages = without_orphans([event.message for event in shown])
        return messages if max_tokens is None else fit_messages(messages, max_tokens, self.counter.count)

    async def restore(self, session_id: str, message_id: str | int) -> MemoryEvent:
        """Put a compacted message back in full, and return it; it is not compacted again.

        Raises:
            MessageNotFound: the session has no such message.
            Conflict: somebody else changed it.
        """
        head, event = await self._sessions.find_or_raise(session_id, message_id)
        if not is_compacted(event):
            return event
        restored = decompress_event(event, count=self.counter.count).replace(counter=self.counter.name)
        await self._sessions.add_to_metadata(session_id, PINNED_KEY, event.message.id, most=_MOST_PINNED)
        await self._sessions.replace(head, restored, event)
        return restored

    # What a subclass may override.

    async def compact_event(self, event: MemoryEvent) -> MemoryEvent:
        """The event with a short reference in place of its content; it may be changed in place.

        What an override leaves out of `state["__compaction__"]` is filled in, the original content
        always. Only content and state of what is returned count.
        """
        if self._labeler is None:
            label = label_of(event.message, message_tokens(event.message, self.counter.count))
        else:
            label = await _awaited(self._labeler(event))
        return self.compact_with(event, label=label)

    def compact_with(self, event: MemoryEvent, *, label: str, strategy: str = "reference") -> MemoryEvent:
        """The event with `[COMPACTED: <label>; expand #n]` in place of its content, if that is shorter."""
        if not isinstance(label, str):
            raise InvalidType("label", f"must be text, not {type(label).__name__}", "Return a str.")
        return compact_event(event, label, count=self.counter.count, now=self._clock(), strategy=strategy)

    async def summarize(self, events: builtins.list[MemoryEvent]) -> StructuredSummary:
        """The summary of these events, all in full; before them one that shows the former summary, if there is one."""
        if self._summarizer is not None:
            made: StructuredSummary = await _awaited(self._summarizer(events))
            return made
        limit, count = self.thresholds.summary_limit, self.counter.count
        if self._llm is None:
            return await asyncio.to_thread(summarize_by_rules, events, max_tokens=limit, count=count)
        window = self.thresholds.summarizer_window
        return await summarize_by_model(events, self._llm, max_tokens=limit, window=window, count=count)

    async def store_summary(self, session_id: str, summary: StructuredSummary) -> None:  # noqa: ARG002 - for overrides
        """Called with each new summary before anything is cleared; if it raises, nothing is.

        The base has nothing to do: it keeps the summary in the very step that clears.

        Raises:
            InvalidInput: no summary of this session is being made.
        """
        self._being_summarized(session_id)

    async def clear_summarized_events(self, session_id: str, recent_to_keep: int) -> None:  # noqa: ARG002 - likewise
        """Put the new summary in the place of what it covers; the last `recent_to_keep` events are not among that.

        What is cleared stays in the archive: see `archived`. Called after `store_summary`.

        Raises:
            InvalidInput: no summary of this session is being made.
        """
        thread, summary = self._being_summarized(session_id)
        await self._sessions.state.fold(
            thread.ref,
            summary,
            expected_folded_through=thread.folded_through,
            now=self._clock(),
            expected_created_at=thread.created_at,
        )

    def _being_summarized(self, session_id: str) -> tuple[Thread, Summary]:
        if session_id not in self._waiting:
            raise InvalidInput("session_id", "names a session of which no summary is being made", "Use manage_context.")
        return self._waiting[session_id]

    # The steps of the tiers.

    async def _manage_after_adding(self, session_id: str) -> None:
        try:
            await self._manage(session_id, is_asked_for=False)
        except Exception as error:  # noqa: BLE001 - a host's code or the store: the event is kept whatever it was
            log.warning("managing the session %s failed (%s); it is tried again", session_id, type(error).__name__)

    async def _manage(self, session_id: str, *, is_asked_for: bool) -> ContextReport:
        await self._sessions.head(session_id)
        async with self._locks.hold(session_id):
            report = await self._tiers.manage(self._sessions.ref(session_id), is_asked_for=is_asked_for)
        for name, count in (
            (EventName.CONTEXT_COMPACTED, report.compacted),
            (EventName.CONTEXT_SUMMARIZED, report.summarized),
        ):
            if count and self._emit is not None:
                facts = {"session_id": session_id, "messages": count, "tokens": report.tokens_after}
                self._emit(Event(name, self._clock(), self._sessions.tenant, facts))
        return report

    async def _compact(self, event: ThreadEvent) -> ThreadEvent:
        if self._filter is not None and not self._filter(copy.deepcopy(event)):
            return event
        made = await _awaited(self.compact_event(copy.deepcopy(event)))
        if not isinstance(made, ThreadEvent):
            raise InvalidType("compact_event", f"must return an event, not {type(made).__name__}", "Return the event.")
        return complete_compaction(event, made, count=self.counter.count, now=self._clock())

    async def _summarize(self, events: builtins.list[ThreadEvent]) -> StructuredSummary:
        made: StructuredSummary = await _awaited(self.summarize(events))
        return made

    async def _before(self, ref: ThreadRef, events: builtins.list[ThreadEvent]) -> None:
        if self._on_before_summarize is not None:
            await _awaited(self._on_before_summarize(ref.id, events))

    async def _keep(self, thread: Thread, summary: StructuredSummary, kept: Summary) -> bool:
        self._waiting[thread.id] = (thread, kept)
        try:
            await _awaited(self.store_summary(thread.id, summary))
            await _awaited(self.clear_summarized_events(thread.id, self.thresholds.recent_to_keep))
        finally:
            self._waiting.pop(thread.id, None)
        head = await self._sessions.head(thread.id)
        return head is not None and head.folded_through == kept.to_index


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _tokens(events: Iterable[ThreadEvent]) -> int:
    return sum(event.tokens for event in events)
