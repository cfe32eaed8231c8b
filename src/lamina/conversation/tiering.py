"""Keeps the size of a stored conversation inside its tiers: references first, then a summary.

Works on any thread of a state store; who uses it says how a message is compacted and how a summary is made.
Each step is one atomic change of the store, so that whatever fails or is cancelled leaves a whole conversation.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lamina.conversation.compaction import decompress_event, is_compacted
from lamina.conversation.labels import named, tool_names
from lamina.conversation.structured import StructuredSummary, complete_summary, fitted, summary_from_json, summary_text
from lamina.conversation.structured_summarizer import SUMMARY_KEY, summarize_by_rules
from lamina.conversation.tiers import (
    ContextReport,
    Tier,
    is_worth_a_summary,
    must_summarize,
    tail_start,
    tier_of,
    to_compact,
    to_summarize,
)
from lamina.domain.message import Message, Role
from lamina.domain.message_size import message_tokens
from lamina.domain.storable import storable_json
from lamina.domain.thread import Summary, Thread, ThreadEvent, ThreadRef
from lamina.errors import ProviderError
from lamina.ports.clock import Clock
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings.tiers import ContextThresholds

__all__ = ["PINNED_KEY", "Size", "TierManager", "TierSteps", "size_of", "summary_event"]

log = logging.getLogger(__name__)

PINNED_KEY: Final = "restored"
"""In a thread's metadata: ids of messages that were put back in full and stay so until they are summarised."""

PATIENCE: Final = 3
"""After so many failures in a row a summary is made by rules, and marked so."""
_LONGEST_WAIT: Final = 32
_MOST_KEPT: Final = 10_000

Compact: TypeAlias = Callable[[ThreadEvent], Awaitable[ThreadEvent]]
Summarize: TypeAlias = Callable[[list[ThreadEvent]], Awaitable[StructuredSummary]]
Keep: TypeAlias = Callable[[Thread, StructuredSummary, Summary], Awaitable[bool]]
Before: TypeAlias = Callable[[ThreadRef, list[ThreadEvent]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TierSteps:
    """What the manager leaves to who uses it.

    `compact` returns the event with a reference, or as it was. `summarize` gets originals, before them an
    event with the former summary if there is one. `keep` makes a summary the current one (`StateStore.fold`)
    of the thread as it was read; False if that has changed since. `before` gets the originals first; if it
    raises, nothing is summarised.
    """

    compact: Compact
    summarize: Summarize
    keep: Keep
    before: Before | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """A thread with the tokens of all that is shown of it, and how many live messages it has."""

    thread: Thread
    live: int
    tokens: int
    summary: Summary | None


@dataclass(slots=True)
class _Progress:
    """What is remembered of a thread between two calls; all of it can be forgotten."""

    looked_through: int = 0
    """No message up to this index is left to be compacted."""
    failures: int = 0
    wait: int = 0
    """How many calls pass before a summary is tried again."""


async def size_of(store: StateStore, ref: ThreadRef) -> Size | None:
    """How large the thread is now; None if there is none. Takes the same time however long it is."""
    now = await store.live(ref, with_events=False)
    if now is None:
        return None
    summary = 0 if now.summary is None else now.summary.tokens
    tokens = now.tokens + sum(event.tokens for event in now.system) + summary
    return Size(now.head, now.count, tokens, now.summary)


class TierManager:
    """Runs the tiers over threads of one store."""

    def __init__(
        self, store: StateStore, thresholds: ContextThresholds, counter: TokenCounter, clock: Clock, *, steps: TierSteps
    ) -> None:
        self._store = store
        self._thresholds = thresholds
        self._counter = counter
        self._clock = clock
        self._steps = steps
        self._progress: OrderedDict[ThreadRef, _Progress] = OrderedDict()

    def forget(self, ref: ThreadRef) -> None:
        """Forget what is remembered of a thread that was deleted or changed from outside."""
        self._progress.pop(ref, None)

    async def manage(self, ref: ThreadRef, *, is_asked_for: bool = False) -> ContextReport:
        """Shorten the thread if its tier says so.

        What a summariser, a labeller or a model raises is told in the report and not raised; asked for,
        a summary is tried even if it has just failed.
        """
        size = await size_of(self._store, ref)
        if size is None:
            return ContextReport(Tier.NORMAL, 0, 0)
        report = ContextReport(tier_of(size.tokens, self._thresholds), size.tokens, size.tokens)
        if report.tier is not Tier.NORMAL and size.live > self._thresholds.recent_to_keep:
            progress = self._progress_of(ref)
            await self._compact(size.thread, progress, report)
            if must_summarize(report.tokens_after, report.gain, self._thresholds):
                await self._summarize(size, progress, report, is_asked_for=is_asked_for)
        report.over_budget = tier_of(report.tokens_after, self._thresholds) is Tier.SUMMARIZATION
        return report

    def _progress_of(self, ref: ThreadRef) -> _Progress:
        """Of the threads that were managed last; any other is looked through anew."""
        progress = self._progress.setdefault(ref, _Progress())
        self._progress.move_to_end(ref)
        if len(self._progress) > _MOST_KEPT:
            self._progress.popitem(last=False)
        return progress

    async def _compact(self, thread: Thread, progress: _Progress, report: ContextReport) -> None:
        whole = self._thresholds.compaction_fraction < 1
        start = thread.folded_through if whole else max(thread.folded_through, progress.looked_through)
        events = await self._store.events(thread.ref, after=start)
        pinned = set(thread.metadata.get(PINNED_KEY, ()))
        before: list[ThreadEvent] = []
        after: list[ThreadEvent] = []
        failed = 0
        tools = tool_names(events)
        for place in to_compact(events, self._thresholds):
            event = events[place]
            if event.message.id in pinned:
                continue
            try:
                compacted = await self._steps.compact(named(event, tools))
            except Exception as error:  # noqa: BLE001 - a host's code: a message that it cannot label stays in full
                log.warning("compacting the message %s failed (%s)", event.message.id, type(error).__name__)
                failed += 1
                continue
            if is_compacted(compacted):
                before.append(event)
                after.append(compacted.replace(message=compacted.message.replace(name=event.message.name)))
        if failed:
            report.warnings.append(f"{failed} messages could not be compacted and stay in full")
        if before and not await self._store.replace_events(thread.ref, after, expected=before):
            report.warnings.append("messages changed while they were compacted; they are compacted next time")
            return
        report.compacted = len(before)
        report.gain = sum(old.tokens - new.tokens for old, new in zip(before, after, strict=True))
        report.tokens_after -= report.gain
        tail = tail_start([event.message for event in events], self._thresholds.recent_to_keep)
        if tail and not failed:
            progress.looked_through = events[tail - 1].message.index

    async def _summarize(self, size: Size, progress: _Progress, report: ContextReport, *, is_asked_for: bool) -> None:
        ref = size.thread.ref
        events = await self._store.events(ref, after=size.thread.folded_through)
        older = events[: to_summarize(events, self._thresholds.recent_to_keep)]
        if not is_worth_a_summary(older, self._thresholds):
            return
        if progress.wait and not is_asked_for:
            progress.wait -= 1
            report.warnings.append("the summariser failed lately; it is tried again after some more messages")
            return
        replaced = [event for event in older if event.message.role is not Role.SYSTEM]
        summary = await self._summary_of(size, replaced, progress, report)
        if summary is None:
            return
        kept = self._to_keep(summary, size, older)
        try:
            if self._steps.before is not None:
                await self._steps.before(ref, [decompress_event(event) for event in replaced])
            is_kept = await self._steps.keep(size.thread, summary, kept)
        except Exception:  # a host's code or the store: told to the caller, and not tried at each message
            progress.wait = _LONGEST_WAIT
            raise
        if not is_kept:
            report.warnings.append("the thread changed while it was summarised; nothing was replaced")
            return
        report.summarized = len(replaced)
        before = size.summary.tokens if size.summary is not None else 0
        report.tokens_after += kept.tokens - before - sum(event.tokens for event in replaced)

    async def _summary_of(
        self, size: Size, replaced: Sequence[ThreadEvent], progress: _Progress, report: ContextReport
    ) -> StructuredSummary | None:
        """The summary, bounded and filled in; None if it failed, with the failure counted."""
        originals = [decompress_event(event) for event in replaced]
        former = [] if size.summary is None else [summary_event(size.summary, self._counter)]
        count, limit = self._counter.count, self._thresholds.summary_limit
        previous = summary_from_json(size.summary.form) if size.summary is not None and size.summary.form else None
        try:
            made = summary_from_json(await self._steps.summarize([*former, *originals]))
            if made.is_empty:
                raise ProviderError("The summariser", "gave a summary that says nothing")  # noqa: TRY301 - counted below
            made = fitted(complete_summary(made, originals, previous, now=self._clock()), limit, count)
            storable_json("summary", made.to_json())
        except Exception as error:  # noqa: BLE001 - a host's code or a model: the messages stay as they are
            progress.failures += 1
            progress.wait = min(2**progress.failures, _LONGEST_WAIT)
            log.warning(
                "summarising the session %s failed (%s); its messages stay", size.thread.id, type(error).__name__
            )
            report.warnings.append(f"the summariser failed ({type(error).__name__}); the messages stay as they are")
            if progress.failures < PATIENCE:
                return None
            made = summarize_by_rules([*former, *originals], max_tokens=limit, count=count)
            return fitted(complete_summary(made, originals, previous, now=self._clock()), limit, count)
        progress.failures = progress.wait = 0
        return made

    def _to_keep(self, summary: StructuredSummary, size: Size, older: Sequence[ThreadEvent]) -> Summary:
        text = summary_text(summary)
        return Summary(
            text=text,
            from_index=older[0].message.index if size.summary is None else size.summary.from_index,
            to_index=older[-1].message.index,
            created_at=self._clock(),
            source=summary.source,
            form=summary.to_json(),
            tokens=message_tokens(Message.system(text), self._counter.count),
        )


def summary_event(summary: Summary, counter: TokenCounter) -> ThreadEvent:
    """How a summary is shown among events: of the role system, its JSON form in the state."""
    form = summary.form or {"content": summary.text, "source": summary.source.value}
    message = Message(
        Role.SYSTEM, summary.text, id=f"summary-{summary.from_index}-{summary.to_index}", timestamp=summary.created_at
    )
    return ThreadEvent(message, {SUMMARY_KEY: form}, summary.tokens, counter.name)
