"""Runs an agent for one turn, whatever its executor is made of."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lamina.agents.answer import AgentAnswer, Executor
from lamina.agents.capability import AgentDefinition
from lamina.agents.plain_chat import to_chat
from lamina.agents.tool_context import ToolContext
from lamina.agents.tool_loop import answer_with_tools
from lamina.agents.tools import Tool
from lamina.domain.context import ComputedContext
from lamina.domain.context_rendering import messages_of
from lamina.domain.intent import Intent
from lamina.domain.message import Message, Role
from lamina.domain.message_groups import orphans
from lamina.domain.text import clean, is_blank
from lamina.domain.usage import Usage
from lamina.errors import InvalidInput, InvalidType, ProviderError, Unsupported
from lamina.ports.language_model import Completion, LanguageModel
from lamina.providers.host_calls import call_host

__all__ = ["BuiltinExecutor", "OnPiece", "Turn", "run_agent"]

OnPiece: TypeAlias = Callable[[str], Awaitable[None]]
"""Takes a piece of the answer as soon as it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One intent on its way through an agent."""

    intent: Intent
    context: ComputedContext
    model: LanguageModel
    tool_context: ToolContext
    max_rounds: int
    """How often a model with tools is asked."""
    more_tools: Sequence[Tool] = ()
    """Of the turn, for an agent that has tools of its own."""
    on_piece: OnPiece | None = None


@dataclass(frozen=True, slots=True)
class BuiltinExecutor:
    """Sends the instructions, the context and the goal to the model, with the agent's tools if it has any."""

    definition: AgentDefinition = field(repr=False)

    async def __call__(self, intent: Intent, context: ComputedContext, model: LanguageModel) -> str:
        """The model's answer without tools, for callers that have no kernel."""
        del intent
        return (await model.complete(to_chat(messages_of(context)))).text

    async def run(self, turn: Turn) -> AgentAnswer:
        """The answer; piece by piece if the turn asks for pieces and there are no tools."""
        messages = messages_of(turn.context)
        if self.definition.tools:
            answer = await answer_with_tools(
                messages,
                [*self.definition.tools, *turn.more_tools],
                model=turn.model,
                context=turn.tool_context,
                max_rounds=turn.max_rounds,
            )
            await _say(turn, answer.text)
            return answer
        chat = to_chat(messages)
        if turn.on_piece is not None:
            try:
                return AgentAnswer(await _collected(turn, turn.model.stream(chat)))
            except Unsupported:  # raised before the first piece, by a model that gives its answer whole
                pass
        text = clean((await turn.model.complete(chat)).text)
        await _say(turn, text)
        return AgentAnswer(text)


async def run_agent(executor: Executor, turn: Turn) -> AgentAnswer:
    """What the executor answers.

    Raises:
        ProviderError: the answer is empty.
        InvalidType: it is nothing that can be an answer.
        Exception: whatever the executor raises.
    """
    if isinstance(executor, BuiltinExecutor):
        answer = await executor.run(turn)
    else:
        answer = await _read(turn, await _called(executor, turn))
    if is_blank(answer.text):
        raise ProviderError("The agent", "its answer is empty")
    return answer


async def _called(executor: Executor, turn: Turn) -> Any:
    wanted = dict.fromkeys(_context_parameters(executor), turn.tool_context)
    return await call_host(executor, turn.intent, turn.context, turn.model, **wanted)


async def _read(turn: Turn, value: object) -> AgentAnswer:
    match value:
        case str():
            answer = AgentAnswer(clean(value))
        case AgentAnswer():
            answer = _checked(value)
        case Completion():
            answer = AgentAnswer(clean(value.text))
        case AsyncIterator():
            return AgentAnswer(await _collected(turn, value))
        case _:
            problem = f"must answer text, not {type(value).__name__}"
            raise InvalidType("executor", problem, "Return a str, a Completion or an AgentAnswer.")
    await _say(turn, answer.text)
    return answer


def _checked(answer: AgentAnswer) -> AgentAnswer:
    """The answer, if its messages could be sent to a model again: every call with its result, and no result alone."""
    text: object = answer.text
    usage: object = answer.usage
    if not isinstance(text, str) or not all(isinstance(each, Message) for each in answer.messages):
        raise InvalidType("executor", "must answer text and a list of Message", "Give AgentAnswer such.")
    if not isinstance(usage, Usage) or not all(isinstance(each.metadata, dict) for each in answer.messages):
        raise InvalidType("executor", "gave a usage or metadata that is none", "Give a Usage, and metadata as dicts.")
    called = {call.id for message in answer.messages for call in message.tool_calls}
    told = {message.tool_call_id for message in answer.messages if message.role is Role.TOOL}
    if orphans(answer.messages) or called - told:
        raise InvalidInput("executor", "gave a tool's call or result without the other", "Give both, in order.")
    return dataclasses.replace(answer, text=clean(answer.text))


async def _collected(turn: Turn, pieces: AsyncIterator[str]) -> str:
    """All pieces together; each was told as it came."""
    said: list[str] = []
    try:
        async for piece in pieces:
            said.append(await _piece(turn, piece))  # noqa: PERF401 - told one by one
    finally:
        if isinstance(pieces, AsyncGenerator):  # which has to be closed in the task that ran it
            await pieces.aclose()
    return "".join(said)


async def _piece(turn: Turn, piece: object) -> str:
    if not isinstance(piece, str):
        raise InvalidType("executor", f"must yield text, not {type(piece).__name__}", "Yield str.")
    text = clean(piece)
    await _say(turn, text)
    return text


async def _say(turn: Turn, text: str) -> None:
    if turn.on_piece is not None and text:
        await turn.on_piece(text)


def _context_parameters(executor: Executor) -> list[str]:
    bare = executor if inspect.isroutine(executor) else getattr(executor, "__call__", executor)  # noqa: B004 - the method
    try:
        hints = typing.get_type_hints(bare)
    except (NameError, TypeError):  # hints that cannot be read, or none: such an executor takes three arguments
        return []
    return [name for name, hint in hints.items() if hint is ToolContext and name != "return"]
