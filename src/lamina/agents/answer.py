"""What an executor gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lamina.domain.message import Message
from lamina.domain.usage import Usage

__all__ = ["AgentAnswer", "Executor"]


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An answer, with what a plain text cannot carry.

    `messages` are the messages of the turn after the goal: calls of tools, their results and, last, the
    answer. Empty means the answer alone. `usage` is what the executor spent beside the model that it was given.
    """

    text: str
    messages: list[Message] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


Executor: TypeAlias = Callable[..., Any]
"""Takes the intent, the computed context and the language model; more, if annotated `ToolContext`.

It returns text, a `Completion` or an `AgentAnswer`, or an awaitable of one; or it yields pieces of text, as an
async generator. What it raises makes the intent fail.
"""
