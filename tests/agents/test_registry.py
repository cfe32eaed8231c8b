"""Agents: how they are defined, registered and chosen."""

from __future__ import annotations

import pytest

from lamina.agents import ASSISTANT, Agent, AgentDefinition, AgentRegistry, Capability, define_agent
from lamina.errors import InvalidInput, InvalidType, ProviderUnavailable
from lamina.testing import HashingEmbedder


def agent(name, *capabilities, **options):
    return define_agent(
        name, capabilities=[Capability(id=str(n), description=text) for n, text in enumerate(capabilities)], **options
    )


def test_an_agent_is_a_definition_and_an_executor():
    made = define_agent(
        name="release-helper",
        description="Helps with releases",
        capabilities=[{"id": "release", "name": "Release", "description": "Shipping a version", "confidence": 0.95}],
        instructions="Give short, ordered steps.",
    )
    assert isinstance(made.definition, AgentDefinition)
    assert made.definition.capabilities == (Capability("release", "Release", "Shipping a version", 0.95),)
    registry = AgentRegistry()
    assert registry.register(made.definition, made.executor).name == "release-helper"
    assert registry.get("release-helper").executor is made.executor


def test_an_agent_alone_or_a_definition_alone_can_be_registered():
    registry = AgentRegistry()
    registry.register(agent("one"))
    registry.register(AgentDefinition("two"))
    assert [each.name for each in registry.list()] == ["one", "two"]
    assert registry.unregister("one")
    assert not registry.unregister("one")
    assert registry.get("one") is None


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced():
    registry = AgentRegistry()
    registry.register(agent("one"))
    with pytest.raises(ValueError, match="one"):
        registry.register(agent("one"))
    other = agent("one")
    assert registry.register(other, replace=True) is other


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": 5},
        {"name": "a", "description": None},
        {"name": "a", "instructions": 5},
        {"name": "a", "capabilities": "release"},
        {"name": "a", "capabilities": [5]},
        {"name": "a", "capabilities": [{"name": "no id"}]},
        {"name": "a", "capabilities": [{"id": "x", "level": 3}]},
        {"name": "a", "capabilities": [{"id": "x"}, {"id": "x"}]},
        {"name": "a", "capabilities": [{"id": "x", "confidence": 2}]},
        {"name": "a", "capabilities": [{"id": "x", "confidence": True}]},
        {"name": "a", "tools": "weather"},
        {"name": "a", "executor": "answer"},
    ],
    ids=str,
)
def test_what_cannot_be_an_agent_is_refused(options):
    with pytest.raises((InvalidInput, InvalidType)):
        define_agent(**options)


@pytest.mark.parametrize("thing", ["agent", None, 5, object()])
def test_what_is_no_agent_cannot_be_registered(thing):
    with pytest.raises(InvalidType, match="define_agent"):
        AgentRegistry().register(thing)


def test_another_executor_beside_an_agent_is_refused():
    with pytest.raises(InvalidInput, match="executor"):
        AgentRegistry().register(agent("one"), lambda intent, context, model: "x")


@pytest.fixture
def registry():
    registry = AgentRegistry()
    registry.register(agent("cook", "recipes and cooking food", "what to eat for dinner"))
    registry.register(agent("pilot", "flying aeroplanes", "airports and weather for flights"))
    return registry


@pytest.mark.parametrize("embedder", [None, HashingEmbedder()], ids=["words", "words and meaning"])
@pytest.mark.parametrize(
    ("goal", "expected"),
    [("A recipe for dinner, please", "cook"), ("Which airport has good weather?", "pilot"), ("COOKING!", "cook")],
)
async def test_the_agent_whose_capability_is_closest_serves(registry, embedder, goal, expected):
    assert (await registry.select(goal, embedder=embedder)).name == expected


async def test_without_agents_and_without_anything_close_the_assistant_serves(registry):
    assert await AgentRegistry().select("anything") is ASSISTANT
    assert await registry.select("quantum chromodynamics") is ASSISTANT


async def test_a_single_agent_always_serves():
    registry = AgentRegistry()
    registry.register(agent("only", "flying aeroplanes"))
    assert (await registry.select("quantum chromodynamics")).name == "only"


async def test_confidence_weighs_and_of_equals_the_first_serves():
    registry = AgentRegistry()
    for name, confidence in (("unsure", 0.3), ("sure", 0.9), ("as sure", 0.9), ("not at all", 0.0)):
        registry.register(
            define_agent(name, capabilities=[Capability("tea", description="making tea", confidence=confidence)])
        )
    assert (await registry.select("making tea")).name == "sure"


async def test_an_agent_without_capabilities_is_compared_by_its_description():
    registry = AgentRegistry()
    registry.register(define_agent("a", "Knows about tea"))
    registry.register(define_agent("b", "Knows about bicycles"))
    assert (await registry.select("repair my bicycle")).name == "b"


async def test_an_embedder_that_fails_leaves_the_choice_to_words(registry, caplog):
    class Broken(HashingEmbedder):
        async def embed_documents(self, texts):
            raise ProviderUnavailable("testing", "down")

    assert (await registry.select("A recipe for dinner", embedder=Broken())).name == "cook"
    assert "chosen by words" in caplog.text
    assert "recipe" not in caplog.text


async def test_the_texts_of_capabilities_are_embedded_once(registry):
    embedder = HashingEmbedder()
    await registry.select("dinner", embedder=embedder)
    first = embedder.texts
    await registry.select("dinner", embedder=embedder)
    assert embedder.texts == first + 1


def test_a_name_is_looked_up_and_an_unknown_one_lists_those_that_there_are(registry):
    assert registry.named("cook").name == "cook"
    assert registry.named("assistant") is ASSISTANT
    with pytest.raises(InvalidInput, match="cook, pilot"):
        registry.named("nobody")


def test_an_agent_may_take_the_assistants_name():
    registry = AgentRegistry()
    own = registry.register(agent("assistant"))
    assert isinstance(own, Agent)
    assert registry.named("assistant") is own
