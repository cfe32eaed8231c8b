"""Answers and auto-saved facts that come over HTTP: from a server that misbehaves, and from a real small model."""

from __future__ import annotations

import json

import pytest
from scripted_server import FAILURES, RUBBISH

from lamina.domain.intent import IntentResult, IntentStatus
from lamina.errors import AskError
from lamina.kernel import ModelRouter
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel
from lamina.sdk import Lamina
from lamina.testing import EchoModel, HashingEmbedder

GOAL = "I live in Graz. Where is the spare key?"
EVERY_FAILURE = pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
EVERY_RUBBISH = pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())


@pytest.fixture
async def model(server):
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=0.3, schema_attempts=2)
    yield model
    await model.close()


@pytest.fixture
async def answering(open_kernel, model, server):
    """A kernel whose answers come from the server, with one exchange in its thread."""
    kernel = await open_kernel(router=ModelRouter(complete=model, embed=HashingEmbedder()))
    server.plays(server.chat("Hello Mira."))
    await kernel.submit(goal="Hello", owner="mira", thread_id="t")
    return kernel


async def texts(kernel):
    return [message.text for message in await kernel.conversation.history("t")]


@EVERY_FAILURE
async def test_a_question_that_gets_no_answer_fails_and_leaves_the_thread_as_it_was(answering, server, reply):
    server.plays(reply)
    result = await answering.submit(goal=GOAL, owner="mira", thread_id="t")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind in {"ProviderError", "ProviderUnavailable"}
    assert result.answer is None
    assert await texts(answering) == ["Hello", "Hello Mira."]
    with pytest.raises(AskError) as raised:
        await Lamina(answering, owner="mira").ask(GOAL, thread_id="t")
    assert raised.value.result.error.kind == result.error.kind
    server.plays(server.chat("Under the blue pot."))
    assert (await answering.submit(goal=GOAL, owner="mira", thread_id="t")).answer == "Under the blue pot."
    assert await texts(answering) == ["Hello", "Hello Mira.", GOAL, "Under the blue pot."]


@EVERY_FAILURE
async def test_a_stream_that_brings_no_answer_ends_with_its_failure_and_leaves_the_thread_as_it_was(
    answering, server, reply
):
    server.plays(reply)
    *_, result = [piece async for piece in answering.stream(goal=GOAL, owner="mira", thread_id="t")]
    assert isinstance(result, IntentResult)
    assert result.status is IntentStatus.FAILED
    assert await texts(answering) == ["Hello", "Hello Mira."]


async def test_a_stream_that_breaks_off_is_told_and_half_an_answer_is_never_kept(answering, server):
    server.plays(server.cut("Under the ", "blue "))
    *pieces, result = [piece async for piece in answering.stream(goal=GOAL, owner="mira", thread_id="t")]
    assert "".join(pieces) == "Under the blue "
    assert result.status is IntentStatus.FAILED
    assert await texts(answering) == ["Hello", "Hello Mira."]


@EVERY_RUBBISH
async def test_an_answer_in_words_of_any_kind_is_kept_as_an_answer_with_its_question(answering, server, content):
    server.plays(server.chat(content))
    result = await answering.submit(goal=GOAL, owner="mira", thread_id="t")
    assert result.status is IntentStatus.COMPLETED, result.error
    first, second, question, answer = await texts(answering)
    assert (first, second, question) == ("Hello", "Hello Mira.", GOAL)
    assert answer == result.answer
    assert answer.encode("utf-8").decode("utf-8") == answer
    assert len(answer) >= min(len(content), 4) - 2


@pytest.fixture
async def saving(open_kernel, model):
    """A kernel that answers by itself and asks the server for the facts of what was said."""
    router = ModelRouter(complete=EchoModel(["It is under the pot."] * 3), embed=HashingEmbedder(), facts=model)
    return await open_kernel(router=router, memory={"auto_save": True})


async def saved(kernel):
    return [entry.content for entry in await kernel.memory_engine.query(owner="mira")]


@EVERY_FAILURE
async def test_where_no_facts_come_the_exchange_is_kept_and_rules_find_them(saving, server, reply):
    server.plays(reply)
    await check_saved_by_rules(saving, await saving.submit(goal=GOAL, owner="mira", thread_id="t"))


@EVERY_RUBBISH
async def test_what_is_no_list_of_facts_is_never_remembered(saving, server, content):
    server.plays(server.chat(content))
    await check_saved_by_rules(saving, await saving.submit(goal=GOAL, owner="mira", thread_id="t"))


async def check_saved_by_rules(kernel, result):
    assert result.status is IntentStatus.COMPLETED
    assert result.answer == "It is under the pot."
    assert await texts(kernel) == [GOAL, "It is under the pot."]
    assert await saved(kernel) == ["I live in Graz."]
    (warning,) = result.warnings
    assert warning.startswith("auto_save went by rules: the model")
    assert "pot" not in warning


async def test_a_good_list_of_facts_is_remembered(saving, server):
    fact = {"content": "Lives in Graz", "tags": ["home"], "relevance": 0.9, "layer": "longterm"}
    server.plays(server.chat(json.dumps({"facts": [fact]})))
    result = await saving.submit(goal=GOAL, owner="mira", thread_id="t")
    assert result.warnings == []
    assert await saved(saving) == ["Lives in Graz"]


@pytest.fixture
async def open_real_kernel(open_kernel, real_model):
    model = OpenAICompatibleLanguageModel(real_model.name, base_url=real_model.url, temperature=0, schema_attempts=1)

    async def open_one(**settings):
        router = ModelRouter(complete=model, embed=HashingEmbedder())
        return await open_kernel(router=router, agents={"timeout": 300}, **settings)

    yield open_one
    await model.close()


async def test_a_real_model_answers_from_the_context_and_its_facts_are_saved_or_told_of(open_real_kernel):
    real_kernel = await open_real_kernel(memory={"auto_save": True})
    await real_kernel.memory_engine.store("The spare key is under the blue pot.", owner="mira")
    result = await real_kernel.submit(
        goal="My name is Mira. Answer in five words: where is the spare key?", owner="mira", thread_id="t"
    )
    assert result.status is IntentStatus.COMPLETED, result.error
    assert result.answer.strip()
    assert result.usage.input_tokens > 50
    assert result.usage.output_tokens > 0
    assert any("blue pot" in memory.content for memory in result.context.memories)
    assert [message.role for message in await real_kernel.conversation.history("t")] == ["user", "assistant"]
    assert result.saved or result.warnings  # so small a model may find nothing that was said


async def test_a_real_answer_streams_and_is_kept_whole(open_real_kernel):
    real_kernel = await open_real_kernel()
    *pieces, result = [
        piece async for piece in real_kernel.stream(goal="Say hello in two words.", owner="mira", thread_id="t")
    ]
    assert result.status is IntentStatus.COMPLETED, result.error
    assert len(pieces) > 1
    assert "".join(pieces).strip() == result.answer.strip()
    assert (await texts(real_kernel))[-1] == result.answer
