"""Whichever call of the language model fails, however: no turn is lost, history is never replaced by rubbish."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from faults_injected import MODEL_FAILURES, FailingModel, NthCall
from faults_world import DEEDS, Told, World, seen

from lamina.kernel import Kernel, ModelRouter
from lamina.testing import FrozenClock, HashingEmbedder

SETTINGS: Final[dict[str, Any]] = {
    "memory": {"auto_save": True},
    "conversation": {"compaction": {"threshold": 20, "keep_recent": 2}},
}
ANSWERS: Final = [kind for kind, given in MODEL_FAILURES.items() if given is not None]


@pytest.fixture
def nth():
    return NthCall()


@pytest.fixture
async def world(tmp_path, monkeypatch, nth):
    monkeypatch.setattr("lamina.kernel.auto_save.TIMEOUT", 0.3)
    clock = FrozenClock()
    router = ModelRouter(complete=FailingModel(nth), embed=HashingEmbedder(64))
    settings = {**SETTINGS, "data_dir": tmp_path, "agents": {"timeout": 0.3}}
    async with Kernel(settings, model_router=router, clock=clock) as kernel:
        yield World(kernel, clock)


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_summary_that_fails_leaves_the_thread_whole_and_the_next_one_is_written(world, nth, kind):
    await DEEDS["compact"].prepare(world, "mira")
    (before,) = (await seen(world, "mira"))["threads"]
    nth.arm(1, kind)
    told = ""
    try:
        await DEEDS["compact"].run(world, "mira")
    except Told as said:
        told = str(said)
    assert nth.disarm()
    (found,) = (await seen(world, "mira"))["threads"]
    assert found[2] == before[2], "every message that was ever said is there"
    if told:
        assert found == before
        await DEEDS["compact"].run(world, "mira")
        (found,) = (await seen(world, "mira"))["threads"]
    ((first, last, source, text),) = found[4]
    assert (first, last, source) == (1, 6, "model")
    assert text.strip()
    assert len(text) < 10_000, "a summary is bounded, whatever a model says"
    text.encode()


@pytest.mark.parametrize("kind", MODEL_FAILURES)
async def test_a_turn_is_answered_and_kept_or_fails_and_leaves_nothing(world, nth, kind):
    for at in (1, 2):  # the answer, and then what is saved of it
        owner = f"owner-{at}"
        nth.arm(at, kind)
        async with asyncio.timeout(20):
            result = await world.kernel.submit(goal="I live in Ghent", owner=owner, thread_id=f"{owner}-chat")
        assert nth.disarm(), at
        found = await seen(world, owner)
        if result.error is not None:
            assert at == 1, "what follows a turn does not make it fail"
            assert (found["threads"], found["memories"]) == ([], [])
            continue
        ((_, _, history, _, _),) = found["threads"]
        assert [index for index, _ in history] == [1, 2]
        assert history[0][1] == "I live in Ghent"
        saved = [row[1] for row in found["memories"]]
        assert len(saved) <= 1, "nothing is made up, and nothing twice"
        given = MODEL_FAILURES[kind]
        if at == 2 and not (isinstance(given, dict) and given.get("facts") == []):
            assert result.warnings, "what came of the model's answer is told"
