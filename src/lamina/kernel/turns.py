"""One intent from beginning to end: context, answer, thread, auto-save, and the word that it is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from lamina.agents import Agent, AgentAnswer, AgentRegistry, Tool, ToolContext
from lamina.agents.executing import OnPiece, Turn, run_agent
from lamina.agents.metering import AbsentModel, MeteredModel
from lamina.agents.tool_loop import sent_for_tools
from lamina.context.manager import ContextEngineManager
from lamina.context.request import session_of
from lamina.conversation.thread_reading import check_owner
from lamina.domain.context import ComputedContext
from lamina.domain.intent import Intent, IntentError, IntentResult, IntentStatus
from lamina.domain.message import Message, Role
from lamina.domain.text import clean
from lamina.domain.thread import ThreadContext, ThreadRef, ThreadStatus
from lamina.errors import ConfigError, InvalidInput, InvalidType, LaminaError, ScopeError, ThreadArchivedError
from lamina.kernel.model_router import ModelRouter, Task
from lamina.kernel.parts import Parts
from lamina.memory.owner_view import OwnerMemory
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName
from lamina.settings.agents import AgentsConfig

__all__ = ["TurnRunner"]

log = logging.getLogger(__name__)

_CALLERS_FAULT = (InvalidInput, InvalidType, ScopeError, ThreadArchivedError, ConfigError)
"""What is raised to the caller; whatever else goes wrong on the way is told in the result."""


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread as a tool sees it."""

    parts: Parts
    id: str
    owner: str

    async def context(self) -> ThreadContext:
        return await self.parts.conversation.get_thread_context(self.id, owner=self.owner)

    async def history(self, *, offset: int = 0, limit: int = 100) -> list[Message]:
        return await self.parts.conversation.history(self.id, owner=self.owner, offset=offset, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serving:
    """An intent that is being served, by whom, and what has come of it so far."""

    intent: Intent
    agent: Agent
    model: MeteredModel
    result: IntentResult
    more_tools: Sequence[Tool]
    on_piece: OnPiece | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Executes intents with these parts; as many side by side as are asked for."""

    parts: Parts
    agents: AgentRegistry
    router: ModelRouter
    engines: ContextEngineManager
    limits: AgentsConfig
    clock: Clock
    emit: Emit

    async def run(
        self,
        intent: Intent,
        *,
        on_piece: OnPiece | None = None,
        before_append: Callable[[], Awaitable[None]] | None = None,
    ) -> IntentResult:
        """What came of the intent. Nothing is added to the thread unless the answer is complete.

        `before_append` is waited for when the answer is complete, before it is kept.

        Raises:
            InvalidInput: it names an agent that there is not.
            ScopeError: its thread is another owner's, or of another namespace.
            ThreadArchivedError: its thread is archived.
        """
        begun = perf_counter()
        running = intent.replace(status=IntentStatus.RUNNING)
        agent = await self._agent(running)
        await self._check_thread(running)
        model = self.router.model_for(Task.ANSWERS)
        serving = _Serving(
            intent=running,
            agent=agent,
            model=MeteredModel(AbsentModel() if model is None else model),
            result=IntentResult(running.id, running.status, agent=agent.name, thread_id=running.thread_id),
            more_tools=self._more_tools(running, agent),
            on_piece=on_piece,
        )
        await self._serve(serving, before_append)
        serving.result.usage += serving.model.usage
        serving.result.timings.total = perf_counter() - begun
        self._tell(serving.result)
        return serving.result

    async def _serve(self, serving: _Serving, before_append: Callable[[], Awaitable[None]] | None) -> None:
        result = serving.result
        try:
            answer = await self._answered(serving)
            if before_append is not None:
                await before_append()
            await self._keep(serving, answer)
        except _Failed as failure:
            result.status = IntentStatus.FAILED
            result.error = failure.error
        else:
            result.status = IntentStatus.COMPLETED
            await self._afterwards(serving.intent, result)

    async def _agent(self, intent: Intent) -> Agent:
        if intent.agent is not None:
            return self.agents.named(intent.agent)
        return await self.agents.select(intent.goal, embedder=self.parts.memory.embedder)

    async def _check_thread(self, intent: Intent) -> None:
        if intent.thread_id is None:
            return
        thread = await self.parts.state.get_thread(ThreadRef(self.parts.memory.tenant, intent.thread_id))
        if thread is None:
            return
        check_owner(thread, intent.owner)
        if intent.namespace is not None and thread.namespace != intent.namespace:
            raise ScopeError(f"The thread {intent.thread_id!r} is of another namespace.")
        if thread.status is ThreadStatus.ARCHIVED:
            raise ThreadArchivedError(intent.thread_id)

    async def _answered(self, serving: _Serving) -> AgentAnswer:
        """The agent's answer within the time limit.

        Raises:
            _Failed: the context could not be computed, or the agent failed or took too long.
        """
        seconds = self.limits.timeout
        try:
            async with asyncio.timeout(seconds):
                context = await self._computed(serving)
                return await self._run(serving, context)
        except TimeoutError as error:
            raise _Failed(IntentError("TimeoutError", f"no answer within {seconds} seconds")) from error

    async def _computed(self, serving: _Serving) -> ComputedContext:
        begun = perf_counter()
        intent, definition = serving.intent, serving.agent.definition
        try:
            context = await self.parts.context.compute(
                intent_id=intent.id,
                goal=intent.goal,
                owner_id=intent.owner,
                thread_id=intent.thread_id,
                namespace=intent.namespace,
                model=serving.model.model,
                system=definition.instructions,
                tools=sent_for_tools([*definition.tools, *serving.more_tools], serving.model),
            )
        except _CALLERS_FAULT:
            raise
        except LaminaError as error:
            raise _Failed(_told(error)) from error
        finally:
            serving.result.timings.context = perf_counter() - begun
        serving.result.context = context
        serving.result.warnings += [str(warning) for warning in context.warnings]
        return context

    async def _run(self, serving: _Serving, context: ComputedContext) -> AgentAnswer:
        begun = perf_counter()
        intent, agent = serving.intent, serving.agent
        turn = Turn(
            intent=intent,
            context=context,
            model=serving.model,
            tool_context=self._tool_context(intent),
            more_tools=serving.more_tools,
            on_piece=serving.on_piece,
            max_rounds=self.limits.max_rounds,
        )
        try:
            answer = await run_agent(agent.executor, turn)
        except Exception as error:  # a host's code, or a model: whatever it raises is the agent's failure
            log.warning("the agent %s failed %s with %s", agent.name, intent.id, type(error).__name__)
            raise _Failed(_told(error)) from error
        finally:
            serving.result.timings.agent = perf_counter() - begun
        serving.result.usage += answer.usage
        serving.result.answer = answer.text
        return answer

    def _more_tools(self, intent: Intent, agent: Agent) -> list[Tool]:
        """What gives the originals of references in the thread back, for an agent that has tools."""
        own = agent.definition.tools
        if not own or intent.thread_id is None or not self.parts.offers_expansion:
            return []
        expand = Tool.from_function(self.parts.conversation.expand_tool(intent.thread_id, owner=intent.owner))
        return [] if expand.name in {tool.name for tool in own} else [expand]

    def _tool_context(self, intent: Intent) -> ToolContext:
        thread = None if intent.thread_id is None else _Thread(self.parts, intent.thread_id, intent.owner)
        return ToolContext(intent, OwnerMemory(self.parts.memory, intent.owner), thread)

    async def _keep(self, serving: _Serving, answer: AgentAnswer) -> None:
        """Add the goal, what the tools said, and the answer to the thread: together, or not at all."""
        begun = perf_counter()
        intent, result = serving.intent, serving.result
        marks = {"intent_id": intent.id, "agent": serving.agent.name}
        said = [Message.user(intent.goal), *_messages(answer)]
        result.messages = [message.replace(metadata={**message.metadata, **marks}) for message in said]
        if intent.thread_id is None:
            return
        try:
            if intent.namespace is not None:
                await self.parts.conversation.create(intent.thread_id, owner=intent.owner, namespace=intent.namespace)
            result.messages = await self.parts.conversation.add_messages(
                intent.thread_id, result.messages, owner=intent.owner
            )
        except LaminaError as error:  # the answer was paid for: it is told, with why it was not kept
            log.warning("the exchange of %s was not kept: %s", intent.id, type(error).__name__)
            raise _Failed(_told(error)) from error
        finally:
            result.timings.append = perf_counter() - begun

    async def _afterwards(self, intent: Intent, result: IntentResult) -> None:
        """What follows a turn that succeeded; nothing of it can make the turn fail."""
        begun = perf_counter()
        if self.parts.auto_save is not None:
            report = await self.parts.auto_save.after_turn(intent)
            result.saved = report.saved
            result.warnings += report.warnings
            result.timings.auto_save = perf_counter() - begun
        if self.engines.uses_builtin:
            return
        try:
            before, after = await self._window(intent, result.messages)
        except LaminaError as error:
            log.warning("the plug-in engine was not told of %s: %s", intent.id, type(error).__name__)
            result.warnings.append(f"after_turn failed: {type(error).__name__}")
            return
        budget = None if result.context is None else result.context.token_budget
        session = session_of(intent.thread_id, owner=intent.owner, intent_id=intent.id)
        await self.engines.after_turn(session, after, before, token_budget=budget)

    async def _window(self, intent: Intent, said: Sequence[Message]) -> tuple[int, list[Message]]:
        """The session's messages after the turn, and how many there were before it."""
        if intent.thread_id is None:
            return 0, list(said)
        window = await self.parts.conversation.get_thread_context(intent.thread_id, owner=intent.owner)
        ids = {message.id for message in said}
        return sum(message.id not in ids for message in window.messages), window.messages

    def _tell(self, result: IntentResult) -> None:
        facts: dict[str, Any] = {
            "intent_id": result.intent_id,
            "agent": result.agent,
            "thread_id": result.thread_id,
            "seconds": round(result.timings.total, 3),
            "input_tokens": result.usage.input_tokens,
            "output_tokens": result.usage.output_tokens,
        }
        name = EventName.INTENT_COMPLETED
        if result.error is not None:
            name, facts = EventName.INTENT_FAILED, {**facts, "error": result.error.kind}
        self.emit(Event(name, self.clock(), self.parts.memory.tenant, facts))


class _Failed(Exception):
    """The intent failed; `error` goes into its result."""

    def __init__(self, error: IntentError) -> None:
        super().__init__(str(error))
        self.error = error


def _told(error: Exception) -> IntentError:
    try:
        words = clean(str(error))
    except Exception:  # noqa: BLE001 - a host's error, whose words cannot be had
        words = ""
    return IntentError(type(error).__name__, words or "it gave no reason")


def _messages(answer: AgentAnswer) -> list[Message]:
    """What the agent said in the turn, the answer last."""
    said = list(answer.messages)
    if not said or said[-1].role is not Role.ASSISTANT or said[-1].tool_calls:
        said.append(Message.assistant(answer.text))
    return said
