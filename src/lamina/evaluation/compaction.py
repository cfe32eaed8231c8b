"""What the token tiers make of long transcripts: how much smaller they get, and what of them is still there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lamina.conversation.compaction import decompress_event
from lamina.conversation.manager import ConversationManager
from lamina.conversation.short_term import BaseMemory
from lamina.conversation.tiers import Tier, tier_of
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message, Role
from lamina.domain.message_groups import orphans
from lamina.domain.message_json import message_to_json
from lamina.domain.message_size import Count, message_tokens, messages_tokens
from lamina.domain.thread import ThreadContext, ThreadRef
from lamina.errors import InvalidInput
from lamina.evaluation.transcripts import Transcript
from lamina.ports.language_model import LanguageModel
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import EstimateCounter
from lamina.settings.conversation import SummaryConfig
from lamina.settings.tiers import ContextThresholds
from lamina.state.sqlite import SqliteStateStore

__all__ = ["MemoryFactory", "TierFigures", "evaluate_memory", "evaluate_thread", "thread_manager"]

SESSION: Final = "transcript"
_FULL: Final = 0.9
"""Of a transcript's tokens over its pre-rot threshold, where only tier 2 is to be measured."""
_LEAST_PRE_ROT: Final = 1_000
_GIVEN: Final = ("role", "content", "name", "tool_calls", "tool_call_id", "extra")
"""The fields of a message that were given; the rest is of the store."""
_BY_SIZE_ALONE: Final = WindowPolicy(fold_at=1_000_000, keep=999_999)

MemoryFactory = Callable[..., BaseMemory]
"""Makes a memory from `thresholds`, `counter` and `enable_context_management`."""


@dataclass(frozen=True, slots=True)
class TierFigures:
    """One transcript: tokens in all, after tier 2 alone, and at the end of a replay; shares are in [0, 1].

    `saved` is the share of the transcript's tokens that the context at the end of the replay does without.
    `saved_of_summarized` is the share that the last summary saves of the messages that it stands for, and
    `saved_by_run` the mean of what each run of tier 3 saved of the whole context that it found, recent messages
    in full included; both are None without such a run. `paths_...` is the share of the transcript's paths that
    the context names. `restored` is the share of messages that come back exactly, `orphans` how many tool
    results stand in the final context without their call.
    """

    id: str
    collection: str
    messages: int
    tokens: int
    pre_rot: int
    tokens_after_tier_2: int
    tokens_after_tier_3: int
    saved: float
    saved_of_summarized: float | None
    saved_by_run: float | None
    summaries: int
    over_budget: bool
    paths_after_tier_2: float
    paths_after_tier_3: float
    restored: float
    orphans: int


async def evaluate_memory(
    transcript: Transcript,
    *,
    pre_rot: int = 20_000,
    counter: TokenCounter | None = None,
    make: MemoryFactory = BaseMemory,
) -> TierFigures:
    """Replay the transcript into a short-term memory; `pre_rot` is lowered to half of its tokens.

    Raises:
        InvalidInput: the transcript has no messages.
    """
    count = (counter := counter or EstimateCounter()).count
    total = _size(transcript, count)
    compacted = await _memory_in_tier_2(transcript, total, counter, make)
    run = _Run(transcript, total, lowered(pre_rot, total), compacted, count)
    thresholds = {"pre_rot_threshold": run.pre_rot}
    async with make(thresholds=thresholds, counter=counter, enable_context_management=False) as memory:
        over_budget = False
        for message in transcript.messages:
            await memory.add(message, SESSION)
            report = await memory.manage_context(SESSION)
            over_budget = report.over_budget
            if report.summarized:
                run.shares.append(1 - report.tokens_after / report.tokens_before)
        context = await memory.get_context(SESSION)
        archived = [event.message for event in await memory.archived(SESSION)]
        if archived:
            run.summarised(archived, context[0])
        live = [decompress_event(event).message for event in await memory.list(session_id=SESSION)]
    return run.figures(context, [*archived, *live], over_budget=over_budget)


async def evaluate_thread(
    transcript: Transcript,
    *,
    pre_rot: int = 20_000,
    counter: TokenCounter | None = None,
    llm: LanguageModel | None = None,
) -> TierFigures:
    """As `evaluate_memory`, into a thread that is kept as a kernel keeps it, in a file of its own."""
    count = (counter := counter or EstimateCounter()).count
    total = _size(transcript, count)
    with tempfile.TemporaryDirectory(prefix="lamina-eval-") as folder:
        async with SqliteStateStore(Path(folder) / "threads.db") as store:
            high = _only_tier_2(total)
            compacting = thread_manager(store, thresholds=high, counter=counter, llm=llm)
            await compacting.add_messages("tier 2", transcript.messages)
            compacted = shown(await compacting.get_thread_context("tier 2"))
            run = _Run(transcript, total, lowered(pre_rot, total), compacted, count)
            thresholds = ContextThresholds(pre_rot_threshold=run.pre_rot)
            manager = thread_manager(store, thresholds=thresholds, counter=counter, llm=llm)
            covered = before = 0
            context = ThreadContext()
            for message in transcript.messages:
                await manager.add_messages(SESSION, [message])
                thread = await store.get_thread(ThreadRef(manager.tenant, SESSION))
                tokens = (context := await manager.get_thread_context(SESSION)).tokens
                if thread is not None and thread.folded_through > covered:
                    covered = thread.folded_through
                    run.shares.append(1 - tokens / (before + message_tokens(message, count)))
                before = tokens
            if context.summary:
                replaced = await manager.history(SESSION, limit=covered)
                run.summarised(replaced, Message.system(context.summary))
            kept = await manager.history(SESSION, limit=len(transcript.messages) + 1)
    final = shown(context)
    is_over = tier_of(messages_tokens(final, count), thresholds) is Tier.SUMMARIZATION
    return run.figures(final, kept, over_budget=is_over)


def thread_manager(
    store: StateStore, *, thresholds: ContextThresholds, counter: TokenCounter, llm: LanguageModel | None = None
) -> ConversationManager:
    """A manager that shortens threads by their size alone, with summaries of the size that the thresholds say."""
    tokens = max(100, thresholds.summary_limit)
    summary = SummaryConfig(tokens=tokens, window=max(8_000, 4 * tokens))
    return ConversationManager(
        store, policy=_BY_SIZE_ALONE, summary=summary, context_engineering=thresholds, counter=counter, llm=llm
    )


def shown(context: ThreadContext) -> list[Message]:
    """The messages that a model is shown of a thread, the summary as one of the system's."""
    return [*([Message.system(context.summary)] if context.summary else []), *context.messages]


def lowered(pre_rot: int, total: int) -> int:
    """The threshold, at most half of what there is."""
    return max(_LEAST_PRE_ROT, min(pre_rot, total // 2))


@dataclass(slots=True)
class _Run:
    """Collects what a replay shows; `shares` is what each run of tier 3 saved."""

    transcript: Transcript
    total: int
    pre_rot: int
    compacted: Sequence[Message]
    count: Count
    shares: list[float] = field(default_factory=list)
    saved_of_summarized: float | None = None

    def summarised(self, replaced: Sequence[Message], summary: Message) -> None:
        """Note what stands in the place of what at the end."""
        spoken = [message for message in replaced if message.role is not Role.SYSTEM]
        tokens = messages_tokens(spoken, self.count)
        self.saved_of_summarized = 1 - message_tokens(summary, self.count) / max(1, tokens)

    def figures(self, context: Sequence[Message], kept: Sequence[Message], *, over_budget: bool) -> TierFigures:
        """All of it."""
        transcript, count = self.transcript, self.count
        tokens = messages_tokens(context, count)
        return TierFigures(
            id=transcript.id,
            collection=transcript.collection,
            messages=len(transcript.messages),
            tokens=self.total,
            pre_rot=self.pre_rot,
            tokens_after_tier_2=messages_tokens(self.compacted, count),
            tokens_after_tier_3=tokens,
            saved=1 - tokens / self.total,
            saved_of_summarized=self.saved_of_summarized,
            saved_by_run=_mean(self.shares),
            summaries=len(self.shares),
            over_budget=over_budget,
            paths_after_tier_2=_share_named(transcript.paths, self.compacted),
            paths_after_tier_3=_share_named(transcript.paths, context),
            restored=_share_restored(transcript.messages, kept),
            orphans=len(list(orphans(context))),
        )


def _size(transcript: Transcript, count: Count) -> int:
    if not transcript.messages:
        raise InvalidInput("transcript", f"{transcript.id!r} has no messages", "Leave it out.")
    return messages_tokens(transcript.messages, count)


async def _memory_in_tier_2(
    transcript: Transcript, total: int, counter: TokenCounter, make: MemoryFactory
) -> list[Message]:
    """The context when everything but the tail was replaced by references, and nothing by a summary."""
    thresholds = _only_tier_2(total)
    async with make(thresholds=thresholds, counter=counter, enable_context_management=False) as memory:
        await memory.add_list(transcript.messages, SESSION)
        await memory.manage_context(SESSION)
        return await memory.get_context(SESSION)


def _only_tier_2(total: int) -> ContextThresholds:
    return ContextThresholds(pre_rot_threshold=max(1, round(total / _FULL)), hard_limit=2 * total + 2)


def _share_named(paths: Sequence[str], context: Sequence[Message]) -> float:
    said = "\n".join([message.text for message in context] + [c.arguments for m in context for c in m.tool_calls])
    return sum(path in said for path in paths) / len(paths) if paths else 1.0


def _share_restored(messages: Sequence[Message], kept: Sequence[Message]) -> float:
    """How many of the messages are there, once and at their place, with exactly what they were given with."""
    by_index: dict[int, list[Message]] = {}
    for message in kept:
        by_index.setdefault(message.index, []).append(message)
    equal = sum(
        [_given(each) for each in by_index.get(index, ())] == [_given(message)]
        for index, message in enumerate(messages, start=1)
    )
    return equal / len(messages) if messages else 1.0


def _given(message: Message) -> Mapping[str, object]:
    form = message_to_json(message)
    return {name: form.get(name) for name in _GIVEN}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
