"""What a kernel does now and then, and only when it is told to."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from lamina.context.plugin import AssembleResult, BaseContextEngine, CompactResult, EngineInfo
from lamina.domain.intent import Intent
from lamina.errors import AdapterUnavailable, InvalidInput, InvalidType


class Engine(BaseContextEngine):
    info = EngineInfo("mine", "Mine")

    def __init__(self):
        self.calls = []

    async def assemble(self, params):
        self.calls.append("assemble")
        return AssembleResult(messages=list(params.messages))

    async def compact(self, params):
        return CompactResult(compacted=False)

    async def ingest(self, params):
        self.calls.append(f"ingest {params.message.text}")

    async def after_turn(self, params):
        self.calls.append(("after_turn", params.session_id, len(params.messages), params.pre_prompt_message_count))

    async def maintain(self, params):
        self.calls.append("maintain")

    async def dispose(self):
        self.calls.append("dispose")


async def test_one_pass_purges_fades_cleans_and_lets_plug_ins_maintain(kernel, clock):
    engine = Engine()
    kernel.context_engines.register(engine)
    await kernel.memory_engine.store("gone soon", owner="mira", ttl=60)
    await kernel.memory_engine.store("fades", owner="mira")
    clock.advance(timedelta(days=2))
    report = await kernel.run_maintenance()
    assert (report.purged, report.decay, report.failures) == (1, None, {})
    assert report.engines == {"mine": True}
    assert engine.calls == ["maintain"]
    report = await kernel.run_maintenance(decay=True)
    assert (report.decay.scanned, report.decay.decayed) == (1, 1)
    (entry,) = await kernel.memory_engine.query(owner="mira")
    assert entry.relevance == 0.95


async def test_a_step_that_fails_is_told_and_the_others_are_done(kernel, clock, monkeypatch):
    async def broken():
        raise AdapterUnavailable("memories", "locked")

    await kernel.memory_engine.store("fades", owner="mira")
    clock.advance(timedelta(days=2))
    monkeypatch.setattr(kernel.memory_engine, "purge_expired", broken)
    report = await kernel.run_maintenance(decay=True)
    assert report.failures == {"purge": "AdapterUnavailable"}
    assert report.decay.decayed == 1


async def test_nothing_fades_or_runs_by_itself(kernel, clock):
    engine = Engine()
    kernel.context_engines.register(engine)
    await kernel.memory_engine.store("stays", owner="mira")
    clock.advance(timedelta(days=400))
    await kernel.submit(goal="Does it stay?", owner="mira")
    (entry,) = await kernel.memory_engine.query(owner="mira")
    assert entry.relevance == 1.0
    assert engine.calls == []


def schedules():
    """The tasks that run scheduled maintenance."""
    return [task for task in asyncio.all_tasks() if "repeated" in repr(task)]


async def test_scheduled_maintenance_runs_inside_its_block_only(kernel):
    passes = asyncio.Queue()
    kernel.on("memory.decayed", passes.put_nowait)
    async with kernel.maintenance(0.01, decay=True):
        assert len(schedules()) == 1
        await passes.get()
        await passes.get()
    assert schedules() == []


async def test_stopping_the_kernel_ends_scheduled_maintenance(open_kernel):
    kernel = await open_kernel()
    async with kernel.maintenance(timedelta(seconds=0.01)):
        assert len(schedules()) == 1
        await kernel.stop()
        await asyncio.sleep(0)
        assert schedules() == []


@pytest.mark.parametrize("interval", [0, -1, "soon", None, True, float("nan")])
async def test_an_interval_that_cannot_be_is_refused(open_kernel, interval):
    kernel = await open_kernel()
    with pytest.raises((InvalidInput, InvalidType), match="interval"):
        async with kernel.maintenance(interval):
            pass


async def test_a_plug_in_engine_serves_is_told_of_the_turn_and_is_disposed_of(open_kernel):
    kernel = await open_kernel()
    engine = Engine()
    kernel.context_engines.register(engine)
    kernel.context_engines.set_default("mine")
    await kernel.submit(goal="one", owner="mira", thread_id="t")
    await kernel.submit(goal="two", owner="mira", thread_id="t")
    await kernel.submit(goal="alone", owner="mira")
    turns = [each for each in engine.calls if isinstance(each, tuple)]
    assert [each[2:] for each in turns] == [(2, 0), (4, 2), (2, 0)]
    assert turns[0][1] == "t"
    assert engine.calls.count("assemble") == 3
    assert "ingest two" in engine.calls
    await kernel.stop()
    assert engine.calls[-1] == "dispose"


async def test_intents_of_two_owners_with_one_id_are_two_sessions_of_a_plug_in_engine(open_kernel, clock):
    class Listening(Engine):
        async def assemble(self, params):
            self.calls.append(("assembled", params.session_id))
            return await super().assemble(params)

    kernel = await open_kernel()
    engine = Listening()
    kernel.context_engines.register(engine)
    kernel.context_engines.set_default("mine")
    for owner in ("mira", "tomas"):
        await kernel.execute_intent(Intent("1", "hello", owner, clock()))
    sessions = [each[1] for each in engine.calls if isinstance(each, tuple)]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]


async def test_a_plug_in_engine_that_fails_does_not_fail_the_intent(open_kernel, model):
    class Broken(Engine):
        async def assemble(self, params):
            raise RuntimeError("index lost")

    kernel = await open_kernel()
    quarantined = []
    kernel.on("engine.quarantined", quarantined.append)
    kernel.context_engines.register(Broken())
    kernel.context_engines.set_default("mine")
    result = await kernel.submit(goal="one", owner="mira", thread_id="t")
    assert result.error is None
    assert any("quarantined" in warning for warning in result.warnings)
    assert len(quarantined) == 1
