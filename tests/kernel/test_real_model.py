"""A kernel with a real model behind a real server, and with one that misbehaves: what was said is never lost."""

from __future__ import annotations

import pytest

from lamina.domain.intent import IntentResult, IntentStatus
from lamina.kernel import Kernel, ModelRouter
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel
from lamina.testing import EchoModel, HashingEmbedder


class Brief(OpenAICompatibleLanguageModel):
    """Says little, so that a small model on a small machine is done soon."""

    async def complete(self, messages, *, schema=None, max_tokens=None):
        return await super().complete(messages, schema=schema, max_tokens=max_tokens or (60 if schema else 24))

    async def stream(self, messages, *, max_tokens=None):
        async for piece in super().stream(messages, max_tokens=8):
            yield piece


@pytest.fixture
async def small(real_model):
    model = Brief(real_model.name, base_url=real_model.url, temperature=0, schema_attempts=1)
    yield model
    await model.close()


async def test_a_real_model_answers_streams_and_finds_facts_and_all_is_kept(small, tmp_path):
    router = ModelRouter(complete=small, embed=HashingEmbedder())
    async with Kernel(data_dir=tmp_path, model_router=router, memory={"auto_save": True}) as kernel:
        await kernel.memory_engine.store("The spare key is under the blue pot", owner="mira")
        first = await kernel.submit(goal="My name is Mira. Where is the spare key?", owner="mira", thread_id="t")
        assert first.status is IntentStatus.COMPLETED, first.error
        assert first.usage.input_tokens > 50
        assert first.usage.output_tokens > 0
        *pieces, last = [each async for each in kernel.stream(goal="Thanks!", owner="mira", thread_id="t")]
        assert isinstance(last, IntentResult)
        assert "".join(pieces) == last.answer
        kept = await kernel.conversation.history("t")
        assert [each.text for each in kept] == [first.messages[0].text, first.answer, "Thanks!", last.answer]
        for entry in await kernel.memory_engine.query(owner="mira", tags=["auto"]):
            assert entry.metadata["source"] == "auto_save"


@pytest.mark.parametrize("kind", ["slow down", "broken", "empty", "no JSON", "large", "surrogates"])
async def test_a_server_that_misbehaves_fails_the_intent_or_is_cleaned_and_never_harms_the_thread(server, kind):
    replies = {
        "slow down": server.json({"error": "slow down"}, 429, retry_after="0"),
        "broken": server.json({"error": "broken"}, 503),
        "empty": server.chat(""),
        "no JSON": server.raw(b"<html>"),
        "large": server.chat("word " * 200_000),
        "surrogates": server.raw(b'{"choices": [{"message": {"content": "half \\ud800 done"}}]}'),
    }
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0)
    async with Kernel(model_router=ModelRouter(complete=model, embed=HashingEmbedder())) as kernel:
        server.plays(server.chat("Fine."))
        await kernel.submit(goal="Before", thread_id="t")
        server.plays(replies[kind])
        result = await kernel.submit(goal="During", thread_id="t")
        server.plays(server.chat("Fine."))
        await kernel.submit(goal="After", thread_id="t")
        kept = [each.text for each in await kernel.conversation.history("t")]
    await model.close()
    if kind in {"large", "surrogates"}:
        assert result.status is IntentStatus.COMPLETED
        assert kept == ["Before", "Fine.", "During", result.answer, "After", "Fine."]
        assert "\ud800" not in result.answer
    else:
        assert result.status is IntentStatus.FAILED
        assert result.error.kind in {"ProviderError", "ProviderUnavailable"}
        assert kept == ["Before", "Fine.", "After", "Fine."]


async def test_a_stream_that_is_cut_off_leaves_nothing(server):
    server.plays(server.pieces("half of ", "it", done=False))
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0)
    async with Kernel(model_router=ModelRouter(complete=model, embed=HashingEmbedder())) as kernel:
        *pieces, result = [each async for each in kernel.stream(goal="Go", thread_id="t")]
        assert pieces == ["half of ", "it"]
        assert result.error.kind == "ProviderUnavailable"
        assert await kernel.conversation.retrieve("t") is None
    await model.close()


@pytest.mark.parametrize(
    "content", ['```json\n{"facts": []}\n```', '{"facts": [{"content": "Lives', "Sure! Here are", "", "[]"]
)
async def test_a_model_that_gives_odd_facts_does_not_fail_the_turn(server, content):
    server.plays(server.chat(content))
    facts = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, schema_attempts=2)
    router = ModelRouter(complete=EchoModel(), embed=HashingEmbedder(), facts=facts)
    async with Kernel(model_router=router, memory={"auto_save": True}) as kernel:
        result = await kernel.submit(goal="I live in Graz.", owner="mira", thread_id="t")
        assert result.status is IntentStatus.COMPLETED
        fenced = content.startswith("```")
        assert bool(result.saved) is not fenced
        assert bool(result.warnings) is not fenced
        assert len(await kernel.conversation.history("t")) == 2
    await facts.close()
