"""The structured summary: what of a conversation its continuation needs, as fields and not as prose."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from lamina.conversation.extractive import extract
from lamina.domain.message_size import Count
from lamina.domain.text import snake_case
from lamina.domain.text_fencing import fenced
from lamina.domain.thread import SummarySource, ThreadEvent
from lamina.domain.validation import check_instant, check_whole_number
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "StructuredSummary",
    "TimeRange",
    "complete_summary",
    "fitted",
    "summary_from_json",
    "summary_text",
    "united",
]

MAX_FILES: Final = 40
MAX_DECISIONS: Final = 24
MAX_CONTEXT_KEYS: Final = 24
MAX_VALUE_CHARS: Final = 300

_LISTS: Final = ("modified_files", "key_decisions")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From the first message to the last one that a summary stands for."""

    start: datetime
    end: datetime


@dataclass(slots=True)
class StructuredSummary:
    """What stands for the older messages of a conversation. Treat it as a value.

    `count` messages, from `time_range`. The rest may be empty; `extra` holds further fields of a host's
    own summariser. A summariser may leave `count`, `time_range` and `timestamp` out (None): they are filled in.
    """

    count: int | None = None
    time_range: TimeRange | None = None
    timestamp: datetime | None = None
    content: str | None = None
    modified_files: list[str] = field(default_factory=list)
    user_goal: str | None = None
    last_step: str | None = None
    key_decisions: list[str] = field(default_factory=list)
    critical_context: dict[str, Any] = field(default_factory=dict)
    source: SummarySource = SummarySource.CUSTOM
    extra: dict[str, Any] = field(default_factory=dict)

    def replace(self, **changes: Any) -> StructuredSummary:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing about the messages but how many there were."""
        texts = [self.content, self.user_goal, self.last_step, *self.modified_files, *self.key_decisions]
        return not (any(text and text.strip() for text in texts) or self.critical_context or self.extra)

    def to_json(self) -> dict[str, Any]:
        """Its JSON form, times in ISO 8601."""
        time_range = self.time_range
        return {
            **self.extra,
            "count": self.count,
            "time_range": None
            if time_range is None
            else {"start": time_range.start.isoformat(), "end": time_range.end.isoformat()},
            "timestamp": None if self.timestamp is None else self.timestamp.isoformat(),
            "content": self.content,
            "modified_files": list(self.modified_files),
            "user_goal": self.user_goal,
            "last_step": self.last_step,
            "key_decisions": list(self.key_decisions),
            "critical_context": dict(self.critical_context),
            "source": self.source.value,
        }


def summary_from_json(data: Any, *, source: SummarySource = SummarySource.CUSTOM) -> StructuredSummary:
    """The summary of its JSON form, or of what a host's summariser returned: keys in snake_case or camelCase.

    Unknown keys go to `extra`. A text alone is its `content`.

    Raises:
        InvalidType: it is no summary, or a field has the wrong type.
        InvalidInput: a time cannot be read.
    """
    if isinstance(data, StructuredSummary):
        data = data.to_json()
    if isinstance(data, str):
        data = {"content": data}
    if not isinstance(data, Mapping):
        problem = f"must be a StructuredSummary or a mapping, not {type(data).__name__}"
        raise InvalidType("summary", problem, "Return such an object.")
    given = {snake_case(str(key)): value for key, value in data.items()}
    return StructuredSummary(
        count=_count(given.pop("count", None)),
        time_range=_time_range(given.pop("time_range", None)),
        timestamp=_instant("timestamp", given.pop("timestamp", None)),
        source=_source(given.pop("source", None), source),
        critical_context=_mapping("critical_context", given.pop("critical_context", None)),
        content=_text("content", given.pop("content", None)),
        user_goal=_text("user_goal", given.pop("user_goal", None)),
        last_step=_text("last_step", given.pop("last_step", None)),
        modified_files=_texts("modified_files", given.pop("modified_files", None)),
        key_decisions=_texts("key_decisions", given.pop("key_decisions", None)),
        extra=given,
    )


def complete_summary(
    summary: StructuredSummary, events: Sequence[ThreadEvent], previous: StructuredSummary | None, *, now: datetime
) -> StructuredSummary:
    """The summary with `count`, `time_range` and `timestamp` as they are in fact; what went before is counted in."""
    times = [event.message.timestamp for event in events if event.message.timestamp is not None]
    if previous is not None and previous.time_range is not None:
        times += [previous.time_range.start, previous.time_range.end]
    return summary.replace(
        count=len(events) + (previous.count or 0 if previous is not None else 0),
        time_range=TimeRange(min(times), max(times)) if times else TimeRange(now, now),
        timestamp=now if summary.timestamp is None else summary.timestamp,
    )


def summary_text(summary: StructuredSummary) -> str:
    """How a summary is shown to a model: one `[SUMMARY …]` in brackets, a field a line; nothing in it is a mark."""
    lines = [_head(summary)]
    if summary.source is SummarySource.EXTRACTIVE:
        lines.append("Sentences and facts picked from the messages, without a model.")
    lines += [
        f"{label}: {text}" for label, text in (("Goal", summary.user_goal), ("Last step", summary.last_step)) if text
    ]
    if summary.key_decisions:
        lines += ["Decisions:", *(f"- {each}" for each in summary.key_decisions)]
    if summary.modified_files:
        lines.append(f"Modified files: {', '.join(summary.modified_files)}")
    lines += [f"{key}: {_shown(value)}" for key, value in {**summary.critical_context, **summary.extra}.items()]
    if summary.content:
        lines.append(summary.content)
    return fenced("\n".join(lines)) + "]"


def fitted(summary: StructuredSummary, max_tokens: int, count: Count) -> StructuredSummary:
    """The summary, shortened until its text has at most `max_tokens`: lists and values first, then what was said.

    Only if the bare head does not fit, the result is longer than that.
    """
    fitting = summary.replace(
        modified_files=_last_distinct(summary.modified_files, MAX_FILES),
        key_decisions=[_clipped(each) for each in _last_distinct(summary.key_decisions, MAX_DECISIONS)],
        critical_context=_bounded(summary.critical_context),
        extra=_bounded(summary.extra),
    )
    content, fitting = fitting.content, fitting.replace(content=None)
    # Without its content, half of the room: what is fixed in fields must leave some to what was said.
    while count(summary_text(fitting)) > max_tokens // 2 and (shorter := _shorter(fitting)) is not None:
        fitting = shorter
    if content:
        room = max_tokens - count(summary_text(fitting)) - 1
        whole = content if count(content) <= room else extract([], max_tokens=room, count=count, previous=content)
        fitting = fitting.replace(content=whole or None)
        while fitting.content and count(summary_text(fitting)) > max_tokens:
            room -= max(1, room // 50)
            fitting = fitting.replace(content=extract([], max_tokens=room, count=count, previous=content) or None)
    return fitting


def united(newer: StructuredSummary, older: StructuredSummary | None) -> StructuredSummary:
    """The newer summary with what it leaves out of the older one: the goal, decisions, files and context of before."""
    if older is None:
        return newer
    return newer.replace(
        user_goal=newer.user_goal or older.user_goal,
        last_step=newer.last_step or older.last_step,
        modified_files=_last_distinct([*older.modified_files, *newer.modified_files], MAX_FILES),
        key_decisions=_last_distinct([*older.key_decisions, *newer.key_decisions], MAX_DECISIONS),
        critical_context={**older.critical_context, **newer.critical_context},
        extra={**older.extra, **newer.extra},
    )


def _head(summary: StructuredSummary) -> str:
    head = f"[SUMMARY of {summary.count or 0} earlier messages"
    if summary.time_range is not None:
        start, end = (f"{each:%Y-%m-%d %H:%M}" for each in (summary.time_range.start, summary.time_range.end))
        head += f", {start}" if start == end else f", {start} to {end}"
    return f"{head}."


def _shorter(summary: StructuredSummary) -> StructuredSummary | None:
    """Without the oldest of the longest list; when all lists are empty, without the texts; None at the end."""
    lists = {
        "modified_files": summary.modified_files,
        "key_decisions": summary.key_decisions,
        "critical_context": list(summary.critical_context),
        "extra": list(summary.extra),
    }
    name, longest = max(lists.items(), key=lambda item: len(item[1]))
    if len(longest) > 0:
        dropped = max(1, len(longest) // 4)
        if name in _LISTS:
            return summary.replace(**{name: longest[dropped:]})
        kept = getattr(summary, name)
        return summary.replace(**{name: {key: kept[key] for key in longest[dropped:]}})
    for name in ("last_step", "user_goal"):
        text = getattr(summary, name)
        if text:
            return summary.replace(**{name: text[: len(text) // 2].rstrip() or None})
    return None


def _last_distinct(texts: Iterable[str], most: int) -> list[str]:
    """The last ones, each once, in order; of equal ones the last."""
    return list(dict.fromkeys(reversed([text for text in texts if text.strip()])))[:most][::-1]


def _bounded(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = list(values.items())[-MAX_CONTEXT_KEYS:]
    return {
        _clipped(key): value if len(_shown(value)) <= MAX_VALUE_CHARS else _clipped(_shown(value))
        for key, value in kept
    }


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 1].rstrip()}…"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value.strip() or None if value else None
    raise InvalidType(f"summary.{name}", f"must be text, not {type(value).__name__}", "Give a str, or None.")


def _texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(each, str) for each in value):
        return [each.strip() for each in value if each.strip()]
    raise InvalidType(f"summary.{name}", "must be a list of texts", "Give a list of str.")


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    raise InvalidType(f"summary.{name}", f"must be a mapping, not {type(value).__name__}", "Give a dict.")


def _count(value: Any) -> int | None:
    return None if value is None else check_whole_number("summary.count", value, 0, 2**31)


def _source(value: Any, default: SummarySource) -> SummarySource:
    return SummarySource(value) if isinstance(value, str) and value in set(SummarySource) else default


def _time_range(value: Any) -> TimeRange | None:
    if value is None or isinstance(value, TimeRange):
        return value
    if isinstance(value, Mapping) and (start := _instant("time_range.start", value.get("start"))) is not None:
        end = _instant("time_range.end", value.get("end"))
        return TimeRange(start, start if end is None else end)
    raise InvalidType("summary.time_range", "must hold a start and an end", "Give a TimeRange, or leave it out.")


def _instant(name: str, value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"summary.{name}", "is no time in ISO 8601", "Give an aware datetime.") from None
    return None if value is None else check_instant(f"summary.{name}", value)
