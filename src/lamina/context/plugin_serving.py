"""How the messages of a plug-in engine become part of a computed context: pure."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.context.manager import Assembly
from lamina.context.registered_engine import message_identity
from lamina.domain.context import EngineContribution
from lamina.domain.message import Message, Role

__all__ = ["contribution_of"]


def contribution_of(assembly: Assembly, given: Sequence[Message], goal: str) -> EngineContribution:
    """What the engine retrieved, and which messages it shows.

    If any of the thread's messages is among them, they are the conversation as the engine wants it
    shown; else they are additions, and the thread is shown as ever. A system message that the thread does not
    have is retrieved text, and is shown as data.
    """
    known = {message_identity(message) for message in given}
    retrieved: list[str] = []
    messages: list[Message] = []
    for message in assembly.messages:
        if message.role is Role.SYSTEM and message_identity(message) not in known:
            if message.text.strip():
                retrieved.append(message.text)
        else:
            messages.append(message)
    replaces = not given or any(message_identity(message) in known for message in messages)
    if not replaces and messages and _is_goal(messages[-1], goal):
        messages.pop()
    return EngineContribution(assembly.engine_id, retrieved, messages, replaces, assembly.system_prompt_addition or "")


def _is_goal(message: Message, goal: str) -> bool:
    return message.role is Role.USER and message.text.strip() == goal.strip()
