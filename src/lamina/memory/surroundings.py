"""What stands around a memory in its conversation, who said it, and when it was: pure arithmetic.

A turn of a conversation seldom answers a question alone: what answers it stands between turns that are close to the
question too. So memories of one conversation lend each other similarity. Only candidates of the same recall count,
and only what exceeds the closeness of its weaker half. A memory belongs to a
conversation if its `source` begins with `conversation:`, and stands beside those stored right before and after it
from the same source. Where that is unknown, nothing is assumed. A long text stands more for itself than a short one,
and borrows less. The figures are in `docs/retrieval.md`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from lamina.domain.memory import MemoryEntry
from lamina.domain.periods import Period
from lamina.memory.dating import timeliness
from lamina.ports.memory_requests import PoolEntry

__all__ = ["NEIGHBOURS", "borrowing", "conversation_of", "support"]

CONVERSATION: Final = "conversation:"
NEIGHBOURS: Final = ((1, 0.2), (2, 0.1))
"""How much the next, and the next but one, lend."""

CONVERSATION_SHARE: Final = 0.4
BEST_OF_CONVERSATION: Final = 3
"""The best three others of the conversation lend this share of their mean."""

SHORT: Final = 400
"""Characters: from here on what is lent falls with the length."""

SPEAKER: Final = 0.08
"""What it adds that the question names the memory's speaker, if it does not name all of them."""

_WORD: Final = re.compile(r"\w+")

Conversation = tuple[str, str, str, str]


def support(
    query: str,
    entries: Sequence[MemoryEntry | PoolEntry],
    similarities: Sequence[float],
    periods: Sequence[Period] = (),
) -> list[float]:
    """What is added to each entry's similarity, for each in order; never negative.

    `metadata["speaker"]` is who said it. `periods` are those that the query names; that an entry is of one of them
    is its own, and lent to no other.
    """
    named = _named(query, entries)
    places = [conversation_of(entry) for entry in entries]
    timely = timeliness(query, entries, periods)
    if not any(places):
        return [SPEAKER * is_named + of_time for is_named, of_time in zip(named, timely, strict=True)]
    known = [similarity + SPEAKER * is_named for similarity, is_named in zip(similarities, named, strict=True)]
    usual = fmean(sorted(known)[: max(1, len(known) // 2)]) if known else 0.0
    excess = [max(0.0, value - usual) for value in known]
    conversations: dict[Conversation, dict[int, float]] = defaultdict(dict)
    for entry, place, value in zip(entries, places, excess, strict=True):
        if place is not None:
            conversations[place][entry.seq] = value
    best = {place: sorted(members.values(), reverse=True) for place, members in conversations.items()}
    added = []
    for entry, place, own, is_named, of_time in zip(entries, places, excess, named, timely, strict=True):
        lent = 0.0 if place is None else _lent(entry.seq, own, conversations[place], best[place])
        added.append(SPEAKER * is_named + of_time + lent * borrowing(entry))
    return added


def borrowing(entry: MemoryEntry | PoolEntry) -> float:
    """What the entry takes of what others lend it, in (0, 1]: all, unless it is long."""
    return SHORT / max(SHORT, len(entry.content))


def conversation_of(entry: MemoryEntry | PoolEntry) -> Conversation | None:
    """The conversation that the entry is of: nobody else's of the same name."""
    if entry.source is None or not entry.source.startswith(CONVERSATION):
        return None
    return entry.tenant, entry.owner, entry.namespace, entry.source


def _lent(seq: int, own: float, members: Mapping[int, float], best: Sequence[float]) -> float:
    near = sum(share * (members.get(seq - step, 0.0) + members.get(seq + step, 0.0)) for step, share in NEIGHBOURS)
    stronger = best[: BEST_OF_CONVERSATION + 1]
    others = sum(stronger) - max(own, stronger[-1])  # an entry lends nothing to itself
    return near + CONVERSATION_SHARE * others / BEST_OF_CONVERSATION


def _named(query: str, entries: Sequence[MemoryEntry | PoolEntry]) -> list[bool]:
    """Whether the query names each entry's speaker; none, if it names all who spoke or nobody."""
    if not any(entry.metadata for entry in entries):
        return [False] * len(entries)
    words = set(_WORD.findall(query.casefold()))
    speakers = [str(entry.metadata.get("speaker") or "").casefold() for entry in entries]
    named = [bool(speaker) and words.issuperset(_WORD.findall(speaker)) for speaker in speakers]
    return [False] * len(named) if all(named) else named
