"""The token tiers of a thread: references first, and only then a summary that comes earlier than by number."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lamina.conversation.compaction import compact_event, is_compacted
from lamina.conversation.labels import label_of, named, tool_names
from lamina.conversation.tiering import Size, size_of
from lamina.conversation.tiers import (
    Tier,
    is_worth_a_summary,
    must_summarize,
    tail_start,
    tier_of,
    to_compact,
    to_summarize,
)
from lamina.domain.message_size import message_tokens
from lamina.domain.thread import Thread, ThreadEvent, ThreadRef
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings.tiers import ContextThresholds

__all__ = ["ThreadTiers"]

_REMEMBERED: Final = 1_000


class ThreadTiers:
    """Keeps the size of threads inside their tiers, as far as that can be undone; the folder does the rest."""

    def __init__(
        self,
        store: StateStore,
        thresholds: ContextThresholds,
        *,
        counter: TokenCounter,
        clock: Clock,
        emit: Emit | None = None,
    ) -> None:
        self.thresholds = thresholds
        self._store = store
        self._counter = counter
        self._clock = clock
        self._emit = emit
        self._looked_through = _LookedThrough()

    async def compact(self, ref: ThreadRef, *, shown: int | None = None) -> bool:
        """Replace older messages by references if the thread's tier says so; whether it is to be folded as well.

        `shown` are the tokens of what is shown of the thread, where they were just told; else it is asked for.
        Messages that change meanwhile are left for the next time.
        """
        if shown is not None and tier_of(shown, self.thresholds) is Tier.NORMAL:
            return False
        size = await size_of(self._store, ref)
        if size is None or tier_of(size.tokens, self.thresholds) is Tier.NORMAL:
            return False
        gain = await self._compact(ref, size)
        if not must_summarize(size.tokens - gain, gain, self.thresholds):
            return False
        events = await self._store.events(ref, after=size.thread.folded_through)
        return is_worth_a_summary(events[: to_summarize(events, self.thresholds.recent_to_keep)], self.thresholds)

    async def _compact(self, ref: ThreadRef, size: Size) -> int:
        """How many tokens references saved. What was looked at before is not read again."""
        head = size.thread
        looked_through = self._looked_through.get(ref, head) if self.thresholds.compaction_fraction == 1 else 0
        events = await self._store.events(ref, after=max(head.folded_through, looked_through))
        before = [events[place] for place in to_compact(events, self.thresholds)]
        pairs = list(zip(before, self._references(before, events), strict=True))
        changed = [(old, new) for old, new in pairs if is_compacted(new)]
        if changed and not await self._store.replace_events(
            ref, [new for _, new in changed], expected=[old for old, _ in changed]
        ):
            return 0
        tail = tail_start([event.message for event in events], self.thresholds.recent_to_keep)
        if tail:
            self._looked_through.put(ref, head, events[tail - 1].message.index)
        gain = sum(old.tokens - new.tokens for old, new in changed)
        if changed and self._emit is not None:
            facts = {
                "thread_id": ref.id,
                "messages": len(changed),
                "tokens_before": size.tokens,
                "tokens_after": size.tokens - gain,
            }
            self._emit(Event(EventName.CONTEXT_COMPACTED, self._clock(), ref.tenant, facts))
        return gain

    def _references(self, older: list[ThreadEvent], live: list[ThreadEvent]) -> list[ThreadEvent]:
        tools = tool_names(live)
        count, now = self._counter.count, self._clock()
        made = []
        for event in older:
            label = label_of(named(event, tools).message, message_tokens(event.message, count))
            made.append(compact_event(event, label, count=count, now=now))
        return made


class _LookedThrough:
    """Up to which message of each thread none is left to be compacted; of the threads that were last added to."""

    def __init__(self) -> None:
        self._last: dict[tuple[ThreadRef, datetime], int] = {}

    def get(self, ref: ThreadRef, head: Thread) -> int:
        return self._last.get((ref, head.created_at), 0)

    def put(self, ref: ThreadRef, head: Thread, index: int) -> None:
        key = (ref, head.created_at)  # another thread may begin under the name of one that was deleted
        self._last.pop(key, None)
        self._last[key] = index
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
