"""Threads under token tiers: old tool results become references, and an agent with tools gets them back."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from lamina.agents import define_agent
from lamina.domain.message import Message, ToolCall
from lamina.kernel import Kernel, ModelRouter
from lamina.providers.pydantic_ai import PydanticAILanguageModel
from lamina.testing import HashingEmbedder

THRESHOLDS = {"preRotThreshold": 2_000, "compactionTrigger": 0.5, "summarizationTrigger": 1.0, "recentToKeep": 2}


def lookup(name: str) -> str:
    """Look something up."""
    return name


async def test_an_agent_with_tools_expands_what_a_reference_stands_for():
    told = []

    def respond(messages, info):
        assert {tool.name for tool in info.function_tools} == {"lookup", "expand"}
        returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returns:
            told.extend(returns)
            return ModelResponse(parts=[TextPart("Line 17 says zimt.")])
        return ModelResponse(parts=[ToolCallPart("expand", {"reference": reference})])

    router = ModelRouter(complete=PydanticAILanguageModel(FunctionModel(respond)), embed=HashingEmbedder())
    async with Kernel(model_router=router, conversation={"contextEngineering": THRESHOLDS}) as kernel:
        original = "\n".join(f"line {number}: {'zimt' if number == 17 else 'salt and pepper'}" for number in range(400))
        await kernel.conversation.create("t", owner="mira")
        kept = await kernel.conversation.add_messages(
            "t",
            [
                Message.user("Read the list."),
                Message.assistant("", tool_calls=[ToolCall("c1", "read", '{"path": "list.txt"}')]),
                Message.tool(original, call_id="c1"),
                Message.assistant("I have read it."),
                *(Message.user(f"And {number}?") for number in range(6)),
            ],
            owner="mira",
        )
        shown = (await kernel.conversation.get_thread_context("t", owner="mira")).messages
        assert original not in "".join(each.text for each in shown)
        reference = kept[2].id
        kernel.agent_registry.register(define_agent("reader", tools=[lookup]))
        result = await kernel.submit(goal="What does line 17 say?", owner="mira", thread_id="t")
    assert result.answer == "Line 17 says zimt."
    assert "line 17: zimt" in told[0].content


async def test_without_tiers_there_is_no_such_tool():
    def respond(messages, info):
        return ModelResponse(parts=[TextPart(",".join(tool.name for tool in info.function_tools))])

    router = ModelRouter(complete=PydanticAILanguageModel(FunctionModel(respond)), embed=HashingEmbedder())
    async with Kernel(model_router=router) as kernel:
        kernel.agent_registry.register(define_agent("reader", tools=[lookup]))
        assert (await kernel.submit(goal="Which tools?", thread_id="t")).answer == "lookup"
