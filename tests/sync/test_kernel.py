"""The kernel, its parts and the short way in, without `await`."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lamina import AskError, IntentResult, IntentStatus, ModelRouter, NotStarted, define_agent, sync
from lamina.adapters.sqlite import SqliteAdapter
from lamina.context.plugin import AssembleResult, EngineInfo
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message
from lamina.errors import ConfigError, ScopeError
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel, HashingEmbedder

PLAIN = {"memory": {"embedding": "none"}}


@pytest.fixture
def kernel():
    with sync.Kernel(PLAIN, model_router=ModelRouter(EchoModel())) as kernel:
        yield kernel


def texts(messages):
    return [each.text for each in messages]


def test_a_goal_is_answered_and_the_parts_of_the_kernel_block_too(kernel):
    kernel.memory_engine.store("The harbour lamp is green", owner="mira", layer="longterm")
    kernel.rag.ingest("# Lamp\n\nThe harbour lamp is lit at dusk.", "lamp.md")
    result = kernel.submit(goal="When is the harbour lamp lit?", owner="mira", thread_id="t")
    assert result.status is IntentStatus.COMPLETED
    assert len(result.context.memories) == len(result.context.documents) == 1
    assert texts(kernel.conversation.history("t", owner="mira")) == ["When is the harbour lamp lit?", result.answer]
    computed = kernel.context_engine.compute(intent_id="i", goal="lamp", owner_id="mira", thread_id="t")
    assert texts(computed.conversation.messages) == texts(result.messages)
    assert kernel.run_maintenance().failures == {}
    assert kernel.agent_registry.select("anything").name == "assistant"


def test_before_the_start_and_after_the_stop_a_part_is_refused():
    kernel = sync.Kernel(PLAIN)
    with pytest.raises(NotStarted):
        _ = kernel.rag
    kernel.start()
    kernel.start()
    assert kernel.is_started
    kernel.stop()
    kernel.stop()
    with pytest.raises(NotStarted):
        kernel.submit(goal="hi")


def test_errors_come_through_unchanged(kernel):
    kernel.conversation.create("private", owner="tomas")
    with pytest.raises(ScopeError):
        kernel.submit(goal="hi", owner="mira", thread_id="private")
    with pytest.raises(ConfigError):
        sync.Kernel(no_such_setting=1)


def test_an_answer_comes_in_pieces_and_is_kept_when_it_was_read_to_the_end(kernel):
    *pieces, result = kernel.stream(goal="one two three", thread_id="t")
    assert pieces == ["one ", "two ", "three"]
    assert isinstance(result, IntentResult)
    assert texts(kernel.conversation.history("t")) == ["one two three", "one two three"]


def test_each_piece_is_given_when_it_is_there_and_whoever_stops_leaves_nothing(kernel):
    async def slow(intent, context, model):
        yield "at once "
        await asyncio.Event().wait()

    kernel.agent_registry.register(define_agent("slow", executor=slow))
    stream = kernel.stream(goal="Go", thread_id="t", agent="slow")
    assert next(stream) == "at once "
    stream.close()
    assert kernel.conversation.retrieve("t") is None


def test_a_stream_that_is_dropped_in_the_loop_s_own_thread_ends_there(kernel):
    ended = threading.Event()

    async def slow(intent, context, model):
        try:
            yield "at once "
            await asyncio.Event().wait()
        finally:
            ended.set()

    kernel.agent_registry.register(define_agent("slow", executor=slow))
    streams = [kernel.stream(goal="Go", thread_id="t", agent="slow")]
    next(streams[0])
    kernel.on("memory.stored", lambda event: streams.clear())
    kernel.memory_engine.store("x y z")
    assert ended.wait(10)
    assert kernel.conversation.retrieve("t") is None


def test_handlers_tools_and_maintenance_work_as_in_the_async_kernel(kernel):
    seen = []
    unsubscribe = kernel.on("intent.completed", lambda event: seen.append(event.name))
    kernel.submit(goal="hi")
    unsubscribe()
    kernel.submit(goal="hi")
    assert seen == ["intent.completed"]
    passes = threading.Event()

    class Engine:
        info = EngineInfo(id="own", name="Own")

        async def assemble(self, params):
            return AssembleResult([Message.user("from the plug-in")], 3)

        async def compact(self, params):
            raise NotImplementedError

        def maintain(self, params):
            passes.set()

    kernel.context_engines.register(Engine())
    kernel.context_engines.set_default("own")
    assert [each.id for each in kernel.context_engines.list_engines() if each.is_default] == ["own"]
    assert kernel.submit(goal="hi").answer.startswith("from the plug-in")
    with kernel.maintenance(0.01):
        assert passes.wait(10)


def test_a_plain_tool_may_call_the_blocking_kernel(kernel):
    pytest.importorskip("pydantic_ai")
    kernel.conversation.add_message_to_thread("t", "user", "the original")
    expand = kernel.conversation.expand_tool("t")
    assert expand("#1", 0) == "the original"

    def executor(intent, context, model):
        return expand("#1", 4)

    kernel.agent_registry.register(define_agent("reads", executor=executor))
    assert kernel.submit(goal="Go").answer == "original"


def test_many_threads_submit_side_by_side_and_each_exchange_stays_together(kernel):
    def work(number):
        for turn in range(5):
            kernel.submit(goal=f"goal {number} {turn}", thread_id="shared")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    said = texts(kernel.conversation.history("shared", limit=1_000))
    assert len(said) == 60
    assert said[::2] == said[1::2]


def test_the_short_way_in_blocks_and_keeps_what_it_has(tmp_path):
    where = {"data_dir": tmp_path / "data", "environ": {}, "memory": {"embedding": "none"}}
    with sync.Lamina.create(owner="mira", model=ModelRouter(EchoModel(["green"])), **where) as app:
        assert app.owner == "mira"
        app.remember("The harbour lamp is green")
        thread = app.thread("t")
        thread.add_message("user", "We talk of lamps.")
        assert app.ask("Which lamp?", thread_id="t").answer == "green"
        assert texts(thread.get_context().messages) == ["We talk of lamps.", "Which lamp?", "green"]
        assert app.get_kernel().memory_engine.count(owner="mira") == 1
    with sync.Lamina.create(owner="mira", **where) as app:
        assert app.recall("lamp")[0].entry.content == "The harbour lamp is green"
        with pytest.raises(AskError) as caught:
            app.ask("why?")
        assert caught.value.result.status is IntentStatus.FAILED


def test_parts_are_put_together_from_blocking_ones(tmp_path):
    file = tmp_path / "all.db"
    with (
        sync.StateStore(SqliteStateStore(file)) as store,
        sync.create_memory_engine(path=file, embedding="none") as memory,
        sync.RagPipeline(
            SqliteAdapter(file, table="lamina_chunks"), SqliteStateStore(file), embedder=HashingEmbedder()
        ) as rag,
    ):
        talk = sync.ConversationManager(store, memory=memory, policy=WindowPolicy(5, 2))
        for number in range(5):
            talk.add_message_to_thread("t", "user", f"number {number}", owner="mira")
        assert talk.retrieve("t").folded_through == 3
        rag.ingest("# Lamp\n\nGreen.", "lamp.md")
        sync.OwnerMemory(memory, "mira").store("The harbour lamp is green")
        engine = sync.ContextEngine(memory, conversation=talk, rag=rag, engines=sync.ContextEngineManager())
        context = engine.compute({"intentId": "i", "goal": "the harbour lamp", "ownerId": "mira", "threadId": "t"})
        assert [each.content for each in context.memories] == ["The harbour lamp is green"]
        assert len(context.documents) == 1
        assert texts(context.conversation.messages)[-2:] == ["number 3", "number 4"]
