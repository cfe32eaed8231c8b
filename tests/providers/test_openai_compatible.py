from __future__ import annotations

import base64
import json
from array import array
from typing import Any

import numpy as np
import pytest

from lamina.errors import ConfigError, EmbeddingDimensionError, InvalidInput, ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole, Usage
from lamina.providers.openai_compatible import OpenAICompatibleEmbedder, OpenAICompatibleLanguageModel

ASK = [ChatMessage(ChatRole.SYSTEM, "Be brief."), ChatMessage(ChatRole.USER, "How many?")]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def by_length(text: str) -> list[float]:
    return [float(len(text)), 1.0]


@pytest.fixture
async def embedder(server):
    embedder = OpenAICompatibleEmbedder("m", base_url=server.url, api_key="sk-1", max_retries=1, timeout=5)
    yield embedder
    await embedder.close()


@pytest.fixture
async def model(server):
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=1, timeout=5)
    yield model
    await model.close()


# Embeddings -------------------------------------------------------------------------------


async def test_texts_become_vectors_in_order_and_blank_ones_are_not_sent(server, embedder) -> None:
    server.plays(server.embeds(by_length))
    vectors = await embedder.embed_documents(["a", "\n\t", "ccc"])
    assert vectors == [array("f", [1, 1]), array("f", [0, 0]), array("f", [3, 1])]
    [request] = server.requests
    assert request.path == "/v1/embeddings"
    assert request.json == {"model": "m", "input": ["a", "ccc"]}
    assert request.headers["authorization"] == "Bearer sk-1"


async def test_a_query_is_one_text(server, embedder) -> None:
    server.plays(server.embeds(by_length))
    assert await embedder.embed_query("bb") == array("f", [2, 1])


async def test_base64_and_shuffled_indices_are_understood(server, embedder) -> None:
    def encoded(text: str) -> str:
        return base64.b64encode(np.array(by_length(text), "<f4").tobytes()).decode()

    server.plays(server.embeds(encoded, change=lambda items: items[::-1]))
    vectors = await embedder.embed_documents(["a", "bb", "ccc"])
    assert [v[0] for v in vectors] == [1.0, 2.0, 3.0]


async def test_without_indices_the_order_is_that_of_the_texts(server, embedder) -> None:
    server.plays(server.embeds(by_length, change=lambda items: [{"embedding": item["embedding"]} for item in items]))
    assert [v[0] for v in await embedder.embed_documents(["a", "bb"])] == [1.0, 2.0]


async def test_requests_keep_the_limits_of_items_and_tokens(server) -> None:
    server.plays(server.embeds(by_length))
    embedder = OpenAICompatibleEmbedder("m", base_url=server.url, batch_size=2, batch_tokens=30, max_input_tokens=20)
    vectors = await embedder.embed_documents(["a", "b", "c", "d" * 60, "e" * 60, "f" * 600])
    sent = [request.json["input"] for request in server.requests]
    assert sent == [["a", "b"], ["c", "d" * 57], ["e" * 57], ["f" * 57]]
    assert [v[0] for v in vectors] == [1.0, 1.0, 1.0, 57.0, 57.0, 57.0]
    await embedder.close()


async def test_dimensions_are_asked_for_and_held_to(server) -> None:
    server.plays(server.embeds(by_length))
    embedder = OpenAICompatibleEmbedder("m", base_url=server.url, dimensions=3)
    with pytest.raises(EmbeddingDimensionError, match="2 dimensions, not 3"):
        await embedder.embed_documents(["a"])
    assert server.requests[0].json["dimensions"] == 3
    await embedder.close()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda items: items[:-1], "1 vectors for 2 texts"),
        (lambda items: [*items, items[0]], "3 vectors for 2 texts"),
        (lambda items: [items[0], items[0]], "indices"),
        (lambda items: [items[0], {**items[1], "index": 7}], "indices"),
        (lambda items: [items[0], {**items[1], "index": "1"}], "indices"),
        (lambda items: [items[0], {**items[1], "embedding": [1.0]}], "1 dimensions, not 2"),
        (lambda items: [items[0], {**items[1], "embedding": [float("nan"), 1.0]}], "not finite"),
        (lambda items: [items[0], {**items[1], "embedding": [0.0, 0.0]}], "all zero"),
        (lambda items: [items[0], {**items[1], "embedding": None}], "no list of numbers"),
        (lambda items: [items[0], {**items[1], "embedding": "no base64!"}], "base64"),
        (lambda items: [items[0], {**items[1], "embedding": "AAAAAAA="}], "base64"),
        (lambda items: [1, 2], "no list of embeddings"),
    ],
)
async def test_a_wrong_list_of_vectors_is_refused_and_named(server, embedder, change: Any, problem: str) -> None:
    server.plays(server.embeds(by_length, change=change))
    with pytest.raises(ProviderError, match=problem):
        await embedder.embed_documents(["a", "bb"])


@pytest.mark.parametrize("answer", [None, [], {}, {"data": None}, {"data": "x"}, {"error": "model not loaded"}])
async def test_an_answer_of_another_shape_is_refused(server, embedder, answer: Any) -> None:
    server.plays(server.json(answer))
    with pytest.raises(ProviderError, match="no list of embeddings"):
        await embedder.embed_documents(["a"])


async def test_a_lone_surrogate_is_sent_as_the_replacement_character(server, embedder) -> None:
    server.plays(server.embeds(by_length))
    await embedder.embed_documents(["a\ud83d"])
    assert server.requests[0].json["input"] == ["a\ufffd"]


async def test_what_one_batch_fails_with_is_raised_and_no_vector_is_made_up(server) -> None:
    server.plays(server.embeds(by_length), server.raw(b"too long", 400))
    embedder = OpenAICompatibleEmbedder("m", base_url=server.url, batch_size=1)
    with pytest.raises(ProviderError, match="too long"):
        await embedder.embed_documents(["a", "b"])
    await embedder.close()


def test_no_environment_variable_is_read_and_the_provider_is_named_by_the_address(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    embedder = OpenAICompatibleEmbedder("m")
    assert embedder._http._api_key is None
    assert (embedder.provider, embedder.model) == ("openai", "m")
    assert OpenAICompatibleEmbedder("m", base_url="http://localhost:1/v1").provider == "http"
    assert OpenAICompatibleLanguageModel("m", base_url="http://h/v1", provider="ours").provider == "ours"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"dimensions": 0}, "dimensions"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_tokens": 1.5}, "batch_tokens"),
        ({"max_input_tokens": -1}, "max_input_tokens"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        OpenAICompatibleEmbedder(**{"model": "m", **options})


# Completions ------------------------------------------------------------------------------


async def test_a_conversation_is_completed_and_usage_counted(server, model) -> None:
    server.plays(server.chat("Two."))
    completion = await model.complete(ASK, max_tokens=50)
    assert (completion.text, completion.usage, completion.data) == ("Two.", Usage(7, 3), None)
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert "authorization" not in request.headers
    assert request.json == {
        "model": "m",
        "max_tokens": 50,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How many?"}],
    }


async def test_openai_gets_its_own_name_for_the_token_limit_and_its_compact_vectors(server) -> None:
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, provider="openai", temperature=0.0)
    embedder = OpenAICompatibleEmbedder("m", base_url=server.url, provider="openai")
    server.plays(server.chat("Two."), server.embeds(by_length))
    await model.complete(ASK, max_tokens=50)
    await embedder.embed_query("a")
    assert server.requests[0].json.items() >= {"max_completion_tokens": 50, "temperature": 0.0}.items()
    assert server.requests[1].json["encoding_format"] == "base64"
    await model.close()
    await embedder.close()


@pytest.mark.parametrize("content", ["", " \n"])
async def test_an_empty_answer_is_an_error(server, model, content: str) -> None:
    server.plays(server.chat(content))
    with pytest.raises(ProviderError, match="empty"):
        await model.complete(ASK)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"choices": []}, "no text"),
        ({"choices": [{"message": {"content": None}}]}, "no text"),
        ({"choices": [{"message": {"content": [{"type": "text"}]}}]}, "no text"),
        ({"choices": [{"message": {"content": None, "refusal": "I will not"}}]}, "refused"),
        ([], "no text"),
    ],
)
async def test_an_answer_without_text_is_an_error(server, model, reply: Any, problem: str) -> None:
    server.plays(server.json(reply))
    with pytest.raises(ProviderError, match=problem):
        await model.complete(ASK)


async def test_surrogates_are_cleaned_on_the_way_out_and_in(server, model) -> None:
    server.plays(server.raw(rb'{"choices": [{"message": {"content": "a\ud83d"}}]}'))
    completion = await model.complete([ChatMessage(ChatRole.USER, "b\udc00")])
    assert completion.text == "a\ufffd"
    assert completion.usage == Usage()
    assert server.requests[0].json["messages"][0]["content"] == "b\ufffd"


async def test_no_message_is_refused_before_anything_is_sent(server, model) -> None:
    with pytest.raises(InvalidInput, match="messages"):
        await model.complete([])
    assert server.requests == []


async def test_a_schema_goes_to_the_server_and_the_answer_is_held_to_it(server, model) -> None:
    wrong = ["Sure!", '{"n": "two"}']
    server.plays(*map(server.chat, wrong), server.chat('```json\n{"n": 2}\n```'))
    completion = await model.complete(ASK, schema=NUMBER)
    assert completion.data == {"n": 2}
    assert completion.usage == Usage(21, 9)
    first, second, third = (request.json for request in server.requests)
    assert first["response_format"]["json_schema"]["schema"] == NUMBER
    assert len(first["messages"]) == 2
    assert "not JSON" in second["messages"][-1]["content"]
    assert "$.n" in third["messages"][-1]["content"]


@pytest.mark.parametrize("wrong", ["", "[", '{"n": NaN}', "x" * 1_000_000, '{"n": 1.5}'])
async def test_an_answer_that_stays_wrong_is_an_error_after_the_attempts(server, model, wrong: str) -> None:
    server.plays(server.chat(wrong))
    with pytest.raises(ProviderError, match="none of 3 answers"):
        await model.complete(ASK, schema=NUMBER)
    assert len(server.requests) == 3


@pytest.mark.parametrize(("style", "sent"), [("json_object", {"type": "json_object"}), ("none", None)])
async def test_a_server_without_schemas_is_told_in_words(server, style: Any, sent: Any) -> None:
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, response_format=style)
    server.plays(server.chat('{"n": 2}'))
    assert (await model.complete(ASK, schema=NUMBER)).data == {"n": 2}
    assert server.requests[0].json.get("response_format") == sent
    assert '"integer"' in server.requests[0].json["messages"][-1]["content"]
    await model.close()


def test_an_unknown_response_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="response_format"):
        OpenAICompatibleLanguageModel("m", response_format="xml")  # type: ignore[arg-type]


# Streams ----------------------------------------------------------------------------------


async def test_a_stream_gives_the_pieces_as_they_come(server, model) -> None:
    server.plays(server.pieces("One ", "", "tw\u2028o", "\u8def"))
    assert [piece async for piece in model.stream(ASK)] == ["One ", "tw\u2028o", "\u8def"]
    assert server.requests[0].json["stream"] is True


async def test_a_finish_reason_ends_a_stream_as_well_as_done_does(server, model) -> None:
    last = {"choices": [{"delta": {"content": "two"}, "finish_reason": "stop"}]}
    server.plays(server.events(json.dumps(last), json.dumps({"choices": [], "usage": {}})))
    assert [piece async for piece in model.stream(ASK)] == ["two"]


@pytest.mark.parametrize(
    ("events", "error", "problem"),
    [
        (['{"choices": [{"delta": {"content": "One"}}]}'], ProviderUnavailable, "ended before"),
        (["[DONE]"], ProviderError, "empty"),
        (['{"choices": [{"delta": {"content"'], ProviderError, "no JSON"),
        (['{"error": {"message": "overloaded"}}'], ProviderError, "middle of the stream"),
    ],
)
async def test_a_stream_that_ends_badly_is_an_error(server, model, events, error, problem: str) -> None:
    server.plays(server.events(*events))
    with pytest.raises(error, match=problem):
        [piece async for piece in model.stream(ASK)]


async def test_a_stream_that_is_refused_shows_what_the_server_said(server, model) -> None:
    server.plays(server.raw(b"no such model", 404))
    with pytest.raises(ProviderError, match="no such model"):
        [piece async for piece in model.stream(ASK)]


async def test_a_stream_can_be_left_early(server, model) -> None:
    server.plays(server.pieces("One", "two", "three"))
    stream = model.stream(ASK)
    assert await anext(stream) == "One"
    await stream.aclose()
