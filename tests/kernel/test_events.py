"""Hosts are told what happens: by name, in order, without content."""

from __future__ import annotations

import asyncio
import logging

import pytest

from lamina.agents import define_agent
from lamina.errors import InvalidInput, InvalidType
from lamina.kernel.event_bus import EventBus
from lamina.ports.events import Event, EventName
from lamina.testing import FrozenClock

NOW = FrozenClock()()


def event(name=EventName.MEMORY_STORED, **facts):
    return Event(name, NOW, "default", facts)


def test_a_handler_gets_the_events_of_its_name_until_it_unsubscribes():
    bus, told = EventBus(), []
    unsubscribe = bus.on("memory.stored", told.append)
    bus.emit(event())
    bus.emit(event(EventName.MEMORY_VETOED))
    unsubscribe()
    unsubscribe()
    bus.emit(event())
    assert [each.name for each in told] == [EventName.MEMORY_STORED]


def test_a_handler_that_fails_is_logged_and_the_others_are_told(caplog):
    bus, told = EventBus(), []

    def broken(_):
        raise RuntimeError("handler")

    bus.on("memory.stored", broken)
    bus.on("memory.stored", told.append)
    bus.emit(event(ids=["mem_1"]))
    assert len(told) == 1
    assert "a handler of memory.stored failed" in caplog.text


async def test_async_handlers_run_and_are_waited_for_when_the_bus_closes(caplog):
    bus, told = EventBus(), []

    async def slow(each):
        await asyncio.sleep(0)
        told.append(each)

    async def broken(_):
        raise RuntimeError("handler")

    bus.on("memory.stored", slow)
    bus.on("memory.stored", broken)
    bus.emit(event())
    assert told == []
    await bus.close()
    assert len(told) == 1
    assert "a handler of memory.stored failed" in caplog.text


async def test_a_handler_that_never_ends_is_cancelled(monkeypatch, caplog):
    monkeypatch.setattr("lamina.kernel.event_bus.DRAIN_SECONDS", 0.01)
    bus, ended = EventBus(), []

    async def stuck(_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    bus.on("memory.stored", stuck)
    bus.emit(event())
    await asyncio.sleep(0)
    await bus.close()
    assert ended == [True]
    assert "1 event handlers were still running" in caplog.text


def test_a_handler_may_unsubscribe_while_it_is_told():
    bus, told = EventBus(), []

    def once(each):
        told.append(each)
        unsubscribe()

    unsubscribe = bus.on("memory.stored", once)
    bus.on("memory.stored", told.append)
    bus.emit(event())
    bus.emit(event())
    assert len(told) == 3


def test_an_unknown_name_and_a_handler_that_cannot_be_called_are_refused():
    with pytest.raises(InvalidInput, match=r"memory\.stored"):
        EventBus().on("memory.eaten", print)
    with pytest.raises(InvalidType):
        EventBus().on("memory.stored", "print")


async def test_everything_that_happens_is_told_without_content(open_kernel, clock):
    kernel = await open_kernel(
        conversation={"window": 2},
        context={"token_budget": 200},
        memory={"hooks": {"on_before_store": lambda entry: None if "veto" in entry.content else entry}},
    )
    told = []
    for name in EventName:
        kernel.on(name, told.append)
    id = await kernel.memory_engine.store("zimt is in the jar", owner="mira", ttl=None)
    await kernel.memory_engine.store("veto zimt", owner="mira")
    for number in range(12):
        await kernel.memory_engine.store(f"zimt {number} " + "and more of it " * 10, owner="mira")
    await kernel.memory_engine.recall("zimt", owner="mira")
    for number in range(3):
        await kernel.submit(goal=f"Where is the zimt {number}?", owner="mira", thread_id="t")
    await kernel.conversation.archive("t")
    clock.advance(60 * 60 * 48)
    await kernel.memory_engine.decay()
    await kernel.memory_engine.forget(id)

    async def broken(intent, context, model):
        raise RuntimeError("no")

    kernel.agent_registry.register(define_agent("broken", executor=broken))
    await kernel.submit(goal="zimt", owner="mira")
    seen = {each.name for each in told}
    assert seen >= {
        EventName.MEMORY_STORED,
        EventName.MEMORY_VETOED,
        EventName.MEMORY_RECALLED,
        EventName.MEMORY_FORGOTTEN,
        EventName.MEMORY_DECAYED,
        EventName.THREAD_SUMMARIZED,
        EventName.THREAD_ARCHIVED,
        EventName.CONTEXT_COMPUTED,
        EventName.CONTEXT_TRIMMED,
        EventName.INTENT_COMPLETED,
        EventName.INTENT_FAILED,
    }
    assert "zimt" not in repr([dict(each.facts) for each in told])
    assert {each.tenant for each in told} == {"default"}
    failed = next(each for each in told if each.name is EventName.INTENT_FAILED)
    assert (failed.facts["error"], failed.facts["agent"]) == ("RuntimeError", "broken")


async def test_under_debug_events_are_logged_without_content(open_kernel, caplog):
    caplog.set_level(logging.INFO, logger="lamina.events")
    quiet = await open_kernel()
    await quiet.submit(goal="Where is the zimt?", owner="mira")
    assert caplog.text == ""
    loud = await open_kernel(memory={"debug": True})
    await loud.submit(goal="Where is the zimt?", owner="mira")
    assert "context.computed" in caplog.text
    assert "intent.completed" in caplog.text
    assert "zimt" not in caplog.text
