"""What a caller such as a summariser is told when its model answers badly or not at all."""

from __future__ import annotations

import asyncio

import pytest
from scripted_server import FAILURES, RUBBISH

from lamina.errors import ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel

ASK = [ChatMessage(ChatRole.SYSTEM, "Summarise."), ChatMessage(ChatRole.USER, "The spare key is under the blue pot.")]
SUMMARY = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["summary", "facts"],
    "additionalProperties": False,
}
RIGHT = '{"summary": "The key is under the blue pot.", "facts": ["key: blue pot"]}'


@pytest.fixture
async def model(server):
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=0.3, max_elapsed=1)
    yield model
    await model.close()


@pytest.fixture
async def patient_model(server):
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=1, timeout=0.3, max_elapsed=5)
    yield model
    await model.close()


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_server_that_does_not_answer_is_an_error_and_never_an_answer(server, model, failure):
    server.plays(FAILURES[failure])
    with pytest.raises(ProviderError):
        await model.complete(ASK, schema=SUMMARY)


@pytest.mark.parametrize("failure", FAILURES)
async def test_the_same_holds_for_text_without_a_schema(server, model, failure):
    server.plays(FAILURES[failure])
    with pytest.raises(ProviderError):
        await model.complete(ASK)


@pytest.mark.parametrize(
    "failure", [each for each in FAILURES if each in {"429 with Retry-After", "500", "503", "hangs"}]
)
async def test_what_may_pass_is_tried_again_and_then_answered(server, patient_model, failure):
    server.plays(FAILURES[failure], server.chat(RIGHT))
    completion = await patient_model.complete(ASK, schema=SUMMARY)
    assert completion.data == {"summary": "The key is under the blue pot.", "facts": ["key: blue pot"]}
    assert len(server.requests) == 2


async def test_a_refused_key_is_not_tried_again(server, model):
    server.plays(FAILURES["401"])
    with pytest.raises(ProviderError) as caught:
        await model.complete(ASK)
    assert not isinstance(caught.value, ProviderUnavailable)
    assert len(server.requests) == 1


@pytest.mark.parametrize("rubbish", RUBBISH)
async def test_an_answer_that_is_not_the_object_asked_for_is_refused_whole(server, model, rubbish):
    server.plays(server.chat(RUBBISH[rubbish]))
    with pytest.raises(ProviderError, match="none of 3 answers was an object of the schema") as caught:
        await model.complete(ASK, schema=SUMMARY)
    assert len(server.requests) == 3
    assert "blue pot" not in str(caught.value), "the error repeats what the model said"


@pytest.mark.parametrize("rubbish", RUBBISH)
async def test_a_second_answer_that_is_right_is_taken_and_nothing_of_the_first(server, model, rubbish):
    server.plays(server.chat(RUBBISH[rubbish]), server.chat(RIGHT))
    completion = await model.complete(ASK, schema=SUMMARY)
    assert completion.text == RIGHT
    assert completion.usage.input_tokens == 14, "both requests are paid for"
    assert len(server.requests[1].body) < 20_000, "a megabyte is not sent back"


async def test_an_object_alone_in_a_fence_is_taken(server, model):
    server.plays(server.chat(f"```json\n{RIGHT}\n```"))
    assert (await model.complete(ASK, schema=SUMMARY)).data["facts"] == ["key: blue pot"]


async def test_half_a_surrogate_pair_inside_an_object_becomes_a_sign_that_can_be_stored(server, model):
    server.plays(server.chat('{"summary": "broken \\ud83d here", "facts": []}'))
    data = (await model.complete(ASK, schema=SUMMARY)).data
    assert data is not None
    assert data["summary"].encode() == "broken \ufffd here".encode()


@pytest.mark.parametrize("said", [[], ["The key "], ["The key ", "is under"]])
async def test_a_stream_that_breaks_off_ends_with_an_error_after_what_was_said(server, model, said):
    server.plays(server.cut(*said))
    heard = []

    async def listen():
        async for piece in model.stream(ASK):
            heard.append(piece)  # noqa: PERF401 - what was heard before the error counts

    with pytest.raises(ProviderError):
        await listen()
    assert heard == said


async def test_a_cancelled_call_to_a_server_that_hangs_ends_at_once_and_the_next_one_works(server, model):
    arrived = asyncio.Event()

    async def hangs(request, writer):
        arrived.set()
        await server.hangs(request, writer)

    server.plays(hangs, server.chat("Here."))
    task = asyncio.create_task(model.complete(ASK))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await model.complete(ASK)).text == "Here."


async def test_a_slow_answer_within_the_timeout_is_an_answer(server, model):
    server.plays(server.slow(0.05, server.chat("Here.")))
    assert (await model.complete(ASK)).text == "Here."
