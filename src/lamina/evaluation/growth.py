"""How long it takes to add a message to a conversation that has many already."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lamina.conversation.short_term_stores import SQLiteMemory
from lamina.domain.message import Message
from lamina.domain.message_size import message_tokens
from lamina.evaluation.compaction import SESSION, thread_manager
from lamina.evaluation.transcripts import Transcript
from lamina.providers.tokens import EstimateCounter
from lamina.settings.tiers import ContextThresholds
from lamina.state.sqlite import SqliteStateStore

__all__ = ["DEFAULT_MARKS", "GrowthFigures", "joined", "measure_growth"]

DEFAULT_MARKS: Final = (1_000, 2_500, 5_000)
_SHARE: Final = 0.2
"""Of the way to the first mark: so many messages before each are looked at."""

Add = Callable[[Message], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class GrowthFigures:
    """The last messages before `messages` were there: how large they are, and milliseconds for each.

    `median` is what most cost, `mean` has the shortening in it, which comes now and then. `plain` is the median of
    the same messages in the same store with nothing managed.
    """

    way: str
    messages: int
    tokens_per_message: float
    median: float
    mean: float
    plain: float


def joined(transcripts: Iterable[Transcript], most: int) -> list[Message]:
    """The messages of all transcripts one after another, each with ids of calls of its own; over again until enough."""
    kept = list(transcripts)
    messages: list[Message] = []
    rounds = 0
    while kept and len(messages) < most:
        for number, transcript in enumerate(kept):
            messages += [_renamed(message, f"{rounds}.{number}") for message in transcript.messages]
        rounds += 1
        if not messages:
            break
    return messages[:most]


async def measure_growth(
    messages: Sequence[Message], *, pre_rot: int = 20_000, marks: Sequence[int] = DEFAULT_MARKS
) -> list[GrowthFigures]:
    """Add the messages one by one to a short-term memory and to a thread, each in an SQLite file of its own.

    Each message is added to all of them in turn, so that a busy moment of the machine falls on all.
    """
    marks = [mark for mark in sorted(marks) if mark <= len(messages)] or [len(messages)]
    thresholds = ContextThresholds(pre_rot_threshold=pre_rot)
    with tempfile.TemporaryDirectory(prefix="lamina-eval-") as folder:
        async with (
            SQLiteMemory(Path(folder) / "plain.db", enable_context_management=False) as plain,
            SQLiteMemory(Path(folder) / "memory.db", thresholds=thresholds) as memory,
            SqliteStateStore(Path(folder) / "threads.db") as store,
        ):
            manager = thread_manager(store, thresholds=thresholds, counter=EstimateCounter())
            ways: dict[str, Add] = {
                "plain": lambda message: plain.add(message, SESSION),
                "memory": lambda message: memory.add(message, SESSION),
                "thread": lambda message: manager.add_messages(SESSION, [message]),
            }
            times = await _timed(messages, ways)
    return [
        _figures(way, messages, times[way], times["plain"], mark=mark, looked_at=max(1, int(marks[0] * _SHARE)))
        for way in ("memory", "thread")
        for mark in marks
    ]


async def _timed(messages: Sequence[Message], ways: Mapping[str, Add]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {way: [] for way in ways}
    for message in messages:
        for way, add in ways.items():
            began = time.perf_counter()
            await add(message)
            times[way].append(1_000 * (time.perf_counter() - began))
    return times


def _figures(
    way: str,
    messages: Sequence[Message],
    times: Sequence[float],
    plain: Sequence[float],
    *,
    mark: int,
    looked_at: int,
) -> GrowthFigures:
    part = slice(max(0, mark - looked_at), mark)
    count = EstimateCounter().count
    return GrowthFigures(
        way=way,
        messages=mark,
        tokens_per_message=statistics.fmean(message_tokens(message, count) for message in messages[part]),
        median=statistics.median(times[part]),
        mean=statistics.fmean(times[part]),
        plain=statistics.median(plain[part]),
    )


def _renamed(message: Message, mark: str) -> Message:
    calls = [dataclasses.replace(call, id=f"{call.id}.{mark}") for call in message.tool_calls]
    answered = None if message.tool_call_id is None else f"{message.tool_call_id}.{mark}"
    return message.replace(tool_calls=calls, tool_call_id=answered)
