"""Starting, stopping and what is open in between."""

from __future__ import annotations

import asyncio

import pytest

from lamina.agents import define_agent
from lamina.errors import AdapterError, ConfigError, InvalidInput, InvalidType, NotStarted, ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.ports.events import EventName
from lamina.settings import define_config
from lamina.testing import EchoModel, HashingEmbedder


def router(*replies):
    return ModelRouter(complete=EchoModel(replies), embed=HashingEmbedder())


def test_a_bare_kernel_is_ephemeral_and_in_development():
    kernel = Kernel()
    assert kernel.ephemeral
    assert kernel.config.environment == "development"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"environment": "production"}, False),
        ({"environment": "test"}, True),
        ({"environment": "production", "ephemeral": True}, True),
        ({"ephemeral": False}, False),
        ({"data_dir": "somewhere"}, False),
        ({"dataDir": "somewhere", "ephemeral": True}, True),
        ({"memory": {"provider": "memory"}}, True),
        ({"memory": {"path": "notes.db"}}, False),
        ({"state_url": ":memory:"}, True),
    ],
    ids=str,
)
def test_a_kernel_keeps_its_data_in_production_and_where_a_place_is_named(settings, expected):
    assert Kernel(settings).ephemeral is expected


@pytest.mark.parametrize(
    "settings",
    [
        {"ephemeral": True, "memory": {"path": "notes.db"}},
        {"ephemeral": True, "state_url": "postgresql://localhost/x"},
        {"environment": "staging"},
        {"state_url": "redis://localhost"},
        {"state_url": "notes.db"},
        {"no_such_setting": 1},
        {"agents": {"timeout": 0}},
        {"memory": {"llm": 5}},
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_when_the_kernel_is_made(settings):
    with pytest.raises(ConfigError):
        Kernel(settings)


@pytest.mark.parametrize("name", ["config", "model_router", "profile_provider", "counter", "clock"])
@pytest.mark.parametrize("given", [5, "text", object()])
def test_what_has_a_wrong_type_is_refused_by_name_when_the_kernel_is_made(name, given):
    with pytest.raises(InvalidType, match=name):
        Kernel(**{name: given})


async def test_a_counter_that_counts_rubbish_fails_the_intent_and_nothing_is_kept():
    class Counter:
        name = "mine"
        is_exact = True

        def count(self, text):
            return -5

    async with Kernel(model_router=ModelRouter(complete=EchoModel()), counter=Counter()) as kernel:
        result = await kernel.submit(goal="hi", thread_id="t")
        assert result.error.kind == "ProviderError"
        with pytest.raises(ProviderError, match="-5"):
            await kernel.rag.ingest("some text", "s")
        assert await kernel.conversation.retrieve("t") is None
        assert await kernel.rag.list_documents() == []


def test_settings_beside_a_config_are_refused():
    with pytest.raises(ConfigError, match="environment"):
        Kernel(define_config(), environment="production")


async def test_what_is_not_started_says_so_and_is_a_runtime_error():
    kernel = Kernel()
    with pytest.raises(RuntimeError, match=r"kernel.start\(\)"):
        _ = kernel.memory_engine
    with pytest.raises(NotStarted):
        await kernel.submit(goal="hello")
    with pytest.raises(NotStarted):
        await kernel.run_maintenance()
    with pytest.raises(NotStarted):
        async for _ in kernel.stream(goal="hello"):
            pass


async def test_starting_twice_opens_once_and_stopping_twice_closes_once():
    kernel = Kernel(model_router=router())
    await asyncio.gather(kernel.start(), kernel.start())
    engine = kernel.memory_engine
    await kernel.start()
    assert kernel.memory_engine is engine
    await asyncio.gather(kernel.stop(), kernel.stop())
    await kernel.stop()
    assert not kernel.is_started


async def test_a_kernel_can_be_started_again_and_finds_what_it_kept(tmp_path):
    kernel = Kernel(data_dir=tmp_path, model_router=router("Blue."))
    async with kernel:
        await kernel.memory_engine.store("The door is blue", owner="mira")
        await kernel.submit(goal="Which colour?", owner="mira", thread_id="doors")
        await kernel.rag.ingest("Doors are painted every spring.", "doors.md")
    async with kernel:
        assert await kernel.memory_engine.count(owner="mira") == 1
        assert [each.text for each in await kernel.conversation.history("doors")] == ["Which colour?", "Blue."]
        assert (await kernel.rag.stats()).documents == 1
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".db"] == ["lamina.db"]


async def test_an_ephemeral_kernel_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with Kernel(model_router=router("Yes.")) as kernel:
        await kernel.memory_engine.store("The door is blue", owner="mira")
        await kernel.rag.ingest("Doors are painted every spring.", "doors.md")
        await kernel.submit(goal="Hello", owner="mira", thread_id="doors")
    assert list(tmp_path.iterdir()) == []


async def test_a_production_kernel_makes_its_folder_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with Kernel(environment="production", model_router=router()):
        pass
    assert (tmp_path / "lamina-data" / "lamina.db").is_file()


async def test_two_kernels_share_one_folder(tmp_path):
    async with Kernel(data_dir=tmp_path, model_router=router()) as one:  # noqa: SIM117 - one after the other
        async with Kernel(data_dir=tmp_path, model_router=router()) as other:
            await asyncio.gather(
                *(
                    kernel.submit(goal=f"goal {number}", owner="mira", thread_id="shared")
                    for kernel in (one, other)
                    for number in range(10)
                )
            )
            said = [each.text for each in await one.conversation.history("shared")]
    assert len(said) == 40
    assert all(question == answer for question, answer in zip(said[::2], said[1::2], strict=True))


async def test_a_folder_that_cannot_be_opened_leaves_nothing_open(tmp_path):
    (tmp_path / "lamina.db").write_text("this is no database, but it is long enough to look like a file", "utf-8")
    kernel = Kernel(data_dir=tmp_path, model_router=router())
    with pytest.raises(AdapterError):
        await kernel.start()
    assert not kernel.is_started
    (tmp_path / "lamina.db").unlink()
    async with kernel:
        assert await kernel.memory_engine.count() == 0


async def test_what_fails_to_close_does_not_keep_the_rest_open(tmp_path, monkeypatch):
    kernel = Kernel(data_dir=tmp_path, model_router=router())
    await kernel.start()
    engine, chunks = kernel.memory_engine, kernel.rag._index.adapter
    closed = []

    async def broken():
        raise AdapterError("chunks", "it will not close")

    async def close_counters(real=engine._accesses.close):
        closed.append("memories")
        await real()

    monkeypatch.setattr(chunks._handle, "leave", broken)
    monkeypatch.setattr(engine._accesses, "close", close_counters)
    handle = chunks._handle
    with pytest.raises(AdapterError, match="will not close"):
        await kernel.stop()
    assert closed == ["memories"]
    assert not kernel.is_started
    monkeypatch.undo()
    await handle.leave()


async def test_agents_engines_and_handlers_can_be_registered_before_the_start():
    kernel = Kernel(model_router=router("Done."))
    told = []
    kernel.on(EventName.INTENT_COMPLETED, told.append)
    kernel.agent_registry.register(define_agent("helper", instructions="Be brief."))
    async with kernel:
        result = await kernel.submit(goal="Do it")
    assert result.agent == "helper"
    assert [event.facts["agent"] for event in told] == ["helper"]


async def test_an_unknown_event_is_refused_with_the_list_of_those_that_there_are():
    with pytest.raises(InvalidInput, match=r"memory\.stored.*intent\.failed"):
        Kernel().on("memory.eaten", print)


async def test_memories_about_whose_importance_nothing_was_said_are_important_in_a_kernel(open_kernel):
    kernel = await open_kernel()
    id = await kernel.memory_engine.store("The door is blue", owner="mira")
    assert (await kernel.memory_engine.get(id)).relevance == 1.0
    set_kernel = await open_kernel(memory={"default_relevance": 0.3})
    id = await set_kernel.memory_engine.store("The door is blue", owner="mira")
    assert (await set_kernel.memory_engine.get(id)).relevance == 0.3
