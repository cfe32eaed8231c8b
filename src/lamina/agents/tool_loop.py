"""The loop of a model and its tools: asks, calls, tells the results, until there is an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lamina.agents.answer import AgentAnswer
from lamina.agents.metering import MeteredModel
from lamina.agents.tool_context import ToolContext
from lamina.agents.tools import Tool
from lamina.domain.message import Message
from lamina.domain.text import clean
from lamina.domain.usage import Usage
from lamina.errors import ProviderError
from lamina.ports.language_model import LanguageModel

__all__ = ["MAX_CALLS", "answer_with_tools", "sent_for_tools"]

MAX_CALLS: Final = 256
"""How many tools may be run in one turn: one answer of a server may hold thousands of calls."""


def sent_for_tools(tools: Sequence[Tool], model: LanguageModel) -> list[dict[str, Any]]:
    """What this model is sent for the tools at each round, as mappings whose JSON a budget counts."""
    if not tools:
        return []
    from lamina.agents.tool_model import tools_as_sent

    return tools_as_sent(_bare(model), [tool.loop_tool.tool_def for tool in tools])


async def answer_with_tools(
    messages: Sequence[Message],
    tools: Sequence[Tool],
    *,
    model: LanguageModel,
    context: ToolContext,
    max_rounds: int,
) -> AgentAnswer:
    """The answer, and the calls and results that led to it.

    Raises:
        NoModelConfiguredError: there is no model.
        ProviderUnavailable: the model cannot be reached.
        ProviderError: it gave no answer, or still called tools after `max_rounds` rounds or `MAX_CALLS` calls.
    """
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.usage import UsageLimits

    from lamina.agents.tool_model import tool_model
    from lamina.providers.pydantic_ai import run_translated
    from lamina.providers.pydantic_ai_messages import from_model_messages, to_model_messages

    bare = _bare(model)
    adapted = tool_model(bare)
    agent = Agent(adapted, deps_type=ToolContext, tools=[tool.loop_tool for tool in tools])
    history = to_model_messages(messages)
    with run_translated(bare.provider):
        try:
            limits = UsageLimits(request_limit=max_rounds, tool_calls_limit=MAX_CALLS)
            run = await agent.run(message_history=history, deps=context, usage_limits=limits)
        except UsageLimitExceeded as error:
            problem = f"it still called tools after {max_rounds} rounds or {MAX_CALLS} calls"
            raise ProviderError(bare.provider, problem, "Look at what its tools answer.") from error
    text = clean(run.output)
    if not text.strip():
        raise ProviderError(bare.provider, "its answer is empty")
    new = from_model_messages(run.new_messages())
    usage = Usage(run.usage.input_tokens or 0, run.usage.output_tokens or 0)
    return AgentAnswer(text, new, usage)


def _bare(model: LanguageModel) -> LanguageModel:
    return model.inner if isinstance(model, MeteredModel) else model
