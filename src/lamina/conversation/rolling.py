"""The rolling summary: what is written anew at each folding joined with what was known, within a fixed size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lamina.conversation.transcript import shortened
from lamina.domain.message_size import Count
from lamina.domain.text import clean, content_digest, is_blank
from lamina.domain.thread import Summary, SummarySource

__all__ = ["MAX_FACT_CHARS", "SummaryDraft", "bounded", "one_line", "rendered"]

MAX_FACT_CHARS: Final = 300
_MAX_TOPIC_CHARS: Final = 60
_TOPICS: Final = 12
_FACTS_SHARE: Final = 0.45
_TOPICS_SHARE: Final = 0.1
_SPACES: Final = re.compile(r"\s+")
_FACTS_HEADING: Final = "Known facts:"
_TOPICS_HEADING: Final = "Topics: "


@dataclass(slots=True)
class SummaryDraft:
    """A summary before it is given its place: the text, and what is listed beside it.

    `new_topics` and `new_facts` are those that its writer found in the messages, of any number and size.
    """

    text: str
    topics: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    source: SummarySource = SummarySource.EXTRACTIVE
    new_topics: list[str] = field(default_factory=list)
    new_facts: list[str] = field(default_factory=list)


def rendered(summary: Summary | SummaryDraft) -> str:
    """The summary as a model reads it: the text, the facts that are known, the topics."""
    parts = [summary.text]
    if summary.facts:
        parts.append("\n".join([_FACTS_HEADING, *(f"- {fact}" for fact in summary.facts)]))
    if summary.topics:
        parts.append(_TOPICS_HEADING + ", ".join(summary.topics))
    return "\n\n".join(part for part in parts if part)


def bounded(draft: SummaryDraft, previous: Summary | SummaryDraft | None, *, limit: int, count: Count) -> SummaryDraft:
    """The draft with the facts and topics of the summary before it, in at most `limit` tokens when rendered.

    The facts are a list of their own, and the oldest and the newest outlast those between: so what was
    learnt in the first folding is still there after many, although each text is written anew.
    """
    before = previous or SummaryDraft("")
    facts = _fitted(
        _distinct([*before.facts, *draft.new_facts], MAX_FACT_CHARS),
        int(limit * _FACTS_SHARE),
        count,
        f"{_FACTS_HEADING}\n",
    )
    topics = _distinct([*before.topics, *draft.new_topics], _MAX_TOPIC_CHARS)
    topics = _fitted(_ends(topics, _TOPICS), int(limit * _TOPICS_SHARE), count, _TOPICS_HEADING)
    text = clean(draft.text).strip()
    room = limit - count(rendered(SummaryDraft("", topics, facts))) - 4
    new_topics, new_facts = draft.new_topics, draft.new_facts
    if isinstance(before, SummaryDraft):  # another piece of the same folding
        new_topics, new_facts = [*before.new_topics, *new_topics], [*before.new_facts, *new_facts]
    made = SummaryDraft(shortened(text, room, count), topics, facts, draft.source, new_topics, new_facts)
    while (excess := count(rendered(made)) - limit) > 0 and room > 0:
        room -= excess
        made.text = shortened(text, room, count)
    return made


def one_line(text: str, most: int) -> str:
    """The text cleaned, on one line, and of at most so many characters."""
    line = _SPACES.sub(" ", clean(text)).strip()
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _distinct(texts: Iterable[str], most_chars: int) -> list[str]:
    found: dict[str, str] = {}
    for text in texts:
        line = one_line(text, most_chars)
        if not is_blank(line):
            found.setdefault(content_digest(line.casefold()), line)
    return list(found.values())


def _ends(texts: Sequence[str], most: int) -> list[str]:
    """The oldest and the newest, so many in all."""
    if len(texts) <= most:
        return list(texts)
    older = most // 2
    return [*texts[:older], *texts[len(texts) - (most - older) :]]


def _fitted(texts: Sequence[str], room: int, count: Count, heading: str) -> list[str]:
    """As many of the oldest and the newest as there is room for, half of it for the oldest."""
    sizes = [count(f"- {text}\n") for text in texts]
    room -= count(heading)
    if sum(sizes) <= room:
        return list(texts)
    first, used = 0, 0
    while first < len(texts) and used + sizes[first] <= room // 2:
        used += sizes[first]
        first += 1
    last = len(texts)
    while last > first and used + sizes[last - 1] <= room:
        last -= 1
        used += sizes[last]
    return [*texts[:first], *texts[last:]]
