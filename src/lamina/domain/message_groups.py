"""Which messages must stay together: a tool call and its results, whatever is cut."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.message import Message, Role

__all__ = ["atomic_groups", "orphans"]


def atomic_groups(messages: Sequence[Message]) -> list[range]:
    """The places of the messages, cut into runs that may only be kept or dropped whole; in order, without gaps.

    A message that calls tools is in one run with everything up to the last result of its calls,
    parallel ones and messages in between included. Every other message is a run of its own.
    """
    last_result: list[int] = list(range(len(messages)))
    caller_of: dict[str, int] = {}
    for place, message in enumerate(messages):
        for call in message.tool_calls:
            caller_of[call.id] = place
        caller = caller_of.get(message.tool_call_id) if message.tool_call_id is not None else None
        if message.role is Role.TOOL and caller is not None:
            last_result[caller] = place
    groups: list[range] = []
    start = 0
    end = -1
    for place, last in enumerate(last_result):
        end = max(end, last)
        if place == end:
            groups.append(range(start, end + 1))
            start = end + 1
    return groups


def orphans(messages: Sequence[Message]) -> list[int]:
    """The places of tool results whose call does not stand before them: providers refuse these."""
    called: set[str] = set()
    found: list[int] = []
    for place, message in enumerate(messages):
        called.update(call.id for call in message.tool_calls)
        if message.role is Role.TOOL and message.tool_call_id not in called:
            found.append(place)
    return found
