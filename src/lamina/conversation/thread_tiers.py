"""The token tiers of a thread: references first, and only then a summary that comes earlier than by number."""

from __future__ import annotations

from lamina.conversation.compaction import compact_event, is_compacted
from lamina.conversation.labels import label_of, named, tool_names
from lamina.conversation.tiering import size_of
from lamina.conversation.tiers import (
    Tier,
    is_worth_a_summary,
    must_summarize,
    tier_of,
    to_compact,
    to_summarize,
)
from lamina.domain.message_size import message_tokens
from lamina.domain.thread import ThreadEvent, ThreadRef
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings.tiers import ContextThresholds

__all__ = ["ThreadTiers"]


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

    async def compact(self, ref: ThreadRef) -> bool:
        """Replace older messages by references if the thread's tier says so; whether it is to be folded as well.

        Messages that change meanwhile are left for the next time.
        """
        size = await size_of(self._store, ref)
        if size is None or tier_of(size.tokens, self.thresholds) is Tier.NORMAL:
            return False
        events = await self._store.events(ref, after=size.thread.folded_through)
        before = [events[place] for place in to_compact(events, self.thresholds)]
        pairs = list(zip(before, self._references(before, events), strict=True))
        changed = [(old, new) for old, new in pairs if is_compacted(new)]
        gain = 0
        if changed and await self._store.replace_events(
            ref, [new for _, new in changed], expected=[old for old, _ in changed]
        ):
            now = {new.message.index: new for _, new in changed}
            events = [now.get(event.message.index, event) for event in events]
            gain = sum(old.tokens - new.tokens for old, new in changed)
            facts = {
                "thread_id": ref.id,
                "messages": len(changed),
                "tokens_before": size.tokens,
                "tokens_after": size.tokens - gain,
            }
            if self._emit is not None:
                self._emit(Event(EventName.CONTEXT_COMPACTED, self._clock(), ref.tenant, facts))
        older = events[: to_summarize(events, self.thresholds.recent_to_keep)]
        return must_summarize(size.tokens - gain, gain, self.thresholds) and is_worth_a_summary(older, self.thresholds)

    def _references(self, older: list[ThreadEvent], live: list[ThreadEvent]) -> list[ThreadEvent]:
        tools = tool_names(live)
        count, now = self._counter.count, self._clock()
        made = []
        for event in older:
            label = label_of(named(event, tools).message, message_tokens(event.message, count))
            made.append(compact_event(event, label, count=count, now=now))
        return made
