"""Messages cut to a budget: from the oldest, never a system message, never a call without its results. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.message import Message, Role
from lamina.domain.message_groups import atomic_groups, orphans
from lamina.domain.message_size import Count, message_tokens

__all__ = ["trim_messages", "without_orphans"]


def trim_messages(messages: Sequence[Message], budget: int, count: Count) -> tuple[list[Message], list[Message]]:
    """What is kept and what is cut, both in order.

    System messages and the last group stay whatever they cost, so what is kept may still be above the budget.
    Where anything is cut, what is left of the talk begins with the user if the user still speaks in it:
    some providers refuse a conversation that begins with the model.
    """
    sizes = [message_tokens(message, count) for message in messages]
    excess = sum(sizes) - budget
    groups = atomic_groups(messages)
    cut: set[int] = set()
    last_user = max((place for place, message in enumerate(messages) if message.role is Role.USER), default=-1)
    for group in groups[:-1]:
        speech = [place for place in group if messages[place].role is not Role.SYSTEM]
        begins_well = not cut or not speech or messages[speech[0]].role is Role.USER or last_user < group.start
        if excess <= 0 and begins_well:
            if speech:
                break
            continue
        cut.update(speech)
        excess -= sum(sizes[place] for place in speech)
    kept = [message for place, message in enumerate(messages) if place not in cut]
    return kept, [messages[place] for place in sorted(cut)]


def without_orphans(messages: Sequence[Message]) -> list[Message]:
    """The messages without tool results whose call is not there."""
    lost = set(orphans(messages))
    return [message for place, message in enumerate(messages) if place not in lost]
