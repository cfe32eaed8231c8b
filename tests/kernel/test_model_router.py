"""Which model does which task, and whose it is."""

from __future__ import annotations

import pytest
from stable_ids import stable

from lamina.errors import ConfigError, InvalidInput, InvalidType
from lamina.kernel import Kernel, ModelRouter, Task
from lamina.ports.language_model import ChatMessage, ChatRole
from lamina.settings import define_config
from lamina.testing import EchoModel, HashingEmbedder

ASK = [ChatMessage(ChatRole.USER, "hello")]


async def test_plain_callables_are_models():
    async def answer(messages):
        return messages[-1].content.upper()

    router = ModelRouter(complete=answer, embed=lambda text: [1.0, float(len(text))])
    assert (await router.model_for(Task.ANSWERS).complete(ASK)).text == "HELLO"
    async with Kernel(model_router=router) as kernel:
        assert len((await kernel.memory_engine.get(await kernel.memory_engine.store("x"))).embedding) == 2
        assert (await kernel.submit(goal="shout")).answer.endswith("SHOUT")


def test_a_task_goes_to_its_own_model_and_else_to_the_one_that_answers():
    answers, facts = EchoModel(), EchoModel()
    router = ModelRouter(complete=answers, facts=facts)
    assert router.model_for("answers") is answers
    assert router.model_for("summaries") is answers
    assert router.model_for("facts") is facts
    assert ModelRouter().model_for("answers") is None


def test_no_model_is_chosen_because_a_key_lies_about(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-lies-about")
    assert Kernel().model_router.model_for(Task.ANSWERS) is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"complete": 5}, InvalidType),
        ({"complete": ""}, ConfigError),
        ({"complete": "nobody:model"}, ConfigError),
        ({"context_window": 0}, InvalidInput),
        ({"context_window": True}, InvalidInput),
        ({"facts": object()}, InvalidType),
    ],
    ids=stable,
)
def test_what_is_no_model_is_refused(options, error):
    with pytest.raises(error):
        ModelRouter(**options)


def test_an_unknown_task_is_refused():
    with pytest.raises(InvalidInput, match="answers, summaries, facts"):
        ModelRouter().model_for("dreams")


async def test_a_named_model_is_made_and_closed_and_a_given_one_is_left_open(server):
    class Watched(EchoModel):
        closed = False

        async def close(self):
            self.closed = True

    given = Watched()
    server.plays(server.chat("From the server."))
    config = define_config(model={"provider": "http", "model": "m", "base_url": server.url}, memory={"llm": given})
    async with Kernel(config) as kernel:
        assert (await kernel.submit(goal="hello")).answer == "From the server."
        named = kernel.model_router.model_for(Task.ANSWERS)
        assert (named.provider, named.model) == ("http", "m")
    assert not given.closed


async def test_a_router_goes_before_the_model_that_the_settings_name():
    config = define_config(model={"provider": "http", "model": "m", "base_url": "http://127.0.0.1:9/v1"})
    async with Kernel(
        config, model_router=ModelRouter(complete=EchoModel(["mine"]), embed=HashingEmbedder())
    ) as kernel:
        assert (await kernel.submit(goal="hello")).answer == "mine"
