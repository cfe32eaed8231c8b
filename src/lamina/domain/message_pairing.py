"""Messages in an order that providers take: each tool call right before its results, no result without its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.domain.message import Message, Role
from lamina.domain.message_groups import results_by_caller
from lamina.domain.text_fencing import fenced, label

__all__ = ["NO_RESULT", "paired"]

NO_RESULT: Final = "No result of this call was recorded."


def paired(messages: Sequence[Message]) -> list[Message]:
    """All messages, with results moved to their calls.

    A call without a result gets one that says so, as providers refuse the conversation otherwise; a result
    whose call does not stand before it, or a second one for the same call, is shown as data in the user's role.
    """
    results = results_by_caller(messages)
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


def _as_data(message: Message) -> Message:
    call = f' call="{label(message.tool_call_id)}"' if message.tool_call_id else ""
    text = f'<tool_result{call} trust="untrusted">\n{fenced(message.text)}\n</tool_result>'
    return Message(Role.USER, text, id=message.id, index=message.index, timestamp=message.timestamp)
