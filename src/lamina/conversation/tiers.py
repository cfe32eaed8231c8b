"""The decisions of the token tiers: in which one a conversation is, and what is to be shortened.

Pure: sizes and messages in, places out. The same rules serve sessions of short-term memory and threads of the
conversation manager. Reversible comes before irreversible: references first, and a summary only if they
were not enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from lamina.conversation.compaction import is_compacted
from lamina.domain.message import Message, Role
from lamina.domain.message_groups import group_start
from lamina.domain.thread import ThreadEvent
from lamina.settings.tiers import ContextThresholds

__all__ = [
    "ContextReport",
    "Tier",
    "is_worth_a_summary",
    "must_summarize",
    "tail_start",
    "tier_of",
    "to_compact",
    "to_summarize",
]

_LEAST_WORTH: Final = 0.5
"""How many tokens, beside a summary's limit, there must be to replace: where the tail alone fills tier 3, each
message would else cost a summary."""


class Tier(IntEnum):
    """How much of the room a conversation uses, and what that leads to."""

    NORMAL = 1
    """Everything in full."""
    COMPACTION = 2
    """Older messages are replaced by references; their originals are kept, and can be put back."""
    SUMMARIZATION = 3
    """What is older is replaced by a structured summary; the messages go to the archive."""


@dataclass(slots=True)
class ContextReport:
    """What was done about the size of a conversation.

    `compacted` and `summarized` count messages. `gain` is how many tokens references saved. `over_budget`
    says that it is still in tier 3, because what must stay in full is that large. `warnings` says what
    failed; nothing was lost by it, and it is tried again.
    """

    tier: Tier
    tokens_before: int
    tokens_after: int
    compacted: int = 0
    summarized: int = 0
    gain: int = 0
    over_budget: bool = False
    warnings: list[str] = field(default_factory=list)


def tier_of(tokens: int, thresholds: ContextThresholds) -> Tier:
    """The tier of a conversation of so many tokens; a trigger belongs to the higher tier."""
    if tokens >= thresholds.summarize_from:
        return Tier.SUMMARIZATION
    return Tier.COMPACTION if tokens >= thresholds.compact_from else Tier.NORMAL


def must_summarize(tokens: int, gain: int, thresholds: ContextThresholds) -> bool:
    """Whether references were not enough: still in tier 3, or, if that is asked for, they gained too little."""
    if tokens >= thresholds.summarize_from:
        return True
    least = thresholds.min_compaction_gain
    return least is not None and tokens >= thresholds.compact_from and gain < least * thresholds.pre_rot_threshold


def tail_start(messages: Sequence[Message], recent_to_keep: int) -> int:
    """The place from which messages stay in full: at least the last `recent_to_keep`, and no group cut in two.

    A tool call that may yet be answered stays as well: one without a result, and nobody but tools after it.
    """
    return group_start(messages, min(max(0, len(messages) - recent_to_keep), _first_open_call(messages)))


def to_compact(events: Sequence[ThreadEvent], thresholds: ContextThresholds) -> list[int]:
    """The places of events to replace by references: older than the tail, not yet replaced, not of the role system."""
    start = tail_start([event.message for event in events], thresholds.recent_to_keep)
    older = math.ceil(start * thresholds.compaction_fraction)
    return [place for place in range(older) if _is_eligible(events[place])]


def to_summarize(events: Sequence[ThreadEvent], recent_to_keep: int) -> int:
    """How many of the events, from the oldest on, a summary is to replace; 0 if all of them are of the role system."""
    messages = [event.message for event in events]
    start = tail_start(messages, recent_to_keep)
    return start if any(message.role is not Role.SYSTEM for message in messages[:start]) else 0


def is_worth_a_summary(older: Sequence[ThreadEvent], thresholds: ContextThresholds) -> bool:
    """Whether these events are large enough, as they stand, for a summary to take their place."""
    return sum(event.tokens for event in older) >= thresholds.summary_limit * _LEAST_WORTH


def _is_eligible(event: ThreadEvent) -> bool:
    return event.message.role is not Role.SYSTEM and bool(event.message.content) and not is_compacted(event)


def _first_open_call(messages: Sequence[Message]) -> int:
    """The place of the first message whose tool calls may yet be answered; the number of messages if there is none."""
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role in {Role.USER, Role.ASSISTANT}:
            open_calls.clear()
        for call in message.tool_calls:
            open_calls[call.id] = place
        if message.role is Role.TOOL and message.tool_call_id is not None:
            open_calls.pop(message.tool_call_id, None)
    return min(open_calls.values(), default=len(messages))
