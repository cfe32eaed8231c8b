"""Intents over HTTP, whole and in pieces."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest
from running_server import TOKEN, served
from served import client_of

from lamina.client import LaminaClient
from lamina.domain.intent import IntentResult, IntentStatus
from lamina.errors import NoModelConfiguredError, ProviderError, ThreadArchivedError, ThreadNotFound
from lamina.kernel import Kernel, ModelRouter
from lamina.server import Access, Principal, create_app
from lamina.testing import EchoModel, HashingEmbedder


def events_of(text):
    """The events of a stream: pairs of a name and its data."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


async def test_an_intent_is_answered_and_the_exchange_kept(http, kernel):
    await kernel.memory_engine.store("Ann likes green tea.", owner="ann")
    body = {"goal": "Suggest green tea", "owner": "ann", "thread_id": "t", "context": True}
    answer = await http.post("/v1/intents", json=body)
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["status"], result["error"], result["thread_id"]) == ("completed", None, "t")
    assert result["usage"]["input_tokens"] > 0
    assert [each["content"] for each in result["context"]["memories"]] == ["Ann likes green tea."]
    kept = await kernel.conversation.history("t", owner="ann")
    assert [each.text for each in kept] == ["Suggest green tea", result["answer"]]
    assert [each["id"] for each in result["messages"]] == [each.id for each in kept]


async def test_a_stream_gives_pieces_and_then_the_result(http, kernel):
    answer = await http.post("/v1/intents/stream", json={"goal": "one two three", "thread_id": "t"})
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    *pieces, (name, result) = events_of(answer.text)
    assert {each for each, _ in pieces} == {"piece"}
    assert name == "result"
    assert "".join(data["text"] for _, data in pieces) == result["answer"]
    assert len(await kernel.conversation.history("t")) == 2


async def test_without_a_model_both_say_so(tmp_path):
    async with Kernel(data_dir=tmp_path) as kernel, client_of(create_app(kernel, auth={TOKEN})) as http:
        for path in ("", "/stream"):
            answer = await http.post(f"/v1/intents{path}", json={"goal": "x", "thread_id": "t"})
            assert (answer.status_code, answer.json()["code"]) == (409, "no_model")
        assert await kernel.conversation.retrieve("t") is None


async def test_a_failure_is_told_without_the_servers_inside(tmp_path):
    broken = EchoModel([ProviderError("the model", "of http://inside.example failed"), RuntimeError("in /srv/secret")])
    router = ModelRouter(broken, embed=HashingEmbedder())
    async with Kernel(data_dir=tmp_path, model_router=router) as kernel:
        async with client_of(create_app(kernel, auth={TOKEN})) as http:
            for kind in ("ProviderError", "RuntimeError"):
                answer = await http.post("/v1/intents", json={"goal": "x", "thread_id": "t"})
                assert (answer.status_code, answer.json()["status"]) == (200, "failed")
                assert answer.json()["error"]["kind"] == kind
                assert "inside.example" not in answer.text
                assert "secret" not in answer.text
        assert await kernel.conversation.retrieve("t") is None


@pytest.mark.parametrize("path", ["", "/stream"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("goal", " "), ("goal", None), ("agent", "nobody"), ("metadata", []), ("unknown", 1), ("thread_id", "")],
)
async def test_what_cannot_be_taken_is_422_and_names_the_field(http, path, field, value):
    answer = await http.post(f"/v1/intents{path}", json={"goal": "x", field: value})
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["errors"][0]["field"]


async def test_an_intent_needs_to_read_and_to_write(kernel):
    async def authenticate(token):
        return Principal(access=frozenset({Access(token)}))

    app = create_app(kernel, auth=authenticate)
    for token in ("read", "write"):
        async with client_of(app, token=token) as http:
            assert (await http.post("/v1/intents", json={"goal": "x"})).status_code == 403


def test_the_stream_describes_itself(app):
    answers = app.openapi()["paths"]["/v1/intents/stream"]["post"]["responses"]
    assert "text/event-stream" in answers["200"]["content"]


class Slow(EchoModel):
    """Says a word, and the next when it is let."""

    def __init__(self):
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.ended = asyncio.Event()

    async def stream(self, messages, *, max_tokens=None):
        try:
            yield "one "
            await self.may_go_on.wait()
            yield "two"
        finally:
            self.ended.set()


async def test_a_client_that_goes_away_leaves_nothing_and_ends_the_model(tmp_path):
    model = Slow()
    kernel = Kernel(data_dir=tmp_path, model_router=ModelRouter(model, embed=HashingEmbedder()))
    with served(kernel) as url:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers) as http:
            body = {"goal": "Count", "thread_id": "t"}
            async with http.stream("POST", "/v1/intents/stream", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        break
            for _ in range(500):
                if model.ended.is_set():
                    break
                await asyncio.sleep(0.01)
            assert model.ended.is_set()
            assert (await http.get("/v1/threads/t")).status_code == 404


async def test_the_client_submits_and_streams(tmp_path):
    kernel = Kernel(
        data_dir=tmp_path, model_router=ModelRouter(EchoModel(["one two", "three"]), embed=HashingEmbedder())
    )
    with served(kernel) as url:
        async with LaminaClient(url, token=TOKEN, owner="ann") as client:
            *pieces, result = [each async for each in client.stream("Count", thread_id="t")]
            assert pieces == ["one ", "two"]
            assert isinstance(result, IntentResult)
            assert (result.status, result.answer) == (IntentStatus.COMPLETED, "one two")
            result = await client.submit("Count on", thread_id="t", context=True)
            assert (result.answer, result.context.user.user_id) == ("three", "ann")
            assert [each.text for each in await client.threads.history("t")] == [
                "Count",
                "one two",
                "Count on",
                "three",
            ]
            await client.threads.archive("t")
            with pytest.raises(ThreadArchivedError):
                await client.submit("x", thread_id="t")
            with pytest.raises(ThreadArchivedError):
                await anext(client.stream("x", thread_id="t"))
            with pytest.raises(ThreadNotFound):
                await client.submit("x", thread_id="t", owner="bob")


async def test_the_client_says_that_there_is_no_model(tmp_path):
    with served(Kernel(data_dir=tmp_path)) as url:
        async with LaminaClient(url, token=TOKEN) as client:
            with pytest.raises(NoModelConfiguredError):
                await client.submit("x")
