"""Plain functions as tools, called by any kind of model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

import pytest
from pydantic import Field

pytest.importorskip("pydantic_ai")

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from lamina.agents import Tool, ToolContext, define_agent
from lamina.domain.intent import IntentStatus
from lamina.domain.message_size import MESSAGE_OVERHEAD
from lamina.errors import InvalidInput, InvalidType, ScopeError
from lamina.kernel import Kernel, ModelRouter
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel
from lamina.providers.pydantic_ai import PydanticAILanguageModel
from lamina.providers.structured_output import ObjectSchema
from lamina.providers.tokens import EstimateCounter
from lamina.testing import EchoModel, HashingEmbedder


def weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1, *, unit: Literal["c", "f"] = "c") -> str:
    """The weather forecast.

    Args:
        city: Where.
        days: How many days ahead.
        unit: Celsius or Fahrenheit.
    """
    return f"{city}: sunny for {days} days, 20 {unit}"


async def remember(context: ToolContext, note: str) -> str:
    """Store a note."""
    return await context.memory.store(note)


def calling(*calls, answer="done"):
    """A model of pydantic-ai that makes these calls, all at once, and then answers; and what it was told."""
    told = []

    def respond(messages, info):
        returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returns:
            told.extend(returns)
            return ModelResponse(parts=[TextPart(answer)])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in calls])

    return PydanticAILanguageModel(FunctionModel(respond)), told


async def run(model, *tools, goal="Go", owner="mira", **settings):
    router = ModelRouter(complete=model, embed=HashingEmbedder())
    async with Kernel(settings, model_router=router) as kernel:
        kernel.agent_registry.register(define_agent("tooled", tools=tools, instructions="Use your tools."))
        result = await kernel.submit(goal=goal, owner=owner, thread_id="t")
        thread = await kernel.conversation.retrieve("t")
        return result, [] if thread is None else await kernel.conversation.history("t"), kernel


def test_type_hints_and_the_docstring_make_the_schema():
    tool = Tool.from_function(weather)
    assert (tool.name, tool.description.splitlines()[0]) == ("weather", "The weather forecast.")
    properties = tool.schema["properties"]
    assert properties["city"] == {"type": "string", "description": "Where."}
    assert (properties["days"]["minimum"], properties["days"]["maximum"]) == (1, 7)
    assert properties["unit"]["enum"] == ["c", "f"]
    assert tool.schema["required"] == ["city"]


def test_the_context_is_no_part_of_the_schema_wherever_it_stands():
    def late(note: str, where: ToolContext) -> str:
        """Note."""
        return note

    for function in (remember, late):
        schema = Tool.from_function(function).schema
        assert list(schema["properties"]) == ["note"]
        assert "ToolContext" not in json.dumps(schema)


def untyped(city):
    """No hint."""


def starred(*cities: str):
    """Any number."""


def unknown(city: Nowhere):  # noqa: F821 - a hint that names nothing
    """A hint that cannot be read."""


def unserialisable(event: asyncio.Event):
    """A hint that JSON cannot carry."""


@pytest.mark.parametrize(
    "function", [untyped, starred, unknown, unserialisable, 5, "weather", lambda city: city, print]
)
def test_what_cannot_be_a_tool_is_refused_when_the_agent_is_defined(function):
    with pytest.raises((InvalidInput, InvalidType), match="tools"):
        define_agent("agent", tools=[function])


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(InvalidInput, match="weather"):
        define_agent("agent", tools=[weather, weather])


def test_tools_beside_an_executor_are_refused():
    with pytest.raises(InvalidInput, match="beside an executor"):
        define_agent("agent", tools=[weather], executor=lambda intent, context, model: "x")


def test_without_pydantic_ai_the_error_names_the_pip_line():
    code = (
        "import sys, importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'pydantic_ai' else real(name, *rest)\n"
        "from lamina.agents import define_agent\n"
        "from lamina.errors import MissingExtra\n"
        "def f(a: int) -> int:\n    'x'\n    return a\n"
        "try:\n    define_agent('a', tools=[f])\n"
        "except MissingExtra as error:\n    print(error)\n"
        "define_agent('b')\n"
        "print('pydantic_ai' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'lamina[pydantic-ai]'" in result.stdout
    assert result.stdout.splitlines()[-1] == "False"


async def test_calls_and_results_are_kept_in_the_thread_with_ids():
    model, told = calling(("weather", {"city": "Graz"}), ("weather", {"city": "Wien", "days": 3}))
    result, kept, _ = await run(model, weather)
    assert (result.status, result.answer) == (IntentStatus.COMPLETED, "done")
    assert [each.role.value for each in kept] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call.name for call in kept[1].tool_calls] == ["weather", "weather"]
    assert [each.tool_call_id for each in kept[2:4]] == [call.id for call in kept[1].tool_calls]
    assert kept[2].text == "Graz: sunny for 1 days, 20 c"
    assert len({each.id for each in kept} - {""}) == 5
    assert [each.content for each in told] == [each.text for each in kept[2:4]]
    assert result.usage.input_tokens > 0


async def test_the_next_turn_shows_the_model_the_former_calls():
    model, _ = calling(("weather", {"city": "Graz"}))
    async with Kernel(model_router=ModelRouter(complete=model, embed=HashingEmbedder())) as kernel:
        kernel.agent_registry.register(define_agent("tooled", tools=[weather]))
        await kernel.submit(goal="Weather?", thread_id="t")
        seen = []

        def respond(messages, info):
            seen.extend(messages)
            return ModelResponse(parts=[TextPart("as before")])

        kernel.model_router.take_over(PydanticAILanguageModel(FunctionModel(respond)))
        await kernel.submit(goal="And tomorrow?", thread_id="t")
    kinds = [part.part_kind for message in seen for part in message.parts]
    assert kinds.index("tool-call") < kinds.index("tool-return")
    assert "Graz: sunny" in str(seen)


async def test_the_memory_of_a_tool_is_the_owners():
    model, _ = calling(("remember", {"note": "The key is blue"}))
    seen = {}

    async def look(context: ToolContext) -> str:
        """Look."""
        seen["foreign"] = [each.entry.owner for each in await context.memory.recall("key")]
        seen["thread"] = context.thread.id
        seen["before"] = await context.thread.context()
        try:
            await context.memory.store("planted", owner="tomas")
        except ScopeError as error:
            return str(error)
        return "planted"

    router = ModelRouter(complete=model, embed=HashingEmbedder())
    async with Kernel(model_router=router) as kernel:
        await kernel.memory_engine.store("The key is red", owner="tomas")
        kernel.agent_registry.register(define_agent("tooled", tools=[remember, look]))
        await kernel.submit(goal="Note", owner="mira", thread_id="t")
        assert await kernel.memory_engine.count(owner="mira") == 1
        kernel.model_router.take_over(calling(("look", {}))[0])
        await kernel.submit(goal="Look", owner="mira", thread_id="t")
        assert seen["foreign"] == ["mira"]
        assert seen["thread"] == "t"
        assert len(seen["before"].messages) == 4
        assert await kernel.memory_engine.count(owner="tomas") == 1
        assert "bound to that owner" in (await kernel.conversation.history("t"))[-2].text


def broken(city: str) -> str:
    """Break."""
    raise RuntimeError("no connection")


async def test_a_tool_that_raises_is_told_to_the_model_and_the_turn_goes_on():
    model, told = calling(("broken", {"city": "Graz"}), answer="Sorry.")
    result, kept, _ = await run(model, broken)
    assert result.answer == "Sorry."
    assert told[0].content == kept[2].text == "The tool failed. RuntimeError: no connection"


async def test_a_tool_that_is_cancelled_cancels_the_turn():
    async def cancelled() -> str:
        """Cancel."""
        raise asyncio.CancelledError

    model, _ = calling(("cancelled", {}))
    with pytest.raises(asyncio.CancelledError):
        await run(model, cancelled)


@dataclass
class Forecast:
    city: str
    day: date


class Opaque:
    """Nothing that JSON knows."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (5, "5"),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
        (Forecast("Graz", date(2026, 3, 1)), '{"city": "Graz", "day": "2026-03-01"}'),
        ({1, 2}, "[1, 2]"),
        (float("nan"), "The tool failed. InvalidType: result: float is no JSON. Return text or plain data."),
        ("lone \ud800", "lone \ufffd"),
        (Opaque(), "The tool failed. InvalidType: result: Opaque is no JSON. Return text or plain data."),
        ("x" * 100_001, "x" * 100_000 + "\n[1 more characters were cut]"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_whatever_a_tool_returns_reaches_the_model_as_text(value, expected):
    def give() -> object:
        """Give."""
        return value

    model, told = calling(("give", {}))
    result, _, _ = await run(model, give)
    assert result.status is IntentStatus.COMPLETED
    assert told[0].content == expected


async def test_arguments_that_do_not_fit_are_told_to_the_model_and_the_tool_is_not_run():
    model, told = calling(("weather", {"city": "Graz", "days": 99}))
    result, _, _ = await run(model, weather)
    assert result.status is IntentStatus.COMPLETED
    assert "less than or equal to 7" in str(told[0].content)


async def test_a_model_that_calls_for_ever_is_stopped():
    rounds = []

    def again(messages, info):
        rounds.append(1)
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Graz"})])

    model = PydanticAILanguageModel(FunctionModel(again))
    result, kept, _ = await run(model, weather, agents={"max_rounds": 4})
    assert result.error.kind == "ProviderError"
    assert "after 4 rounds" in result.error.message
    assert len(rounds) == 4
    assert kept == []


async def test_an_answer_with_thousands_of_calls_fails_the_turn_before_any_of_them_is_run():
    ran = []

    def touch() -> str:
        """Touch."""
        ran.append(1)
        return "x"

    model, _ = calling(*[("touch", {})] * 5_000)
    result, kept, _ = await run(model, touch)
    assert result.error.kind == "ProviderError"
    assert "256 calls" in result.error.message
    assert (ran, kept) == ([], [])


async def test_a_tool_that_hangs_is_ended_by_the_time_limit():
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()

    model, _ = calling(("hang", {}))
    result, kept, _ = await run(model, hang, agents={"timeout": 0.2})
    assert result.error.kind == "TimeoutError"
    assert kept == []


async def test_a_model_that_calls_what_there_is_not_gets_told_and_then_fails():
    model, _ = calling(("no_such_tool", {}))
    result, _, _ = await run(model, weather)
    assert result.status is IntentStatus.COMPLETED

    def stubborn(messages, info):
        return ModelResponse(parts=[ToolCallPart("no_such_tool", {})])

    result, kept, _ = await run(PydanticAILanguageModel(FunctionModel(stubborn)), weather)
    assert result.error.kind == "ProviderError"
    assert kept == []


async def test_a_server_is_handed_the_tools_and_its_calls_are_run(server):
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Graz"}'}}
    server.plays(server.chat(None, tool_calls=[call]), server.chat("Sunny."))
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0)
    result, kept, _ = await run(model, weather, goal="Weather in Graz?")
    assert result.answer == "Sunny."
    assert (result.usage.input_tokens, result.usage.output_tokens) == (14, 6)
    first, second = (request.json for request in server.requests)
    assert first["tools"][0]["function"]["name"] == "weather"
    assert first["messages"][0]["role"] == "system"
    assert second["messages"][-2]["tool_calls"] == [call]
    assert second["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "Graz: sunny for 1 days, 20 c",
        "name": "weather",
    }
    assert kept[1].tool_calls[0].id == "call_1"
    await model.close()


@pytest.mark.parametrize(
    "calls",
    [
        [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{broken"}}],
        [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": {"city": "Graz"}}}],
        [{"type": "function", "function": {"name": "weather", "arguments": '{"city": "Graz"}'}}],
        [{"id": "c", "function": {"name": ""}}],
        ["weather"],
        [{"id": "c", "function": {"name": "weather", "arguments": '{"city": "\\ud800"}'}}],
    ],
    ids=["broken JSON", "an object", "no id", "no name", "a text", "a lone surrogate"],
)
async def test_odd_calls_of_a_server_are_mended_or_fail_the_turn_and_nothing_is_half_kept(server, calls):
    server.plays(server.chat(None, tool_calls=calls), server.chat("Sunny."))
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0)
    result, kept, _ = await run(model, weather)
    if result.status is IntentStatus.COMPLETED:
        assert [each.role.value for each in kept] == ["user", "assistant", "tool", "assistant"]
        assert kept[2].tool_call_id == kept[1].tool_calls[0].id
    else:
        assert result.error.kind == "ProviderError"
        assert kept == []
    await model.close()


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_a_server_that_refuses_in_the_middle_fails_the_turn(server, status):
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Graz"}'}}
    server.plays(server.chat(None, tool_calls=[call]), server.json({"error": "no"}, status))
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0)
    result, kept, _ = await run(model, weather)
    assert result.error.kind in {"ProviderError", "ProviderUnavailable"}
    assert kept == []
    await model.close()


async def test_a_plain_callable_calls_tools_too():
    model = EchoModel(
        [
            {"answer": "", "calls": [{"tool": "weather", "arguments": {"city": "Graz", "days": 2}}]},
            {"answer": "Sunny for two days.", "calls": []},
        ]
    )
    result, kept, _ = await run(model, weather)
    assert result.answer == "Sunny for two days."
    assert [each.role.value for each in kept] == ["user", "assistant", "tool", "assistant"]
    told = model.calls[0][0].content
    assert "- weather: The weather forecast." in told
    assert "[result of weather]\nGraz: sunny for 2 days" in model.calls[1][-1].content


async def test_the_schemas_of_tools_are_counted_in_the_context():
    model, _ = calling(("weather", {"city": "Graz"}))
    bare, _, _ = await run(model)
    tooled, _, _ = await run(model, weather)
    assert tooled.context.estimated_tokens > bare.context.estimated_tokens + 50


@pytest.mark.parametrize("budget", [700, 900, 8_000])
async def test_what_a_model_without_tools_of_its_own_is_sent_is_within_the_budget(budget):
    sizes = []
    count = EstimateCounter().count

    class Measuring(EchoModel):
        async def complete(self, messages, *, schema=None, max_tokens=None):
            asked = [*messages, ObjectSchema(schema).instruction()]  # as providers ask that know no schemas
            sizes.append(sum(count(each.content) + MESSAGE_OVERHEAD for each in asked))
            return await super().complete(messages, schema=schema)

    model = Measuring([{"answer": "Sunny.", "calls": []}])
    router = ModelRouter(complete=model, embed=HashingEmbedder())
    async with Kernel({"context": {"token_budget": budget}}, model_router=router) as kernel:
        for number in range(60):
            text = f"The weather of day {number}: " + f"cloud {number} " * 20
            await kernel.memory_engine.store(text, owner="mira")
        kernel.agent_registry.register(define_agent("tooled", tools=[weather], instructions="Use your tools."))
        result = await kernel.submit(goal="The weather?", owner="mira", thread_id="t")
    assert not result.context.over_budget
    assert sizes[0] <= result.context.estimated_tokens <= budget
