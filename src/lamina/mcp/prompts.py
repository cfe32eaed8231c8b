"""Prompts that a person picks in a client: recall a topic, remember a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import mcp_types as types
from pydantic import Field

from lamina.domain.recall import RecallResult
from lamina.domain.text_fencing import fenced, label
from lamina.errors import InvalidInput
from lamina.mcp.arguments import Arguments, Query, Text, read
from lamina.mcp.bound_memories import BoundMemories
from lamina.prompts import render

__all__ = ["get_prompt", "listed_prompts"]

_MOST_MEMORIES: Final = 10
_MAX_CHARS: Final = 2_000


class Recall(Arguments):
    topic: Query = Field(description="A question, or what it is about.")


class Remember(Arguments):
    text: Text = Field(description="What to keep for later conversations.")


_PROMPTS: Final[Mapping[str, tuple[str, str, type[Arguments]]]] = {
    "recall": (
        "Recall a topic",
        "Look a topic up in memory and tell what is known about it.",
        Recall,
    ),
    "remember": (
        "Remember this",
        "Store a text in memory, split into statements and without repeating what is known.",
        Remember,
    ),
}


def listed_prompts(*, writes: bool) -> list[types.Prompt]:
    """The prompts; one that stores is offered only where something can be stored."""
    return [
        types.Prompt(
            name=name,
            title=title,
            description=description,
            arguments=[
                types.PromptArgument(name=argument, description=field.description, required=field.is_required())
                for argument, field in kind.model_fields.items()
            ],
        )
        for name, (title, description, kind) in _PROMPTS.items()
        if writes or name != "remember"
    ]


async def get_prompt(
    memories: BoundMemories, name: str, given: Mapping[str, str] | None, *, writes: bool
) -> types.GetPromptResult:
    """The prompt, filled.

    Raises:
        InvalidInput: there is no such prompt, or an argument cannot be taken.
    """
    if name not in {each.name for each in listed_prompts(writes=writes)}:
        raise InvalidInput("name", "there is no such prompt here", "prompts/list tells which there are.")
    _, description, kind = _PROMPTS[name]
    arguments = read(kind, dict(given or {}))
    if isinstance(arguments, Recall):
        found = await memories.search(arguments.topic, limit=_MOST_MEMORIES)
        lines = "\n".join(map(_quoted, found)) or "(there are none)"
        text = render("mcp_recall", topic=fenced(arguments.topic), memories=lines)
    else:
        text = render("mcp_remember", text=fenced(arguments.text))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=description, messages=[message])


def _quoted(found: RecallResult) -> str:
    entry = found.entry
    text = entry.content if len(entry.content) <= _MAX_CHARS else f"{entry.content[:_MAX_CHARS]}…"
    return f'<memory id="{label(entry.id)}" trust="{entry.trust.value}">\n{fenced(text)}\n</memory>'
