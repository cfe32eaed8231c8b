"""The agents of a kernel, and which of them serves a goal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamina.agents.answer import Executor
from lamina.agents.capability import AgentDefinition, Capability, read_capabilities
from lamina.agents.executing import BuiltinExecutor
from lamina.agents.tools import Tool, read_tools
from lamina.domain.closeness import cosines
from lamina.domain.lexical import count_terms, index_terms, query_terms, similarity
from lamina.domain.memory import Vector
from lamina.domain.text import check_name, is_blank
from lamina.errors import InvalidInput, InvalidType, ProviderError
from lamina.ports.embedder import Embedder
from lamina.telemetry import place_of

__all__ = ["ASSISTANT", "Agent", "AgentRegistry", "define_agent"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Agent:
    """A definition and what executes it."""

    definition: AgentDefinition
    executor: Executor = field(repr=False)

    @property
    def name(self) -> str:
        """The definition's name."""
        return self.definition.name


def define_agent(
    name: str,
    description: str = "",
    *,
    capabilities: Sequence[Capability | Mapping[str, Any]] = (),
    instructions: str = "",
    tools: Sequence[Tool | Callable[..., Any]] = (),
    executor: Executor | None = None,
) -> Agent:
    """An agent.

    Args:
        name: Names it in a registry and in results.
        description: Compared with goals where it has no capabilities.
        capabilities: Compared with goals, to choose among agents.
        instructions: The system prompt.
        tools: Functions with type hints, sync or async, that the model may call.
        executor: What answers in place of the model: see `lamina.agents.answer.Executor`. It gets no tools.

    Raises:
        MissingExtra: there are tools, and pydantic-ai is not installed.
        InvalidInput: an argument has a value that cannot be taken.
        InvalidType: an argument has a type that cannot be taken.
    """
    check_name("name", name)
    for field_name, value in (("description", description), ("instructions", instructions)):
        if not isinstance(value, str):
            raise InvalidType(field_name, f"must be text, not {type(value).__name__}", "Give a str.")
    if executor is not None and tools:
        raise InvalidInput(
            "tools", "are given beside an executor", "Give one of them: an executor calls what it likes."
        )
    definition = AgentDefinition(name, description, read_capabilities(capabilities), instructions, read_tools(tools))
    return _executed(definition, executor)


def _executed(definition: AgentDefinition, executor: Executor | None) -> Agent:
    """The agent of a definition; the model answers unless there is an executor."""
    if executor is not None and not callable(executor):
        raise InvalidType("executor", f"cannot be called: {type(executor).__name__}", "Give an async function.")
    return Agent(definition, executor or BuiltinExecutor(definition))


ASSISTANT = define_agent("assistant", "Answers from the context it is given")
"""Serves where no agent is registered, or none has anything to do with the goal."""


class AgentRegistry:
    """Agents by name, in the order of their registration."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._vectors: dict[tuple[str, str, str], Vector] = {}

    def register(
        self, agent: Agent | AgentDefinition, executor: Executor | None = None, *, replace: bool = False
    ) -> Agent:
        """Add an agent, or a definition with its executor (the built-in one by default); returns the agent.

        Raises:
            InvalidInput: the name is taken, and `replace` is off.
            InvalidType: it is no agent.
        """
        if isinstance(agent, Agent):
            if executor is not None and executor is not agent.executor:
                raise InvalidInput("executor", "is given beside an agent that has one", "Give the agent alone.")
            added = agent
        elif isinstance(agent, AgentDefinition):
            added = _executed(agent, executor)
        else:
            raise InvalidType("agent", f"must come from define_agent, not {type(agent).__name__}", "Call define_agent.")
        if added.name in self._agents and not replace:
            raise InvalidInput(
                "name", f"an agent {added.name!r} is registered", "Choose another, or give replace=True."
            )
        self._agents[added.name] = added
        return added

    def unregister(self, name: str) -> bool:
        """Remove the agent of this name; False if there is none."""
        return self._agents.pop(name, None) is not None

    def get(self, name: str) -> Agent | None:
        """The agent of this name, or None."""
        return self._agents.get(name)

    def list(self) -> list[Agent]:
        """All agents, in the order of their registration."""
        return [*self._agents.values()]

    def named(self, name: str) -> Agent:
        """The agent of this name, or the built-in assistant.

        Raises:
            InvalidInput: there is no such agent.
        """
        if name in self._agents:
            return self._agents[name]
        if name == ASSISTANT.name:
            return ASSISTANT
        known = ", ".join(self._agents) or ASSISTANT.name
        raise InvalidInput("metadata.agent", f"there is no agent {name!r}", f"Use one of: {known}.")

    async def select(self, goal: str, *, embedder: Embedder | None = None) -> Agent:
        """The agent for this goal: the only one; else the one whose capability is closest to it.

        Closeness is the greater of the similarity of words and, with an embedder, the cosine, times the
        capability's confidence. Of equally close ones the first registered serves; if nothing is close
        to anything, the built-in assistant.
        """
        agents = self.list()
        if len(agents) < 2 or is_blank(goal):  # noqa: PLR2004 - a single one always serves
            return agents[0] if agents else ASSISTANT
        offers = [(agent, text, confidence) for agent in agents for text, confidence in agent.definition.offers]
        terms = query_terms(goal)
        words = [similarity(terms, [1.0] * len(terms), count_terms(index_terms(text))) for _, text, _ in offers]
        meanings = await self._cosines(goal, [text for _, text, _ in offers], embedder)
        best, chosen = 0.0, ASSISTANT
        for (agent, _, confidence), word, meaning in zip(offers, words, meanings, strict=True):
            closeness = max(word, meaning) * confidence
            if closeness > best:
                best, chosen = closeness, agent
        return chosen

    async def _cosines(self, goal: str, texts: Sequence[str], embedder: Embedder | None) -> Sequence[float]:
        """The cosine of the goal with each text; zeros if there is no embedder, or it fails."""
        if embedder is None or not texts:
            return [0.0] * len(texts)
        model = (embedder.provider, embedder.model)
        try:
            missing = [text for text in dict.fromkeys(texts) if (*model, text) not in self._vectors]
            if missing:
                for text, vector in zip(missing, await embedder.embed_documents(missing), strict=True):
                    self._vectors[*model, text] = vector
            return cosines(await embedder.embed_query(goal), [self._vectors[*model, text] for text in texts])
        except ProviderError as error:
            log.warning("agents are chosen by words: the embedder failed: %s", place_of(error))
            return [0.0] * len(texts)
