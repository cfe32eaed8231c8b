"""What the token tiers make of long transcripts: how much smaller they get, and what of them is still there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lamina.conversation.memory_events import MemoryEvent
from lamina.conversation.short_term import BaseMemory
from lamina.conversation.tiers import ContextReport
from lamina.domain.message import Message, Role
from lamina.domain.message_formats import from_openai
from lamina.domain.message_size import messages_tokens
from lamina.errors import InvalidInput
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import EstimateCounter

__all__ = ["TierFigures", "Transcript", "evaluate_transcript", "load_transcripts"]

SESSION: Final = "transcript"
_FULL: Final = 0.9
"""Of a transcript's tokens over its pre-rot threshold, where only tier 2 is to be measured."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded conversation, and the paths that its continuation needs."""

    id: str
    messages: list[Message]
    paths: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TierFigures:
    """One transcript: tokens in all, after tier 2 alone, and at the end of a replay; shares are in [0, 1].

    `saved` is the share of tokens that the context at the end of the replay does without. `saved_by_summaries` is
    the mean of what each run of tier 3 saved of the context that it found.
    """

    id: str
    messages: int
    tokens: int
    pre_rot: int
    tokens_after_tier_2: int
    tokens_after_tier_3: int
    saved: float
    saved_by_summaries: float
    summaries: int
    over_budget: bool
    paths_after_tier_2: float
    paths_after_tier_3: float
    restored: float


def load_transcripts(path: Path) -> Iterator[Transcript]:
    """The transcripts of a `.jsonl` or `.jsonl.gz` file: lines of `{id, meta: {top_paths}, messages}`.

    Objects without messages are passed over. Messages are as OpenAI has them. A tool's message without the
    id of a call, as logs have it, is the result of a call that is put before it.

    Raises:
        InvalidInput: a line cannot be read.
    """
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                if row.get("messages") is not None:
                    yield Transcript(
                        row["id"], _messages(row["messages"]), list(row.get("meta", {}).get("top_paths", ()))
                    )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                problem = f"line {number} of {path.name} cannot be read"
                raise InvalidInput("path", problem, "Give lines of id, meta and messages.") from error


async def evaluate_transcript(
    transcript: Transcript, *, pre_rot: int = 20_000, counter: TokenCounter | None = None, **options: Any
) -> TierFigures:
    """Replay the transcript; `pre_rot` is lowered to half of its tokens. Options are those of `BaseMemory`."""
    counter = EstimateCounter() if counter is None else counter
    total = messages_tokens(transcript.messages, counter.count)
    pre_rot = max(1_000, min(pre_rot, total // 2))
    compacted = await _compacted_only(transcript, total, counter)
    memory = BaseMemory(
        thresholds={"pre_rot_threshold": pre_rot}, counter=counter, enable_context_management=False, **options
    )
    reports: list[ContextReport] = []
    for message in transcript.messages:
        await memory.add(message, SESSION)
        reports.append(await memory.manage_context(SESSION))
    context = await memory.get_context(SESSION)
    tokens = messages_tokens(context, counter.count)
    shares = [1 - report.tokens_after / report.tokens_before for report in reports if report.summarized]
    restored = [*await memory.archived(SESSION), *memory.decompress_events(await memory.list(session_id=SESSION))]
    figures = TierFigures(
        id=transcript.id,
        messages=len(transcript.messages),
        tokens=total,
        pre_rot=pre_rot,
        tokens_after_tier_2=messages_tokens(compacted, counter.count),
        tokens_after_tier_3=tokens,
        saved=1 - tokens / total,
        saved_by_summaries=sum(shares) / len(shares) if shares else 0.0,
        summaries=len(shares),
        over_budget=reports[-1].over_budget,
        paths_after_tier_2=_share_named(transcript.paths, compacted),
        paths_after_tier_3=_share_named(transcript.paths, context),
        restored=_share_restored(transcript.messages, restored),
    )
    await memory.close()
    return figures


async def _compacted_only(transcript: Transcript, total: int, counter: TokenCounter) -> list[Message]:
    """The context when everything but the tail was replaced by references, and nothing by a summary."""
    thresholds = {"pre_rot_threshold": max(1, round(total / _FULL)), "hard_limit": 2 * total + 2}
    async with BaseMemory(thresholds=thresholds, counter=counter, enable_context_management=False) as memory:
        await memory.add_list(transcript.messages, SESSION)
        await memory.manage_context(SESSION)
        return await memory.get_context(SESSION)


def _share_named(paths: Sequence[str], context: Sequence[Message]) -> float:
    said = "\n".join([message.text for message in context] + [c.arguments for m in context for c in m.tool_calls])
    return sum(path in said for path in paths) / len(paths) if paths else 1.0


def _share_restored(messages: Sequence[Message], events: Sequence[MemoryEvent]) -> float:
    """How many of the messages are there with exactly their content."""
    contents = {event.message.index: event.message.content for event in events}
    equal = sum(contents.get(index) == message.content for index, message in enumerate(messages, start=1))
    return equal / len(messages) if messages else 1.0


def _messages(rows: Sequence[Mapping[str, Any]]) -> list[Message]:
    messages: list[Message] = []
    for number, row in enumerate(rows):
        fields = {
            name: row[name] for name in ("role", "content", "name", "tool_calls", "tool_call_id") if row.get(name)
        }
        if fields["role"] == Role.TOOL and "tool_call_id" not in fields:
            call = {"id": f"call_{number}", "function": {"name": row.get("name") or "tool", "arguments": "{}"}}
            messages += from_openai([{"role": "assistant", "tool_calls": [call]}])
            fields["tool_call_id"] = f"call_{number}"
        messages += from_openai([fields])
    return messages
