"""Folding the older messages of a thread into its summary, whatever the summariser does."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

from lamina.conversation.compaction import originals
from lamina.conversation.rolling import SummaryDraft, rendered
from lamina.conversation.setbacks import Setbacks
from lamina.conversation.summarizer import Summarizer, SummaryFailed
from lamina.conversation.user_facts import store_facts, weighed
from lamina.conversation.window import WindowPolicy, fold_through
from lamina.domain.message import Message, Role
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadRef
from lamina.errors import ThreadNotFound
from lamina.memory.engine import MemoryEngine
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.state_store import StateStore

__all__ = ["CompactionReport", "Folder", "ThreadGate", "ThreadGates", "warnings_of"]

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""How often a folding is planned anew because another process folded the thread meanwhile."""


@dataclass(slots=True)
class CompactionReport:
    """How many messages were folded into the summary, how many stay in full, and the summary that now holds.

    `facts_stored` counts the memories that were stored or confirmed. `warnings` says what did not work:
    where a summariser failed, nothing was folded.
    """

    compacted: int = 0
    kept: int = 0
    summary: str | None = None
    facts_stored: int = 0
    source: SummarySource | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Plan:
    """What is to be folded, as the thread stands: `messages`, up to the index `through`; the system's stay shown."""

    head: Thread
    previous: Summary | None
    messages: list[Message]
    through: int
    kept: int
    tokens: int
    """Of all that is shown beside the summary, once they are folded."""


class ThreadGate:
    """What keeps the calls on one thread in order, in this process."""

    __slots__ = ("__weakref__", "again", "appending", "folding", "is_due")

    def __init__(self) -> None:
        self.appending = asyncio.Lock()
        self.folding = asyncio.Lock()
        self.again = False
        self.is_due = False
        """Whether there may be something to fold."""


class ThreadGates:
    """The gates of the threads that calls are at. A lock serves one event loop; between loops the store decides."""

    def __init__(self) -> None:
        self._gates: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], ThreadGate] = WeakValueDictionary()

    def of(self, thread_id: str) -> ThreadGate:
        """The same one for all who ask in this event loop at the same time."""
        return self._gates.setdefault((asyncio.get_running_loop(), thread_id), ThreadGate())


class Folder:
    """Folds threads, one folding at a time for each; the caller sees to that in its process, the store between them."""

    def __init__(
        self,
        store: StateStore,
        summarizer: Summarizer,
        *,
        policy: WindowPolicy,
        clock: Clock,
        emit: Emit | None = None,
        memory: MemoryEngine | None = None,
    ) -> None:
        self._store = store
        self._summarizer = summarizer
        self._policy = policy
        self._memory = memory
        self._clock = clock
        self._emit = emit

    def may_be_due(self, thread: Thread, last_index: int) -> bool:
        """Whether a thread with its newest message there can be due, as far as can be told without reading it."""
        return last_index - thread.folded_through >= self._policy.due_at

    async def fold(self, ref: ThreadRef, *, force: bool = False, keep: int | None = None) -> CompactionReport:
        """Fold what the policy says, if anything; with `keep`, everything older than the last so many messages.

        Facts are stored before the folding: if the process ends in between, the next one finds and confirms
        them. A summary that came too late, for another process folded first, is thrown away.

        Raises:
            ThreadNotFound: there is no such thread.
            AdapterError: the store failed; nothing was folded.
        """
        policy = self._policy if keep is None else WindowPolicy(keep + 1, keep)
        report, _ = await self._fold(ref, policy, force=force or keep is not None)
        return report

    async def fold_due(self, ref: ThreadRef) -> int | None:
        """Fold as `fold` does; the tokens of what is shown of the thread then, None if nothing was folded."""
        _, tokens = await self._fold(ref, self._policy, force=False)
        return tokens

    async def _fold(self, ref: ThreadRef, policy: WindowPolicy, *, force: bool) -> tuple[CompactionReport, int | None]:
        report = CompactionReport()
        for _ in range(_ATTEMPTS):
            plan = await self._plan(ref, policy, force=force)
            report = CompactionReport(
                kept=plan.kept, summary=None if plan.previous is None else rendered(plan.previous)
            )
            if not plan.messages:
                return report, None
            draft = await self._draft(plan, report)
            if draft is None:
                report.kept += len(plan.messages)
                return report, None
            report.facts_stored = await self._remember(plan, draft, report)
            summary = await self._commit(plan, draft, report)
            if summary is not None:
                return report, plan.tokens + summary.tokens
        report.warnings.append("Other processes folded this thread again and again; nothing was folded here.")
        return report, None

    async def _plan(self, ref: ThreadRef, policy: WindowPolicy, *, force: bool) -> _Plan:
        now = await self._store.live(ref)
        if now is None:
            raise ThreadNotFound(ref.id)
        events = now.events
        live = [event.message for event in events]
        cut = fold_through(live, policy, force=force)
        folded = [event for event in events[:cut] if event.message.role is not Role.SYSTEM]
        return _Plan(
            head=now.head,
            previous=now.summary,
            messages=originals(folded),
            through=live[cut - 1].index if cut else now.head.folded_through,
            kept=sum(message.role is not Role.SYSTEM for message in live[cut:]),
            tokens=now.tokens + sum(event.tokens for event in now.system) - sum(event.tokens for event in folded),
        )

    async def _draft(self, plan: _Plan, report: CompactionReport) -> SummaryDraft | None:
        """The new summary; None if the messages are to stay as they are until the summariser works again."""
        setbacks = Setbacks.read(plan.head.metadata)
        last = plan.head.last_index
        if self._summarizer.can_write and setbacks.allow(last):
            try:
                return await self._summarizer.write(plan.previous, plan.messages)
            except SummaryFailed as failure:
                setbacks = await self._note_failure(plan.head, str(failure))
                report.warnings += warnings_of(setbacks)
                if setbacks.allow(last):
                    return None
        return await self._summarizer.extract(plan.previous, plan.messages)

    async def _note_failure(self, head: Thread, problem: str) -> Setbacks:
        """Count the failure with the thread, and tell of it."""
        most = self._summarizer.config.max_failures
        now: Thread | None = head
        setbacks = Setbacks()
        for _ in range(_ATTEMPTS):
            if now is None:
                break
            setbacks = Setbacks.read(now.metadata).after(problem, last_index=now.last_index, most=most)
            if await self._write(now, setbacks):
                break
            now = await self._store.get_thread(head.ref)
        if setbacks.failures in {1, most}:  # not at every message of a long outage
            log.warning("summarising the thread %s failed %d times: %s", head.id, setbacks.failures, problem)
        facts = {"thread_id": head.id, "failures": setbacks.failures, "problem": problem}
        self._tell(EventName.THREAD_SUMMARY_FAILED, head, facts)
        return setbacks

    async def _write(self, head: Thread, setbacks: Setbacks) -> bool:
        metadata = setbacks.written(head.metadata)
        return await self._store.update_thread(
            head.ref, now=head.updated_at, metadata=metadata, expected_revision=head.revision
        )

    async def _remember(self, plan: _Plan, draft: SummaryDraft, report: CompactionReport) -> int:
        """Store the facts that the draft brings; how many. The summary lists them too, if that fails."""
        if self._memory is None or not draft.new_facts:
            return 0
        keep_foreign = self._summarizer.config.foreign_facts == "keep"
        facts = weighed(draft.new_facts, plan.messages, keep_foreign=keep_foreign)
        span = (plan.messages[0].index, plan.messages[-1].index)
        try:
            ids = await store_facts(self._memory, plan.head, facts, topics=draft.new_topics, span=span)
        except Exception as error:  # noqa: BLE001 - hooks and adapters may be the host's, and what they say may be content
            log.warning("storing facts of the thread %s failed: %s", plan.head.id, type(error).__name__)
            report.warnings.append(
                f"{len(facts)} facts could not be stored as memories ({type(error).__name__}); "
                "the summary lists them, and extract_memories tries again."
            )
            return 0
        return len(ids)

    async def _commit(self, plan: _Plan, draft: SummaryDraft, report: CompactionReport) -> Summary | None:
        """Make the summary current, and give it; None if the thread was folded by another meanwhile."""
        first, last = plan.messages[0].index, plan.through
        summary = Summary(
            text=draft.text,
            from_index=first if plan.previous is None else plan.previous.from_index,
            to_index=last,
            created_at=self._clock(),
            source=draft.source,
            topics=draft.topics,
            facts=draft.facts,
            tokens=self._summarizer.count(rendered(draft)),
        )
        done = await self._store.fold(
            plan.head.ref,
            summary,
            expected_folded_through=plan.head.folded_through,
            now=summary.created_at,
            expected_created_at=plan.head.created_at,
        )
        if not done:
            return None
        if draft.source is not SummarySource.EXTRACTIVE:
            await self._clear_failures(plan.head)
        report.compacted, report.summary, report.source = len(plan.messages), rendered(draft), draft.source
        facts = {"thread_id": plan.head.id, "from_index": first, "to_index": last, "source": draft.source.value}
        counts = {"messages": report.compacted, "tokens": summary.tokens, "facts_stored": report.facts_stored}
        self._tell(EventName.THREAD_SUMMARIZED, plan.head, {**facts, **counts})
        return summary

    async def _clear_failures(self, head: Thread) -> None:
        if not Setbacks.read(head.metadata).failures:
            return
        now = await self._store.get_thread(head.ref)
        for _ in range(_ATTEMPTS):
            if now is None or await self._write(now, Setbacks()):
                return
            now = await self._store.get_thread(head.ref)

    def _tell(self, name: EventName, head: Thread, facts: dict[str, Any]) -> None:
        if self._emit is not None:
            self._emit(Event(name, self._clock(), head.tenant, facts))


def warnings_of(setbacks: Setbacks) -> list[str]:
    """What a caller is told of a summariser that fails."""
    if not setbacks.failures:
        return []
    times = "once" if setbacks.failures == 1 else f"{setbacks.failures} times in a row"
    problem = f"The summary could not be written, {times}: {setbacks.problem}."
    if not setbacks.resume_at:
        return [f"{problem} All messages are shown in full until it works."]
    return [f"{problem} Meanwhile it is made of extracts."]
