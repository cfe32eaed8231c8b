"""A computed context in the shape that a model takes: one text, OpenAI's messages, or Anthropic's.

All shapes say the same in the same order: what the host instructs, with Lamina's notice; the block of data, in
the user's role, never in the system's; the live conversation; the goal. Same context, same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    "messages_of",
    "prompt_segments",
    "rendered_size",
    "rendered_tokens",
    "to_anthropic",
    "to_openai",
    "to_prompt",
]


def to_prompt(context: ComputedContext) -> str:
    """One text, each part between marks of its own; pictures and files without text are named, not shown."""
    return "".join(segment.text for segment in prompt_segments(context))


def to_openai(context: ComputedContext) -> list[dict[str, Any]]:
    """Messages for chat completions: system, the data as the first user message, the conversation, the goal."""
    return openai_messages(messages_of(context))


def to_anthropic(context: ComputedContext) -> tuple[Any, list[dict[str, Any]]]:
    """The system prompt, and messages whose roles take turns: the data is the first block of the first user turn."""
    return anthropic_messages(messages_of(context))


def messages_of(context: ComputedContext) -> list[Message]:
    """What is sent, as messages: the shapes of providers are made from these."""
    block = block_text(context)
    conversation = _conversation(context)
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
    conversation = _conversation(context)
    instructions = _instructions(context, has_data=bool(block))
    segments = [Segment(TokenSource.INSTRUCTIONS, f"{instructions}\n\n")] if instructions else []
    segments += block
    if block:
        segments.append(Segment(TokenSource.LABELS, "\n\n"))
    if conversation:
        told = "\n".join(_told(message) for message in conversation)
        segments.append(Segment(TokenSource.CONVERSATION, f"<conversation>\n{told}\n</conversation>\n\n"))
    goal = [f"<goal>\n{fenced(message.text)}\n</goal>\n" for message in _goal(context, conversation)]
    return segments + [Segment(TokenSource.GOAL, text) for text in goal]


def _sent_messages(context: ComputedContext, form: Form) -> list[Message]:
    """What a provider of this shape really gets, read back as messages."""
    if form is Form.OPENAI:
        return from_openai(to_openai(context))
    system, messages = to_anthropic(context)
    return from_anthropic(messages, system=system)


def rendered_size(context: ComputedContext, form: Form, count: Count) -> int:
    """What the context costs in this form, tokens of everything that is sent."""
    if form is Form.PLAIN:
        return count(to_prompt(context))
    return messages_tokens(_sent_messages(context, form), count)


def rendered_tokens(context: ComputedContext, form: Form, count: Count) -> dict[TokenSource, int]:
    """What the context costs in this form, by what it is spent on; the sum is `rendered_size`."""
    if form is Form.PLAIN:
        return _running(prompt_segments(context), count)
    spent = dict.fromkeys(TokenSource, 0)
    conversation = _conversation(context)
    block = data_block(context)
    if instructions := _instructions(context, has_data=bool(block)):
        spent[TokenSource.INSTRUCTIONS] = message_tokens(Message.system(instructions), count)
    for source, tokens in _running(block, count).items():
        spent[source] += tokens
    spent[TokenSource.LABELS] += MESSAGE_OVERHEAD if block else 0
    spent[TokenSource.CONVERSATION] = messages_tokens(conversation, count)
    spent[TokenSource.GOAL] = messages_tokens(_goal(context, conversation), count)
    difference = rendered_size(context, form, count) - sum(spent.values())
    for source in (TokenSource.LABELS, TokenSource.CONVERSATION, TokenSource.GOAL, TokenSource.INSTRUCTIONS):
        before = spent[source]
        spent[source] = max(0, before + difference)  # turns that a provider joins or parts that it has no place for
        difference -= spent[source] - before
    return spent


def _running(segments: Sequence[Segment], count: Count) -> dict[TokenSource, int]:
    """Each segment's share of the count of the whole: what the text grew by when it was added."""
    spent = dict.fromkeys(TokenSource, 0)
    text, before = "", 0
    for segment in segments:
        text += segment.text
        now = count(text)
        spent[segment.source] += now - before
        before = now
    return spent


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
