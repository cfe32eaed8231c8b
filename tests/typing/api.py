"""Real uses of the public names, for type checkers to read: `make check` runs mypy over this file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import assert_type

import lamina.sync
from lamina import (
    Agent,
    And,
    ComputedContext,
    ContextEngine,
    ConversationManager,
    DecayReport,
    ForgetReason,
    IntentResult,
    Kernel,
    Lamina,
    Layer,
    MaintenanceReport,
    MemoryConfig,
    MemoryEngine,
    MemoryEntry,
    MemoryHooks,
    Message,
    ModelRouter,
    Not,
    RagPipeline,
    RecallResult,
    Results,
    ScoreBreakdown,
    ScoringConfig,
    SearchMode,
    SqliteAdapter,
    ToolContext,
    Where,
    WorkingItem,
    create_memory_engine,
    define_agent,
    define_config,
    define_memory_config,
)
from lamina.conversation.memory_events import MemoryEvent
from lamina.domain.document import RagChunk
from lamina.domain.filters import Compare
from lamina.domain.thread import ThreadContext
from lamina.state.sqlite import SqliteStateStore


def guard(entry: MemoryEntry) -> MemoryEntry | None:
    return None if "secret" in entry.content else entry.replace(tags=[*entry.tags, "seen"])


async def rerank(results: list[RecallResult], query: str) -> list[RecallResult]:
    return sorted(results, key=lambda result: (query in result.entry.content, result.score), reverse=True)


def listen(entry: MemoryEntry, reason: ForgetReason) -> None:
    assert_type(entry.id, str)
    assert_type(reason, ForgetReason)


def embed_batch(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


hooks = MemoryHooks(on_before_store=guard, on_after_recall=rerank, on_forget=listen)
is_open = Where("status").eq("open")
assert_type(is_open, Compare)
is_near = And((is_open, Not(Where("due").gt(5))))
scoring: ScoringConfig = ScoringConfig.preset("news")
config = define_memory_config(provider="memory", scoring=scoring, hooks=hooks, embed_batch=embed_batch)
assert_type(config, MemoryConfig)


async def use_the_engine() -> None:
    async with await create_memory_engine(config) as engine:
        assert_type(engine, MemoryEngine)
        id = await engine.store("Wants a dark theme", layer=Layer.SESSION, ttl=timedelta(hours=1), tags=("ui",))
        assert_type(id, str | None)
        assert_type(await engine.store_many(["a", {"content": "b"}]), list[str | None])

        results = await engine.recall("theme", mode=SearchMode.TEXT, where=is_near, explain=True)
        assert_type(results, Results[RecallResult])
        assert_type(results[0].score_breakdown, ScoreBreakdown)
        assert_type(results[0].score_breakdown.vector, float | None)
        assert_type([each.reason.value for each in results.degraded], list[str])
        assert_type(await engine.query(owner="mira", limit=5), Results[MemoryEntry])
        assert_type(await engine.decay(factor=0.9), DecayReport)
        assert_type(await engine.forget_where(tags=["ui"], older_than=timedelta(days=90)), int)
        assert_type(engine.working.get_by_prefix("tool:"), list[WorkingItem])


async def note(context: ToolContext, text: str) -> str | None:
    """Remember it."""
    return await context.memory.store(text)


async def use_the_kernel() -> None:
    agent = define_agent("helper", capabilities=[{"id": "help"}], tools=[note])
    assert_type(agent, Agent)
    router = ModelRouter(complete=lambda messages: messages[-1].content, context_window=8_000)
    async with Kernel.from_config(define_config(environment="test"), model_router=router) as kernel:
        kernel.agent_registry.register(agent)
        kernel.on("intent.completed", lambda event: None)()
        assert_type(kernel.memory_engine, MemoryEngine)
        assert_type(kernel.conversation, ConversationManager)
        assert_type(kernel.rag, RagPipeline)
        assert_type(kernel.context_engine, ContextEngine)
        assert_type(await kernel.submit(goal="hello", owner="mira", metadata={"thread_id": "t"}), IntentResult)
        async for piece in kernel.stream({"goal": "hello", "ownerId": "mira"}):
            assert_type(piece, str | IntentResult)
        assert_type(await kernel.run_maintenance(decay=True), MaintenanceReport)


async def use_the_short_way() -> None:
    async with await Lamina.create(owner="mira") as app:
        assert_type(app, Lamina)
        assert_type(await app.remember("x", "longterm"), str | None)
        assert_type((await app.ask("why?", thread_id="t")).answer, str | None)
        assert_type(app.get_kernel(), Kernel)


def use_the_blocking_engine() -> None:
    with lamina.sync.create_memory_engine(path="memory.db") as memory:
        assert_type(memory.store("Wants a dark theme"), str | None)
        assert_type(memory.recall("theme", limit=3), Results[RecallResult])
        assert_type(memory.forget("mem_1"), bool)


def use_the_blocking_kernel() -> None:
    router = ModelRouter(complete=lambda messages: messages[-1].content)
    with lamina.sync.Kernel(ephemeral=True, model_router=router) as kernel:
        assert_type(kernel, lamina.sync.Kernel)
        assert_type(kernel.memory_engine, lamina.sync.MemoryEngine)
        assert_type(kernel.conversation, lamina.sync.ConversationManager)
        assert_type(kernel.rag.retrieve("lamp", top_k=3), Results[RagChunk])
        assert_type(kernel.rag.ingest("text", "a.md", category="api"), str)
        assert_type(kernel.context_engine, lamina.sync.ContextEngine)
        assert_type(kernel.context_engines, lamina.sync.ContextEngineManager)
        assert_type(kernel.agent_registry.select("goal"), Agent)
        assert_type(kernel.submit(goal="hello", owner="mira"), IntentResult)
        assert_type(kernel.run_maintenance(decay=True), MaintenanceReport)
        for piece in kernel.stream(goal="hello"):
            assert_type(piece, str | IntentResult)
        with kernel.maintenance(timedelta(hours=1)) as nothing:
            assert_type(nothing, None)
        assert_type(kernel.on("intent.completed", lambda event: None), Callable[[], None])
        kernel.submit(gaol="hello")  # type: ignore[call-arg]


def use_the_short_way_blocking() -> None:
    with lamina.sync.Lamina.create("data", owner="mira") as app:
        assert_type(app, lamina.sync.Lamina)
        assert_type(app.remember("x", "longterm", tags=["a"]), str | None)
        assert_type(app.ask("why?", thread_id="t"), IntentResult)
        assert_type(app.get_kernel(), lamina.sync.Kernel)
        assert_type(app.thread("t").get_context(), ThreadContext)


class Mine(lamina.sync.SQLiteMemory):
    def compact_event(self, event: MemoryEvent) -> MemoryEvent:
        return self.compact_with(event, label="mine")


def put_blocking_parts_together() -> None:
    with (
        lamina.sync.StateStore(SqliteStateStore("lamina.db")) as store,
        lamina.sync.create_memory_engine(path="lamina.db") as memory,
        lamina.sync.RagPipeline(SqliteAdapter("lamina.db", table="chunks"), SqliteStateStore("lamina.db")) as rag,
        Mine("lamina.db", thresholds={"recent_to_keep": 5}) as short_term,
    ):
        talk = lamina.sync.ConversationManager(store, memory=memory)
        assert_type(talk.add_message_to_thread("t", "user", "hi"), Message)
        engine = lamina.sync.ContextEngine(memory, conversation=talk, rag=rag)
        assert_type(engine.compute(intent_id="i", goal="hi", owner_id="mira"), ComputedContext)
        assert_type(short_term.add({"message": {"role": "user", "content": "hi"}}), MemoryEvent)
        assert_type(lamina.sync.OwnerMemory(memory, "mira").store("x"), str | None)
        lamina.sync.ConversationManager(memory)  # type: ignore[arg-type]


def a_wrong_use_is_seen() -> None:
    Where("due").gt(None)  # type: ignore[arg-type]
    ScoreBreakdown(similarity="high", recency=1, frequency=0, relevance=1)  # type: ignore[arg-type]
    lamina.no_such_name  # type: ignore[attr-defined]  # noqa: B018
