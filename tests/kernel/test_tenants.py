"""One process for many tenants: shared stores, and nothing of one tenant in the kernel of another."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import closing

import pytest

from lamina import registry
from lamina.adapters.sqlite import SqliteAdapter
from lamina.context.plugin import AssembleResult, BaseContextEngine, CompactResult, EngineInfo
from lamina.errors import AdapterUnavailable, ConfigError, InvalidInput, InvalidType, NotStarted
from lamina.kernel import Kernel, ModelRouter
from lamina.kernel.tenants import TenantKernels
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel, HashingEmbedder

SECRET = "the safe opens with 4711"
TENANTS = ["a", "a_", "a%", "A", "a:1", "a:10", "\uff41", "\u00e9", "e\u0301", "a "]


@pytest.fixture
def open_kernels(clock, model, place):
    def make(**options):
        router = options.pop("router", None) or ModelRouter(complete=model, embed=HashingEmbedder())
        return TenantKernels(options.pop("config", place), model_router=router, clock=clock, **options)

    return make


class Disposed(BaseContextEngine):
    """Notes when it is let go of, and waits to be told that it may go."""

    info = EngineInfo("mine", "Mine")

    def __init__(self):
        self.disposals = 0
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def assemble(self, params):
        return AssembleResult(messages=list(params.messages))

    async def compact(self, params):
        return CompactResult(compacted=False)

    async def dispose(self):
        self.disposals += 1
        await self.may_go.wait()


async def test_each_tenant_has_a_kernel_of_its_own_and_always_the_same(open_kernels):
    async with open_kernels() as kernels:
        found = [await kernels.of(tenant) for tenant in TENANTS]
        assert len({id(each) for each in found}) == len(TENANTS)
        assert [each.config.memory.tenant for each in found] == TENANTS
        assert [each.memory_engine.tenant for each in found] == TENANTS
        assert [await kernels.of(tenant) for tenant in TENANTS] == found
        assert all(each.is_started for each in found)
        assert await kernels.tenants() == sorted(TENANTS)
    assert not any(each.is_started for each in found)


async def test_tenants_with_look_alike_names_see_nothing_of_each_other(open_kernels, model):
    async with open_kernels() as kernels:
        for tenant in TENANTS:
            kernel = await kernels.of(tenant)
            for layer in ("working", "session", "longterm", "organizational", "global"):
                await kernel.memory_engine.store(f"{SECRET} {layer} of <{tenant}>", layer=layer, owner="mira")
            kernel.memory_engine.working.set("key", tenant)
            await kernel.rag.ingest(f"# Safe\n\n{SECRET} in the cellar of <{tenant}>", "safe.md")
            await kernel.submit(goal=f"{SECRET} said <{tenant}>", owner="mira", thread_id="diary")
        for tenant in TENANTS:
            kernel = await kernels.of(tenant)
            others = [f"<{other}>" for other in TENANTS if other != tenant]
            seen = [each.content for each in await kernel.memory_engine.query(limit=100, owner="mira")]
            seen += [each.entry.content for each in await kernel.memory_engine.recall(SECRET, limit=100)]
            seen += [each.text for each in await kernel.rag.retrieve("How does the safe open?", top_k=100)]
            seen += [each.text for each in await kernel.conversation.history("diary")]
            await kernel.submit(goal="How does the safe open?", owner="mira", thread_id="diary")
            seen += [each.content for each in model.calls[-1]]
            assert await kernel.memory_engine.count() == 5
            assert kernel.memory_engine.working.get("key") == tenant
            assert sum(f"<{tenant}>" in each for each in seen) > 12
            assert [each for each in seen if any(other in each for other in others)] == []


async def test_what_a_kernel_of_its_own_wrote_is_the_tenants_and_the_other_way_round(tmp_path, clock):
    settings = {"data_dir": tmp_path, "memory": {"embedding": "none"}}
    async with TenantKernels(settings, clock=clock) as kernels:
        await (await kernels.of("one")).memory_engine.store(SECRET)
    for tenant, count in (("one", 1), ("two", 0)):
        alone = {"data_dir": tmp_path, "memory": {"embedding": "none", "tenant": tenant}}
        async with Kernel(alone, clock=clock) as kernel:
            assert await kernel.memory_engine.count() == count


async def test_handlers_agents_and_engines_are_one_tenants_own(open_kernels):
    async with open_kernels() as kernels:
        one, two = await kernels.of("one"), await kernels.of("two")
        told = []
        one.on("memory.stored", told.append)
        one.context_engines.register(Disposed())
        await two.memory_engine.store("the light is on")
        assert told == []
        await one.memory_engine.store("the light is off")
        assert [each.tenant for each in told] == ["one"]
        assert [each.id for each in two.context_engines.list_engines()] == ["default"]
        assert one.agent_registry is not two.agent_registry


async def test_hooks_of_the_settings_are_told_the_tenant_of_what_they_guard(clock):
    guarded = []

    def guard(entry):
        guarded.append(entry.tenant)
        return entry

    memory = {"embedding": "none", "hooks": {"on_before_store": guard}}
    async with TenantKernels(memory=memory, clock=clock) as kernels:
        for tenant in ("one", "two"):
            await (await kernels.of(tenant)).memory_engine.store("the light is on")
    assert guarded == ["one", "two"]


async def test_stores_embedder_and_models_are_opened_once_and_closed_once(tmp_path, clock, monkeypatch):
    embedders, models, counts = [], [], {}

    class Counted(HashingEmbedder):
        async def close(self):
            counts["embedder"] = counts.get("embedder", 0) + 1

    def load_embedder(_, **__):
        embedders.append(Counted())
        return embedders[-1]

    def load_model(_, **__):
        models.append(EchoModel())
        return models[-1]

    monkeypatch.setattr(registry, "load_embedder", load_embedder)
    monkeypatch.setattr(registry, "load_language_model", load_model)
    for kind in (SqliteAdapter, SqliteStateStore):
        for method in ("initialize", "close"):
            _count(monkeypatch, counts, kind, method)
    settings = {"data_dir": tmp_path, "model": "any:model", "memory": {"llm": "any:other", "auto_save": True}}
    async with TenantKernels(settings, clock=clock) as kernels:
        opened = dict(counts)
        for number in range(20):
            kernel = await kernels.of(f"tenant {number}")
            await kernel.memory_engine.store("the light is on")
            await kernel.rag.ingest("# Light\n\nit is on", "light.md")
        assert counts == opened == {"SqliteAdapter.initialize": 2, "SqliteStateStore.initialize": 1}
        assert len(embedders) == 1
        assert len(models) == 3  # the one that answers, and `llm` for summaries and for facts
    assert counts["embedder"] == counts["SqliteStateStore.close"] == 1
    assert counts["SqliteAdapter.close"] == 3  # the rows of packs are opened by who first needs them, here by nobody


def _count(monkeypatch, counts, kind, method):
    original = getattr(kind, method)

    async def counted(self):
        key = f"{kind.__name__}.{method}"
        counts[key] = counts.get(key, 0) + 1
        await original(self)

    monkeypatch.setattr(kind, method, counted)


async def test_a_kernel_is_made_once_however_many_ask_for_it_at_once(open_kernels):
    prepared = []
    async with open_kernels(prepare=prepared.append) as kernels:
        found = await asyncio.gather(*(kernels.of("one") for _ in range(50)))
        assert len({id(each) for each in found}) == 1
        assert prepared == [found[0]]


async def test_whoever_is_cancelled_while_a_kernel_opens_takes_it_from_nobody(open_kernels):
    async with open_kernels() as kernels:
        first = asyncio.ensure_future(kernels.of("one"))
        second = asyncio.ensure_future(kernels.of("one"))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).is_started
        assert first.cancelled()


async def test_a_failure_to_open_is_told_to_all_who_wait_and_the_next_one_tries_again(open_kernels):
    fails = True

    def prepare(kernel):
        if fails and kernel.config.memory.tenant == "one":
            raise AdapterUnavailable("memories", "the disk is full")

    async with open_kernels(prepare=prepare) as kernels:
        two = await kernels.of("two")
        outcomes = await asyncio.gather(*(kernels.of("one") for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in outcomes] == [AdapterUnavailable] * 3
        assert await kernels.tenants() == ["two"]
        await two.memory_engine.store("the others go on")
        fails = False
        assert (await kernels.of("one")).is_started


async def test_the_least_recently_used_kernels_are_stopped_and_come_back_with_all_they_had(open_kernels):
    async with open_kernels(max_open=2) as kernels:
        async with kernels.using("one") as one:
            await one.memory_engine.store("kept in the working layer", layer="working", owner="mira")
            await one.memory_engine.store("kept for long", owner="mira")
            one.memory_engine.working.set("key", "kept as it is")
        async with kernels.using("two") as two:
            pass
        async with kernels.using("one") as again:
            assert again is one
        async with kernels.using("three"):
            pass
        await _settled()
        assert (one.is_started, two.is_started) == (True, False)
        async with kernels.using("four"):
            await _settled()
            assert not one.is_started
        async with kernels.using("one") as back:
            assert back is not one
            assert await back.memory_engine.count() == 2
            assert back.memory_engine.working.get("key") == "kept as it is"
        async with kernels.using("two") as other:
            assert not other.memory_engine.working.has("key")
        assert await kernels.tenants() == ["four", "one", "three", "two"]


async def _settled():
    """Let the kernels that are being stopped come to their end."""
    for _ in range(100):
        await asyncio.sleep(0.001)


async def test_a_kernel_in_use_is_never_stopped_however_many_there_are(open_kernels):
    async with open_kernels(max_open=1) as kernels:
        async with kernels.using("one") as one:
            for number in range(5):
                async with kernels.using(f"other {number}") as other:
                    await other.memory_engine.store("passing")
            await _settled()
            await one.memory_engine.store("still here")
            assert one.is_started
            assert not other.is_started
        async with kernels.using("two"):
            pass
        await _settled()
        assert not one.is_started


async def test_a_task_that_was_given_a_kernel_keeps_it_until_it_ends(open_kernels):
    given, done = asyncio.Event(), asyncio.Event()
    async with open_kernels(max_open=1) as kernels:

        async def request():
            kernel = await kernels.of("one")
            assert await kernels.of("one") is kernel
            given.set()
            await done.wait()
            await kernel.memory_engine.store("answered late")
            return kernel

        task = asyncio.ensure_future(request())
        await given.wait()
        for number in range(3):
            async with kernels.using(f"other {number}"):
                pass
        await _settled()
        done.set()
        kernel = await task
        assert kernel.is_started
        async with kernels.using("two"):
            pass
        await _settled()
        assert not kernel.is_started
        del kernel, task
        gc.collect()
        assert not kernels._held


async def test_a_kernel_that_is_still_being_stopped_is_waited_for_before_the_next_of_its_tenant(open_kernels):
    engine = Disposed()
    engine.may_go.clear()
    made = []

    def prepare(kernel):
        made.append(kernel)
        if len(made) == 1:
            kernel.context_engines.register(engine)

    async with open_kernels(max_open=1, prepare=prepare) as kernels:
        async with kernels.using("one") as one:
            one.memory_engine.working.set("key", "kept")
        async with kernels.using("two"):
            await _settled()
            assert engine.disposals == 1
            back = asyncio.ensure_future(kernels.of("one"))
            await _settled()
            assert len(made) == 2
            engine.may_go.set()
            assert (await back).memory_engine.working.get("key") == "kept"


async def test_a_kernel_that_somebody_stopped_is_made_anew(open_kernels):
    async with open_kernels() as kernels:
        one = await kernels.of("one")
        await one.memory_engine.store("stays")
        await one.stop()
        again = await kernels.of("one")
        assert again is not one
        assert await again.memory_engine.count() == 1


async def test_stopping_writes_what_was_counted_and_disposes_of_plug_ins_in_every_kernel(tmp_path, clock):
    engines = []

    def prepare(kernel):
        engines.append(Disposed())
        kernel.context_engines.register(engines[-1])

    settings = {"data_dir": tmp_path, "memory": {"embedding": "none"}}
    kernels = TenantKernels(settings, clock=clock, prepare=prepare)
    await kernels.start()
    await kernels.start()
    for tenant in ("one", "two"):
        kernel = await kernels.of(tenant)
        await kernel.memory_engine.store("the light is on")
        assert len(await kernel.memory_engine.recall("light")) == 1
    await kernels.stop()
    await kernels.stop()
    assert [each.disposals for each in engines] == [1, 1]
    with closing(sqlite3.connect(tmp_path / "lamina.db")) as file:
        assert file.execute("SELECT access_count FROM lamina_memories").fetchall() == [(1,), (1,)]
    with pytest.raises(NotStarted):
        await kernels.of("one")
    with pytest.raises(NotStarted):
        await kernels.tenants()
    await kernels.start()
    assert await (await kernels.of("one")).memory_engine.count() == 1
    await kernels.stop()


async def test_what_fails_to_stop_keeps_no_other_kernel_and_no_store_open(open_kernels, monkeypatch):
    async def broken():
        raise AdapterUnavailable("memories", "locked")

    def prepare(kernel):
        if kernel.config.memory.tenant == "two":
            monkeypatch.setattr(kernel.context_engines, "dispose", broken)

    kernels = open_kernels(prepare=prepare)
    await kernels.start()
    one, two = await kernels.of("one"), await kernels.of("two")
    with pytest.raises(AdapterUnavailable):
        await kernels.stop()
    assert (one.is_started, two.is_started, kernels.is_started) == (False, False, False)
    await kernels.start()
    assert (await kernels.of("one")).is_started
    await kernels.stop()


@pytest.mark.parametrize("name", ["", " ", "\x00", "a\ud800", "x" * 513, "lamina:meta"])
async def test_a_name_that_no_tenant_can_have_is_refused_and_opens_nothing(open_kernels, name):
    async with open_kernels() as kernels:
        with pytest.raises(InvalidInput, match="tenant"):
            await kernels.of(name)
        with pytest.raises(InvalidInput, match="tenant"):
            await kernels.run_maintenance(name)
        assert await kernels.tenants() == []


@pytest.mark.parametrize("name", [None, 1, b"a", ["a"]])
async def test_a_tenant_that_is_no_text_is_refused(open_kernels, name):
    async with open_kernels() as kernels:
        with pytest.raises(InvalidType, match="tenant"):
            await kernels.of(name)


def test_what_cannot_be_used_is_refused_before_anything_is_opened():
    with pytest.raises(InvalidInput, match="max_open"):
        TenantKernels(max_open=0)
    with pytest.raises(InvalidType, match="prepare"):
        TenantKernels(prepare="register")
    with pytest.raises(InvalidType, match="model_router"):
        TenantKernels(model_router="openai:gpt-4o")
    with pytest.raises(ConfigError, match="memori"):
        TenantKernels(memori={})
    with pytest.raises(ConfigError, match="reserved"):
        TenantKernels(memory={"tenant": "lamina:meta"})


async def test_memories_of_version_1_are_read_by_the_settings_own_tenant_alone(tmp_path, clock):
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("CREATE TABLE agent_memories (id, content, layer, tags, user_id, created_at)")
        file.execute("INSERT INTO agent_memories VALUES ('old-1', ?, 'longterm', NULL, 'mira', NULL)", (SECRET,))
    memory = {"embedding": "none", "v1_path": old, "tenant": "mine"}
    async with TenantKernels(memory=memory, clock=clock) as kernels:
        for tenant, found in (("mine", ["old-1"]), ("other", [])):
            recalled = await (await kernels.of(tenant)).memory_engine.recall("safe", owner="mira")
            assert [each.entry.id for each in recalled] == found


async def test_maintenance_is_done_for_one_tenant(open_kernels, clock):
    async with open_kernels(max_open=1) as kernels:
        for tenant in ("one", "two"):
            async with kernels.using(tenant) as kernel:
                await kernel.memory_engine.store("gone soon", ttl=60)
        clock.advance(120)
        assert (await kernels.run_maintenance("one")).purged == 0  # its kernel purged when it was opened again
        async with kernels.using("two") as two:
            await two.memory_engine.store("fades")
        clock.advance(3 * 86400)
        report = await kernels.run_maintenance("two", decay=True)
        assert (report.decay.scanned, report.failures) == (1, {})
