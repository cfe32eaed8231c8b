"""Context packs as part of a kernel: where they are kept, in contexts, in maintenance."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.context.engine import ContextEngine
from lamina.domain.context import ItemKind
from lamina.domain.memory import Trust
from lamina.domain.pack_decay import Decay
from lamina.errors import ConfigError, NotStarted
from lamina.kernel import Kernel
from lamina.packs.service import ContextPacks
from lamina.state.sqlite import SqlitePackStore
from lamina.testing import HashingEmbedder

YIELD = "Wafer yield drops when the clean room is above 22 degrees, as the lots of spring 2025 have shown"


async def fill(kernel):
    await kernel.packs.create("chip_domain", "domain", description="wafer yield in the clean room")
    return await kernel.packs.add("chip_domain", YIELD, source="document", provenance="report 7")


async def compute(kernel, goal="Why does wafer yield drop in the clean room?", **options):
    return await kernel.context_engine.compute(intent_id="i", goal=goal, owner_id="mira", **options)


async def test_packs_are_kept_where_the_memories_are(open_kernel, tmp_path):
    kernel = await open_kernel(memory={"path": tmp_path / "notes.db"})
    added = await fill(kernel)
    await kernel.stop()
    again = await open_kernel(memory={"path": tmp_path / "notes.db"})
    (hit,) = await again.packs.retrieve("chip_domain", "wafer yield")
    assert hit.memory.id == added.id
    assert {each.suffix for each in tmp_path.iterdir()} <= {".db", ".db-wal", ".db-shm"}


async def test_packs_are_kept_in_postgres_beside_the_memories_and_several_kernels_share_them(
    open_kernel, postgres_database
):
    one, other = [await open_kernel(memory={"url": postgres_database}) for _ in range(2)]
    added = await fill(one)
    await asyncio.gather(
        *(kernel.packs.retrieve("chip_domain", "wafer yield") for kernel in (one, other) for _ in range(3)),
        *(kernel.packs.update_memory(added.id, tags=[str(number)]) for number, kernel in enumerate((one, other))),
    )
    memory = await other.packs.memory(added.id, touch=False)
    assert (memory.access_count, memory.content) == (6, YIELD)
    assert await one.packs.purge_orphans() == 0
    (hit,) = await one.packs.retrieve("chip_domain", "wafer yield", tags=memory.tags)
    assert hit.memory.id == added.id


async def test_no_collection_is_made_for_packs_that_there_are_not(open_kernel, tmp_path):
    kernel = await open_kernel(memory={"path": tmp_path / "notes.db"}, context={"use_packs": True})
    await compute(kernel)
    await kernel.run_maintenance()
    await kernel.stop()
    with sqlite3.connect(tmp_path / "notes.db") as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert "lamina_pack_heads" in tables
    assert "lamina_packs" not in tables


async def test_a_table_of_its_own_and_a_state_elsewhere_hold(open_kernel, tmp_path):
    kernel = await open_kernel(
        memory={"path": tmp_path / "notes.db", "table": "mine"},
        packs={"table": "knowledge", "limit": 3},
        state_url=f"sqlite:///{tmp_path / 'state.db'}",
    )
    await fill(kernel)
    await kernel.stop()
    found = {}
    for name in ("notes", "state"):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            found[name] = {
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
        connection.close()
    assert "knowledge" in found["notes"]
    assert "lamina_pack_heads" in found["state"] - found["notes"]


async def test_packs_are_closed_with_the_kernel():
    kernel = Kernel(memory={"embedding": "none"})
    with pytest.raises(NotStarted):
        _ = kernel.packs


async def test_settings_say_how_packs_fade_and_what_reduces_them(open_kernel):
    kernel = await open_kernel(packs={"decay": {"domain": {"hours": 1, "steps": [1, 2, 3, 4]}}})
    assert (await kernel.packs.create("a", "domain")).decay == Decay(timedelta(hours=1), (1, 2, 3, 4))
    with pytest.raises(ConfigError, match=r"packs\.reducer"):
        await open_kernel(packs={"reducer": "model"}, complete=None)
    await open_kernel(packs={"reducer": "model"})
    for wrong in ({"decay": {"team": {"hours": 1}}}, {"decay": {"domain": {"hours": 1, "steps": [2, 1, 3, 4]}}}):
        with pytest.raises(ConfigError, match=r"packs\.decay"):
            Kernel(packs=wrong)
    with pytest.raises(ConfigError, match="limit"):
        Kernel(packs={"limit": 0})


async def test_a_context_holds_memories_of_packs_only_if_it_is_asked_to(open_kernel):
    kernel = await open_kernel()
    added = await fill(kernel)
    assert (await compute(kernel)).packs == []
    assert (await kernel.packs.memory(added.id, touch=False)).access_count == 0
    kernel = await open_kernel(context={"use_packs": True})
    added = await fill(kernel)
    context = await compute(kernel)
    (hit,) = context.packs
    assert (hit.id, hit.pack, hit.content, hit.source, hit.trust) == (
        added.id,
        "chip_domain",
        YIELD,
        "report 7",
        Trust.UNTRUSTED,
    )
    assert YIELD in context.to_prompt()
    assert f"pack memory {added.id} (chip_domain)" in context.explain()
    assert (await kernel.packs.memory(added.id, touch=False)).access_count == 1
    assert (await compute(kernel, "What is for lunch?")).packs == []


async def test_a_look_at_a_context_shows_what_would_be_sent_and_counts_as_no_access(open_kernel, clock):
    kernel = await open_kernel(context={"use_packs": True})
    added = await fill(kernel)
    clock.advance(timedelta(days=400))
    assert (await kernel.run_maintenance()).packs.moved == {"summary": 1}
    context = await compute(kernel, touch=False)
    assert [hit.content for hit in context.packs] == [YIELD]
    looked = await kernel.packs.memory(added.id, touch=False)
    assert (looked.tier, looked.access_count) == ("summary", 0)
    assert [hit.content for hit in (await compute(kernel)).packs] == [YIELD]
    assert (await kernel.packs.memory(added.id, touch=False)).tier == "full"


async def test_memories_of_packs_share_the_budget_and_are_accounted_for(open_kernel):
    kernel = await open_kernel(context={"use_packs": True})
    added = await fill(kernel)
    context = await compute(kernel, token_budget=120)
    assert context.packs == []
    assert (ItemKind.PACK, added.id) in {(item.kind, item.id) for item in context.dropped}


async def test_a_context_holds_nothing_of_another_owners_packs(open_kernel):
    kernel = await open_kernel(context={"use_packs": True})
    for owner in ("noor", "mir", "mira"):
        await kernel.packs.create("notes", "user", owner=owner, description="wafer yield in the clean room")
        await kernel.packs.add("notes", f"{YIELD}, says {owner}", owner=owner)
    assert [hit.content for hit in (await compute(kernel)).packs] == [f"{YIELD}, says mira"]


async def test_maintenance_lets_packs_fade_and_tells(open_kernel, clock):
    kernel = await open_kernel()
    told = []
    kernel.on("pack.degraded", told.append)
    kernel.on("pack.repromoted", told.append)
    added = await fill(kernel)
    clock.advance(timedelta(days=366))
    report = await kernel.run_maintenance()
    assert (report.packs.moved, report.failures) == ({"summary": 1}, {})
    assert (await kernel.packs.preview())[0].id == added.id
    assert (await kernel.packs.memory(added.id)).content == YIELD
    await kernel.stop()
    assert [event.name for event in told] == ["pack.degraded", "pack.repromoted"]


async def test_any_context_engine_takes_packs_as_its_source(clock):
    async with (
        ContextPacks(SqlitePackStore(":memory:"), InMemoryAdapter(), embedder=HashingEmbedder(), clock=clock) as packs,
        Kernel(memory={"embedding": "none"}, clock=clock) as kernel,
    ):
        await packs.create("chip_domain", "domain", description="wafer yield in the clean room")
        await packs.add("chip_domain", YIELD)
        engine = ContextEngine(
            kernel.memory_engine, packs=packs, config=kernel.config.context.model_copy(update={"use_packs": True})
        )
        context = await engine.compute(intent_id="i", goal="wafer yield in the clean room", owner_id="mira")
    assert [hit.content for hit in context.packs] == [YIELD]
