"""A computed context in the shape that a model takes: one text, OpenAI's messages, or Anthropic's.

All shapes say the same in the same order: what the host instructs, with Lamina's notice; the block of data, in
the user's role, never in the system's; the live conversation; the goal. Same context, same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from lamina.domain.context_block import Segment, block_text, data_block
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, Role, TextPart, ToolCall
from lamina.domain.message_formats import from_anthropic, from_openai
from lamina.domain.message_formats import to_anthropic as anthropic_messages
from lamina.domain.message_formats import to_openai as openai_messages
from lamina.domain.message_pairing import paired
from lamina.domain.message_size import MESSAGE_OVERHEAD, Count, message_tokens, messages_tokens
from lamina.domain.text_fencing import fenced, label

if TYPE_CHECKING:
    from lamina.domain.context import ComputedContext

__all__ = [
    "RenderedSizes",
    "messages_of",
    "prompt_segments",
    "to_anthropic",
    "to_openai",
    "to_prompt",
]

_SOME_BLOCK: Final = "<context>"
_ABSORBING: Final = (TokenSource.LABELS, TokenSource.CONVERSATION, TokenSource.GOAL, TokenSource.INSTRUCTIONS)
"""What takes the difference between a whole and the sum of its parts first."""


def to_prompt(context: ComputedContext) -> str:
    """One text, each part between marks of its own; pictures and files without text are named, not shown."""
    return _joined(prompt_segments(context))


def to_openai(context: ComputedContext) -> list[dict[str, Any]]:
    """Messages for chat completions: system, the data as the first user message, the conversation, the goal."""
    return openai_messages(messages_of(context))


def to_anthropic(context: ComputedContext) -> tuple[Any, list[dict[str, Any]]]:
    """The system prompt, and messages whose roles take turns: the data is the first block of the first user turn."""
    return anthropic_messages(messages_of(context))


def messages_of(context: ComputedContext) -> list[Message]:
    """What is sent, as messages: the shapes of providers are made from these."""
    return _messages_with(context, block_text(context), _conversation(context))


def _messages_with(context: ComputedContext, block: str, conversation: Sequence[Message]) -> list[Message]:
    opening = 0
    while opening < len(conversation) and conversation[opening].role is Role.SYSTEM:
        opening += 1
    instructions = _instructions(context, has_data=bool(block))
    return [
        *([Message.system(instructions)] if instructions else []),
        *conversation[:opening],
        *([Message.user(block)] if block else []),
        *conversation[opening:],
        *_goal(context, conversation),
    ]


def prompt_segments(context: ComputedContext) -> list[Segment]:
    """The plain text in pieces, which are to be joined without anything between."""
    block = data_block(context)
    before, behind = _around(context, _conversation(context), has_data=bool(block))
    return [*before, *block, *behind]


def _around(
    context: ComputedContext, conversation: Sequence[Message], *, has_data: bool
) -> tuple[list[Segment], list[Segment]]:
    """What stands before and behind the block of data in the plain text."""
    instructions = _instructions(context, has_data=has_data)
    before = [Segment(TokenSource.INSTRUCTIONS, f"{instructions}\n\n")] if instructions else []
    behind = [Segment(TokenSource.LABELS, "\n\n")] if has_data else []
    if conversation:
        told = "\n".join(_told(message) for message in conversation)
        behind.append(Segment(TokenSource.CONVERSATION, f"<conversation>\n{told}\n</conversation>\n\n"))
    goal = [f"<goal>\n{fenced(message.text)}\n</goal>\n" for message in _goal(context, conversation)]
    return before, behind + [Segment(TokenSource.GOAL, text) for text in goal]


def _sent_tokens(messages: Sequence[Message], form: Form, count: Count) -> int:
    """What the messages cost as a provider of this shape gets them, read back; mere text is told without that."""
    if all(map(_is_speech, messages)):
        if form is Form.OPENAI:
            return messages_tokens(messages, count)
        turns = [message for message in messages if message.role is not Role.SYSTEM]
        if turns and turns[0].role is Role.USER:  # what one side says in a row is one message
            joined = sum(former.role is each.role for former, each in pairwise(turns))
            return messages_tokens(messages, count) - joined * MESSAGE_OVERHEAD
    if form is Form.OPENAI:
        return messages_tokens(from_openai(openai_messages(messages)), count)
    system, sent = anthropic_messages(messages)
    return messages_tokens(from_anthropic(sent, system=system), count)


def _is_speech(message: Message) -> bool:
    """Whether it is text that can be seen, and nothing else."""
    beside = message.name or message.tool_calls or message.tool_call_id or message.extra or message.role is Role.TOOL
    return isinstance(message.content, str) and not beside and bool(message.content.strip())


class RenderedSizes:
    """What a context costs in each form, tokens of everything that is sent, with this block of data or that.

    What stands around the block is rendered and counted once, so that many blocks can be tried; `count` is asked
    for the same texts again and again, and should remember them.
    """

    def __init__(self, context: ComputedContext, count: Count) -> None:
        self._context = context
        self._count = count
        self._conversation = _conversation(context)
        self._segments: dict[bool, tuple[list[Segment], list[Segment]]] = {}
        self._texts: dict[bool, tuple[str, str]] = {}
        self._messages: dict[tuple[Form, bool], int] = {}

    def size(self, form: Form, block: str) -> int:
        """With this text of the block; the empty one means that there is no data."""
        has_data = bool(block)
        if form is Form.PLAIN:
            before, behind = self._text_around(has_data=has_data)
            return self._count(f"{before}{block}{behind}")
        return self._size_around(form, has_data=has_data) + (self._count(block) if has_data else 0)

    def spent(self, form: Form, block: Sequence[Segment]) -> dict[TokenSource, int]:
        """What the context costs in this form with this block, by what it is spent on; the sum is `size`.

        Each part counts as it does alone; what the whole costs more or less goes to those that are not data, while
        they have something to give.
        """
        context, count, conversation = self._context, self._count, self._conversation
        spent = dict.fromkeys(TokenSource, 0)
        segments = block
        if form is Form.PLAIN:
            opening, rest = self._around(has_data=bool(block))
            segments = [*opening, *block, *rest]
        else:
            if instructions := _instructions(context, has_data=bool(block)):
                spent[TokenSource.INSTRUCTIONS] = message_tokens(Message.system(instructions), count)
            spent[TokenSource.LABELS] = MESSAGE_OVERHEAD if block else 0
            spent[TokenSource.CONVERSATION] = messages_tokens(conversation, count)
            spent[TokenSource.GOAL] = messages_tokens(_goal(context, conversation), count)
        for segment in segments:
            spent[segment.source] += count(segment.text)
        difference = self.size(form, _joined(block)) - sum(spent.values())
        for source in (*_ABSORBING, *TokenSource):
            before = spent[source]
            spent[source] = max(0, before + difference)  # turns that a provider joins or parts that it has no place for
            difference -= spent[source] - before
        return spent

    def _around(self, *, has_data: bool) -> tuple[list[Segment], list[Segment]]:
        if has_data not in self._segments:
            self._segments[has_data] = _around(self._context, self._conversation, has_data=has_data)
        return self._segments[has_data]

    def _text_around(self, *, has_data: bool) -> tuple[str, str]:
        if has_data not in self._texts:
            before, behind = self._around(has_data=has_data)
            self._texts[has_data] = _joined(before), _joined(behind)
        return self._texts[has_data]

    def _size_around(self, form: Form, *, has_data: bool) -> int:
        """Of the messages without their block of data, which is counted as a text of its own in either form."""
        if (form, has_data) not in self._messages:
            some = _SOME_BLOCK if has_data else ""
            sent = _messages_with(self._context, some, self._conversation)
            own = self._count(some) if some else 0
            self._messages[form, has_data] = _sent_tokens(sent, form, self._count) - own
        return self._messages[form, has_data]


def _joined(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def _instructions(context: ComputedContext, *, has_data: bool) -> str:
    addition = context.engine.system_addition if context.engine is not None else ""
    parts = (context.instructions, addition, context.notice if has_data else "")
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _conversation(context: ComputedContext) -> list[Message]:
    if context.engine is not None and context.engine.replaces_conversation:
        return paired(context.engine.messages)
    own = context.conversation.messages if context.conversation is not None else []
    added = context.engine.messages if context.engine is not None else []
    return paired([*added, *own])


def _goal(context: ComputedContext, conversation: Sequence[Message]) -> list[Message]:
    """The goal as the last message, unless the conversation ends with it already."""
    last = conversation[-1] if conversation else None
    if not context.goal.strip() or (last and last.role is Role.USER and last.text.strip() == context.goal.strip()):
        return []
    return [Message.user(context.goal)]


def _told(message: Message) -> str:
    name = f' name="{label(message.name)}"' if message.name else ""
    call = f' call="{label(message.tool_call_id)}"' if message.tool_call_id else ""
    parts = message.content if isinstance(message.content, list) else [TextPart(message.content)]
    told = [text for text in map(_told_part, parts) if text] + [_told_call(each) for each in message.tool_calls]
    return f'<message role="{message.role.value}"{name}{call}>\n' + "\n".join(told) + "\n</message>"


def _told_part(part: object) -> str:
    match part:
        case TextPart(text=text):
            return fenced(text)
        case ReasoningPart(text=text):
            return f"<reasoning>\n{fenced(text)}\n</reasoning>" if text else ""
        case FilePart(text=str(text), name=name):
            return f'<file name="{label(name or "")}">\n{fenced(text)}\n</file>'
        case FilePart(name=name):
            return f'<file name="{label(name or "")}"/>'
        case ImagePart():
            return "<image/>"
        case OpaquePart(kind=kind):
            return f'<part kind="{label(kind)}"/>'
    return ""


def _told_call(call: ToolCall) -> str:
    return f'<tool_call id="{label(call.id)}" name="{label(call.name)}">\n{fenced(call.arguments)}\n</tool_call>'
