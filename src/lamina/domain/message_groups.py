"""Which messages must stay together: a tool call and its results, whatever is cut."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.message import Message, Role

__all__ = ["atomic_groups", "callers_of", "group_start", "orphans", "results_by_caller", "sendable"]


def atomic_groups(messages: Sequence[Message]) -> list[range]:
    """The places of the messages, cut into runs that may only be kept or dropped whole; in order, without gaps.

    A message that calls tools is in one run with everything up to the last result of its calls,
    parallel ones and messages in between included. Every other message is a run of its own. A result
    belongs to the last message before it that made a call of its id.
    """
    last_result: list[int] = list(range(len(messages)))
    for place, caller in enumerate(callers_of(messages)):
        if caller is not None:
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


def callers_of(messages: Sequence[Message]) -> list[int | None]:
    """For each tool result the place of the message that called, if there is one before it; None for all others."""
    caller_of: dict[str, int] = {}
    callers: list[int | None] = []
    for place, message in enumerate(messages):
        is_result = message.role is Role.TOOL and message.tool_call_id is not None
        callers.append(caller_of.get(message.tool_call_id or "") if is_result else None)
        caller_of.update((call.id, place) for call in message.tool_calls)
    return callers


def group_start(messages: Sequence[Message], place: int) -> int:
    """The place where the group of this place begins; a place behind all messages stays as it is."""
    return next((group.start for group in atomic_groups(messages) if place in group), place)


def orphans(messages: Sequence[Message]) -> list[int]:
    """The places of tool results whose call does not stand before them: providers refuse these."""
    callers = callers_of(messages)
    return [place for place, message in enumerate(messages) if message.role is Role.TOOL and callers[place] is None]


def results_by_caller(messages: Sequence[Message]) -> dict[int, dict[str, Message]]:
    """For the place of each message that called: the first result of each of its calls that has one, by call id."""
    results: dict[int, dict[str, Message]] = {}
    for message, caller in zip(messages, callers_of(messages), strict=True):
        if caller is not None and message.tool_call_id is not None:
            results.setdefault(caller, {}).setdefault(message.tool_call_id, message)
    return results


def sendable(messages: Sequence[Message]) -> list[Message]:
    """The messages as providers take them, with every tool call and its result side by side.

    Results stand directly behind the message that called, in the order in which they came. Left out are
    results without a call before them, a second result of the same call, and calls that were never
    answered: those of the end, whose results may still come, are kept, and so is what was said beside them.
    """
    results = results_by_caller(messages)
    last_spoken = max((place for place, each in enumerate(messages) if each.role is not Role.TOOL), default=-1)
    sent: list[Message] = []
    for place, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue
        answers = results.get(place, {})
        kept = message
        if message.tool_calls and place != last_spoken:
            answered = [call for call in message.tool_calls if call.id in answers]
            if not answered and not message.content:
                continue
            if len(answered) != len(message.tool_calls):
                kept = message.replace(tool_calls=answered)
        sent += [kept, *answers.values()]
    return sent
