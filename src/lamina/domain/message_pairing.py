"""Messages in an order that providers take: each tool call right before its results, no result without its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.domain.message import Message, Role
from lamina.domain.text_fencing import fenced, label

__all__ = ["NO_RESULT", "paired"]

NO_RESULT: Final = "No result of this call was recorded."


def paired(messages: Sequence[Message]) -> list[Message]:
    """All messages, with results moved to their calls.

    A call without a result gets one that says so, as providers refuse the conversation otherwise; a result
    whose call does not stand before it, or a second one for the same call, is shown as data in the user's role.
    """
    results = _results(messages)
    taken = {id(result) for found in results.values() for result in found.values()}
    ordered: list[Message] = []
    for place, message in enumerate(messages):
        if message.role is Role.TOOL:
            if id(message) not in taken:
                ordered.append(_as_data(message))
            continue
        ordered.append(message)
        found = results.get(place, {})
        ordered += [found.get(call.id) or Message.tool(NO_RESULT, call_id=call.id) for call in message.tool_calls]
    return ordered


def _results(messages: Sequence[Message]) -> dict[int, dict[str, Message]]:
    """For the place of each message that calls tools: the first result of each of its calls."""
    waiting: dict[str, int] = {}
    found: dict[int, dict[str, Message]] = {}
    for place, message in enumerate(messages):
        for call in message.tool_calls:
            waiting[call.id] = place
        caller = waiting.get(message.tool_call_id) if message.tool_call_id is not None else None
        if message.role is Role.TOOL and message.tool_call_id is not None and caller is not None:
            del waiting[message.tool_call_id]
            found.setdefault(caller, {})[message.tool_call_id] = message
    return found


def _as_data(message: Message) -> Message:
    call = f' call="{label(message.tool_call_id)}"' if message.tool_call_id else ""
    text = f'<tool_result{call} trust="untrusted">\n{fenced(message.text)}\n</tool_result>'
    return Message(Role.USER, text, id=message.id, index=message.index, timestamp=message.timestamp)
