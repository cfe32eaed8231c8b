from __future__ import annotations

import subprocess
import sys
from array import array
from typing import Any

import pytest

from lamina.errors import ConfigError, InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole
from lamina.providers.pydantic_ai import PydanticAIEmbedder, PydanticAILanguageModel

pytest.importorskip("pydantic_ai")

from openai import AsyncOpenAI
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

ASK = [ChatMessage(ChatRole.SYSTEM, "Be brief."), ChatMessage(ChatRole.USER, "How many?")]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


@pytest.fixture
async def provider(server):
    client = AsyncOpenAI(base_url=server.url, api_key="sk-1", max_retries=0)
    yield OpenAIProvider(openai_client=client)
    await client.close()


async def test_a_model_completes_and_counts() -> None:
    model = PydanticAILanguageModel(TestModel(custom_output_text="Two."))
    completion = await model.complete(ASK)
    assert completion.text == "Two."
    assert completion.usage.output_tokens > 0
    assert (model.provider, model.model) == ("test", "test")
    await model.close()


async def test_the_conversation_reaches_the_model_in_order() -> None:
    seen: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(messages)
        return ModelResponse(parts=[TextPart("Two.")])

    turns = [*ASK, ChatMessage(ChatRole.ASSISTANT, "One?"), ChatMessage(ChatRole.USER, "Sure\ud83d?")]
    await PydanticAILanguageModel(FunctionModel(answer)).complete(turns)
    parts = [part for message in seen for part in message.parts]
    kinds = [SystemPromptPart, UserPromptPart, TextPart, UserPromptPart]
    assert [type(part) for part in parts] == kinds
    assert [part.content for part in parts] == ["Be brief.", "How many?", "One?", "Sure\ufffd?"]


async def test_an_object_is_validated_and_a_wrong_one_asked_for_again() -> None:
    answers = [{"n": 0}, {"n": 2}]
    told: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(str(messages[-1].parts[-1].content))
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, answers.pop(0))])

    completion = await PydanticAILanguageModel(FunctionModel(answer)).complete(ASK, schema=NUMBER)
    assert completion.data == {"n": 2}
    assert completion.text == '{"n": 2}'
    assert "$.n does not satisfy minimum" in told[1]


async def test_an_object_that_stays_wrong_is_an_error_after_the_attempts() -> None:
    calls: list[int] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls.append(1)
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"n": 0})])

    with pytest.raises(ProviderError, match="no usable answer"):
        await PydanticAILanguageModel(FunctionModel(answer), schema_attempts=2).complete(ASK, schema=NUMBER)
    assert len(calls) == 2


async def test_a_stream_gives_the_pieces() -> None:
    async def pieces(messages: list[ModelMessage], info: AgentInfo) -> Any:
        yield "One "
        yield "two"

    model = PydanticAILanguageModel(FunctionModel(stream_function=pieces))
    assert [piece async for piece in model.stream(ASK)] == ["One ", "two"]


@pytest.mark.parametrize("messages", [[], [ChatMessage(ChatRole.ASSISTANT, "I speak last.")]])
async def test_a_conversation_that_asks_nothing_is_refused(messages: list[ChatMessage]) -> None:
    with pytest.raises(InvalidInput, match="messages"):
        await PydanticAILanguageModel(TestModel()).complete(messages)


@pytest.mark.parametrize("name", ["nonsense", "no-such-provider:model", "openai:"])
def test_a_model_that_pydantic_ai_cannot_use_is_a_matter_of_configuration(name: str, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="model"):
        PydanticAILanguageModel(name)
    with pytest.raises(ConfigError, match="model"):
        PydanticAIEmbedder(name)


async def test_completions_work_over_a_socket(server, provider) -> None:
    model = PydanticAILanguageModel(OpenAIChatModel("scripted", provider=provider))
    server.plays(server.chat("Two."))
    completion = await model.complete(ASK, max_tokens=9)
    assert (completion.text, completion.usage.input_tokens, completion.usage.output_tokens) == ("Two.", 7, 3)
    assert server.requests[0].json["messages"][0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, ProviderError), (401, ProviderError), (429, ProviderUnavailable), (503, ProviderUnavailable)],
)
async def test_a_failure_over_a_socket_is_translated(server, provider, status: int, error: type[Exception]) -> None:
    server.plays(server.json({"error": {"message": "said the server"}}, status))
    models = OpenAIChatModel("scripted", provider=provider), OpenAIEmbeddingModel("scripted", provider=provider)
    with pytest.raises(error, match="said the server") as caught:
        await PydanticAILanguageModel(models[0]).complete(ASK)
    assert type(caught.value) is error
    with pytest.raises(error, match="said the server") as caught:
        await PydanticAIEmbedder(models[1]).embed_query("a")
    assert type(caught.value) is error


async def test_a_server_that_resets_the_connection_is_unavailable(server, provider) -> None:
    server.plays(server.resets)
    with pytest.raises(ProviderUnavailable):
        await PydanticAILanguageModel(OpenAIChatModel("scripted", provider=provider)).complete(ASK)


async def test_embeddings_work_over_a_socket_and_are_checked(server, provider) -> None:
    embedder = PydanticAIEmbedder(OpenAIEmbeddingModel("scripted", provider=provider), dimensions=2)

    async def reply(request: Any, writer: Any) -> None:
        data = [
            {"object": "embedding", "index": n, "embedding": [float(len(text)), 1.0]}
            for n, text in enumerate(request.json["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        await server.json({"object": "list", "model": "scripted", "data": data, "usage": usage})(request, writer)

    server.plays(reply)
    assert await embedder.embed_documents(["a", " ", "ccc"]) == [array("f", v) for v in ([1, 1], [0, 0], [3, 1])]
    assert await embedder.embed_query("bb") == array("f", [2, 1])
    assert embedder.model == "scripted"
    await embedder.close()


def test_without_the_library_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from lamina.providers.pydantic_ai import PydanticAILanguageModel\n"
        "PydanticAILanguageModel('openai:x')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'lamina[pydantic-ai]'" in result.stderr
    assert MissingExtra.__name__ in result.stderr
