from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.domain.pack_decay import Decay, Tier
from lamina.errors import AdapterUnavailable, InvalidInput, InvalidType, ProviderError
from lamina.packs import fading
from lamina.packs.fading import BATCH, DegradationReport, Fading
from lamina.packs.pack_rows import MARKER
from lamina.packs.reducing import reduced
from lamina.packs.service import ContextPacks
from lamina.ports.events import EventName
from lamina.state.sqlite import SqlitePackStore
from lamina.testing import FrozenClock, HashingEmbedder

TEXT = (
    "The furnace of the Ankara plant is relined every 18 months by Demir & Sons, last on 4 May 2025. The brick comes "
    "from Eskişehir and has to dry for 9 days before anybody lights a fire under it, whatever the sales people say "
    "about a late delivery. Note {}: ask for Leyla, not for her brother."
)
HOUR = timedelta(hours=1)


class FailingReducer:
    """Fails for texts that ask for it."""

    def __init__(self, *, error: Exception | None = None, answer: object = None) -> None:
        self.error = error
        self.answer = answer
        self.is_down = True

    async def reduce(self, text, tier):
        if self.is_down and "FAIL" in text:
            if self.error is not None:
                raise self.error
            return self.answer
        return reduced(text, tier)


class FailingStore(SqlitePackStore):
    """A real one, that fails before or after doing what the n-th call asks for."""

    calls = itertools.count()
    fails_at = -1
    fails_after = False

    async def _may_fail(self, work):
        number = next(self.calls)
        if number == self.fails_at and not self.fails_after:
            raise AdapterUnavailable(self.name, "the connection was cut")
        result = await work()
        if number == self.fails_at:
            raise AdapterUnavailable(self.name, "the connection was cut")
        return result

    async def due(self, *args, **options):
        return await self._may_fail(partial(super().due, *args, **options))

    async def get_memories(self, *args, **options):
        return await self._may_fail(partial(super().get_memories, *args, **options))

    async def set_tier(self, *args, **options):
        return await self._may_fail(partial(super().set_tier, *args, **options))

    async def unprojected(self, *args, **options):
        return await self._may_fail(partial(super().unprojected, *args, **options))

    async def mark_projected(self, *args, **options):
        return await self._may_fail(partial(super().mark_projected, *args, **options))


class FailingAdapter(SqliteAdapter):
    """A real one, whose writes and deletions fail while it is told so."""

    is_down = False

    async def store_many(self, *args, **options):
        if self.is_down:
            raise AdapterUnavailable(self.name, "the disk is full")
        return await super().store_many(*args, **options)

    async def delete_many(self, *args, **options):
        if self.is_down:
            raise AdapterUnavailable(self.name, "the disk is full")
        return await super().delete_many(*args, **options)


class World:
    """A service on real SQLite files, and what fades its memories."""

    def __init__(self, path):
        self.clock = FrozenClock()
        self.events = []
        self.database = SqliteDatabase(path)
        self.store = FailingStore(None, database=self.database)
        self.adapter = FailingAdapter(None, database=self.database, table="lamina_packs")
        self.packs = ContextPacks(
            self.store, self.adapter, embedder=HashingEmbedder(), clock=self.clock, emit=self.events.append
        )
        self.fading = self.fading_with(None)

    def fading_with(self, reducer):
        return Fading(
            self.store,
            self.packs._index,
            tenant=self.packs.tenant,
            reducer=reducer,
            clock=self.clock,
            emit=self.events.append,
        )

    async def fill(self, count, *, text=TEXT, **options):
        items = [{"id": f"m{number:04}", "content": text.format(number)} for number in range(count)]
        return await self.packs.add_many("notes", [{**item, **options} for item in items])

    async def tiers(self):
        found = {}
        for memory in await self.packs.memories("notes", touch=False, include_archived=True, limit=1000):
            found.setdefault(memory.tier, []).append(memory.id)
        return found

    async def rows(self, ids):
        return {id: (row.tier, row.entry.content) for id, row in (await self.packs._index.rows(ids)).items()}

    async def check_rows(self):
        """Every row says what its memory's tier leaves of the original, and nothing waits to be written."""
        self.store.fails_at = -1
        assert await self.store.unprojected(self.packs.tenant, limit=1000) == []
        memories = await self.packs.memories("notes", touch=False, include_archived=True, limit=1000)
        originals = {m.id: m for m in await self.store.get_memories(self.packs.tenant, [m.id for m in memories])}
        rows = await self.rows(originals)
        for id, memory in originals.items():
            left = {
                Tier.FULL: lambda text: text,
                Tier.SUMMARY: lambda text: reduced(text, Tier.SUMMARY),
                Tier.KEY_FACTS: lambda text: reduced(text, Tier.KEY_FACTS),
                Tier.EXISTENCE_MARKER: lambda _: MARKER,
            }.get(memory.tier)
            assert rows.get(id) == (None if left is None else (memory.tier, left(memory.content)))


@asynccontextmanager
async def opened(path, *, decay=None):
    world = World(path)
    await world.packs.initialize()
    await world.packs.create("notes", "project", decay=decay or Decay(timedelta(hours=12)))
    try:
        yield world
    finally:
        world.store.fails_at = -1
        await world.packs.close()


@pytest.fixture
async def world(tmp_path):
    async with opened(tmp_path / "packs.db") as made:
        yield made


@pytest.mark.parametrize(
    ("hours", "tier"),
    [(11, Tier.FULL), (12, Tier.SUMMARY), (24, Tier.KEY_FACTS), (48, Tier.EXISTENCE_MARKER), (96, Tier.ARCHIVED)],
)
async def test_one_sweep_goes_to_the_tier_that_the_idle_time_asks_for(world, hours, tier):
    await world.fill(3)
    world.clock.advance(hours * HOUR)
    report = await world.fading.degrade()
    assert await world.tiers() == {tier: ["m0000", "m0001", "m0002"]}
    assert report == DegradationReport(
        examined=0 if tier is Tier.FULL else 3, moved={} if tier is Tier.FULL else {tier: 3}
    )
    await world.check_rows()
    assert await world.fading.degrade() == DegradationReport()


async def test_whatever_is_read_comes_back_byte_for_byte(world):
    (added,) = await world.fill(1)
    for hours in (12, 24, 48):
        world.clock.advance(hours * HOUR)
        await world.fading.degrade()
        assert (await world.packs.memory("m0000", touch=False)).content != added.content
        (hit,) = await world.packs.retrieve("notes", "furnace of the Ankara plant")
        assert hit.found_in is not Tier.FULL
        assert (hit.memory.content, hit.memory.tier) == (added.content, Tier.FULL)
        await world.check_rows()
    world.clock.advance(1000 * HOUR)
    await world.fading.degrade()
    assert await world.packs.retrieve("notes", "furnace") == []
    assert (await world.rows(["m0000"])) == {}
    await world.packs.restore("m0000")
    (hit,) = await world.packs.retrieve("notes", "furnace")
    assert hit.memory.content == added.content
    await world.check_rows()


async def test_a_pinned_memory_stays_whole_and_an_expired_one_is_archived_pinned_or_not(world):
    await world.fill(2)
    await world.packs.add("notes", TEXT.format(3), id="short", expires_at=world.clock.now + HOUR)
    await world.packs.pin("m0000")
    await world.packs.pin("short")
    world.clock.advance(HOUR)
    assert (await world.fading.degrade()).moved == {Tier.ARCHIVED: 1}
    world.clock.advance(10_000 * HOUR)
    assert (await world.fading.degrade()).moved == {Tier.ARCHIVED: 1}
    assert await world.tiers() == {Tier.FULL: ["m0000"], Tier.ARCHIVED: ["m0001", "short"]}


async def test_short_texts_are_whole_until_nothing_is_left_of_them(world):
    await world.packs.add("notes", "Ferries leave at nine.", id="s")
    for hours in (12, 12):
        world.clock.advance(hours * HOUR)
        await world.fading.degrade()
        assert (await world.packs.memory("s", touch=False)).content == "Ferries leave at nine."
    world.clock.advance(24 * HOUR)
    await world.fading.degrade()
    assert (await world.packs.memory("s", touch=False)).content == MARKER


async def test_a_sweep_of_a_bounded_size_is_gone_on_with_by_the_next(world):
    await world.fill(7)
    world.clock.advance(13 * HOUR)
    first = await world.fading.degrade(limit=3)
    assert (first.examined, first.is_complete, len((await world.tiers())[Tier.SUMMARY])) == (3, False, 3)
    assert not (await world.fading.degrade(limit=3)).is_complete
    last = await world.fading.degrade(limit=3)
    assert (last.examined, last.is_complete) == (1, True)
    await world.check_rows()


async def test_more_than_a_batch_is_swept_in_one_go(world):
    await world.fill(2 * BATCH + 3)
    world.clock.advance(13 * HOUR)
    assert (await world.fading.degrade()).moved == {Tier.SUMMARY: 2 * BATCH + 3}
    await world.check_rows()


async def test_memories_that_cannot_be_reduced_hold_up_no_others(world):
    await world.fill(4, text="FAIL " + TEXT)
    await world.packs.add("notes", TEXT, id="z")
    reducer = FailingReducer(error=ProviderError("The model", "is down"))
    fading = world.fading_with(reducer)
    world.clock.advance(13 * HOUR)
    reports = [await fading.degrade(limit=2) for _ in range(3)]
    assert [(each.examined, each.failed, each.is_complete) for each in reports] == [
        (2, 2, False),
        (2, 2, False),
        (1, 0, True),
    ]
    assert await world.tiers() == {Tier.FULL: [f"m{n:04}" for n in range(4)], Tier.SUMMARY: ["z"]}
    await world.check_rows()
    reducer.is_down = False
    assert (await fading.degrade()).moved == {Tier.SUMMARY: 4}
    await world.check_rows()


@pytest.mark.parametrize("answer", ["", " \u200b", None, 7, "FAIL " + TEXT + " and more"])
async def test_an_answer_that_is_no_reduction_leaves_the_memory_as_it_is(world, answer):
    await world.fill(1, text="FAIL " + TEXT)
    world.clock.advance(13 * HOUR)
    report = await world.fading_with(FailingReducer(answer=answer)).degrade()
    assert (report.failed, report.moved) == (1, {})
    assert (await world.packs.memory("m0000", touch=False)).content == "FAIL " + TEXT.format(0)


async def test_a_reducer_of_a_host_may_raise_anything(world):
    await world.fill(1, text="FAIL " + TEXT)
    world.clock.advance(13 * HOUR)
    assert (await world.fading_with(FailingReducer(error=KeyError("x"))).degrade()).failed == 1
    world.clock.advance(36 * HOUR)
    report = await world.fading_with(FailingReducer(error=KeyError("x"))).degrade()
    assert report.moved == {Tier.EXISTENCE_MARKER: 1}  # which no reducer is asked for


@pytest.mark.parametrize("is_full", [True, False])
async def test_a_reader_that_comes_while_a_text_is_reduced_wins(world, is_full):
    """A full memory that is read keeps its revision: what tells is that it is not due any more."""
    await world.fill(1)
    if not is_full:
        world.clock.advance(13 * HOUR)
        await world.fading.degrade()
    world.clock.advance(13 * HOUR)

    class Slow:
        async def reduce(self, text, tier):
            await world.packs.memory("m0000")
            return reduced(text, tier)

    report = await world.fading_with(Slow()).degrade()
    assert (report.outrun, report.moved) == (1, {})
    memory = await world.packs.memory("m0000", touch=False)
    assert (memory.tier, memory.access_count) == (Tier.FULL, 1)
    await world.check_rows()


async def test_sweeps_beside_sweeps_and_readers_lose_nothing(world):
    await world.fill(60)
    world.clock.advance(13 * HOUR)
    reads = [f"m{number:04}" for number in range(0, 60, 3)]
    reports = await asyncio.gather(
        *(world.fading_with(None).degrade() for _ in range(3)),
        *(world.packs.memory(id) for id in reads),
        *(world.packs.retrieve("notes", f"note {number}", limit=2) for number in range(5)),
    )
    sweeps = [each for each in reports if isinstance(each, DegradationReport)]
    memories = {each.id: each for each in await world.store.get_memories("default", [f"m{n:04}" for n in range(60)])}
    assert all(memories[id].tier is Tier.FULL for id in reads)
    assert {each.tier for each in memories.values()} <= {Tier.FULL, Tier.SUMMARY}
    faded = sum(each.tier is Tier.SUMMARY for each in memories.values())
    assert faded <= sum(each.moved.get(Tier.SUMMARY, 0) for each in sweeps) <= 60
    assert [each.content for each in memories.values()] == [TEXT.format(number) for number in range(60)]
    await world.check_rows()


@pytest.mark.parametrize("fails_after", [False, True], ids=["before", "after"])
async def test_wherever_the_store_fails_nothing_is_lost_and_the_next_sweep_does_the_rest(tmp_path, fails_after):
    for number in itertools.count():
        async with opened(tmp_path / f"{number}.db") as world:
            await world.fill(4)
            world.clock.advance(13 * HOUR)
            world.store.calls = itertools.count()
            world.store.fails_at, world.store.fails_after = number, fails_after
            try:
                await world.fading.degrade()
            except AdapterUnavailable:
                pass
            else:
                assert number > 5
                break
            world.store.fails_at = -1
            for memory in await world.store.get_memories("default", [f"m{n:04}" for n in range(4)]):
                assert memory.content == TEXT.format(int(memory.id[1:]))
            await world.fading.degrade()
            assert await world.tiers() == {Tier.SUMMARY: ["m0000", "m0001", "m0002", "m0003"]}
            await world.check_rows()


@pytest.mark.parametrize("hours", [13, 25, 49, 97])
async def test_rows_that_could_not_be_written_are_mended_by_the_next_sweep(world, hours):
    await world.fill(3)
    world.clock.advance(hours * HOUR)
    world.adapter.is_down = True
    with pytest.raises(AdapterUnavailable):
        await world.fading.degrade()
    tiers = await world.tiers()
    assert Tier.FULL not in tiers
    assert {content for _, content in (await world.rows(["m0000", "m0001"])).values()} == {
        TEXT.format(0),
        TEXT.format(1),
    }
    if hours < 97:
        (hit,) = await world.packs.retrieve("notes", "note 2", limit=1, touch=False)
        assert hit.memory.tier is not Tier.FULL  # what the store says counts
    else:
        assert await world.packs.retrieve("notes", "note 2", touch=False) == []
    world.adapter.is_down = False
    report = await world.fading.degrade()
    assert (report.mended, report.examined) == (3, 0)
    await world.check_rows()
    assert (await world.fading.degrade()).mended == 0


async def test_however_many_rows_are_behind_only_a_batch_of_texts_is_read_at_a_time(world, monkeypatch):
    ids = [each.id for each in await world.fill(30)]
    world.adapter.is_down = True
    for id in ids:
        await world.packs.update_memory(id, tags=["t"])
    world.adapter.is_down = False
    monkeypatch.setattr(fading, "BATCH", 4)
    asked, unprojected = [], world.store.unprojected

    async def noted(tenant, *, limit):
        asked.append(limit)
        return await unprojected(tenant, limit=limit)

    monkeypatch.setattr(world.store, "unprojected", noted)
    assert (await world.fading.degrade()).mended == 30
    assert set(asked) == {4}
    await world.check_rows()


async def test_a_row_that_cannot_be_reduced_holds_up_no_other_that_is_to_be_mended(world):
    await world.fill(1, text="FAIL " + TEXT)
    await world.packs.add("notes", TEXT, id="z")
    world.clock.advance(13 * HOUR)
    world.adapter.is_down = True
    with pytest.raises(AdapterUnavailable):
        await world.fading.degrade()
    world.adapter.is_down = False
    reducer = FailingReducer(error=ProviderError("The model", "is down"))
    assert (await world.fading_with(reducer).degrade()).mended == 1
    assert (await world.rows(["z"]))["z"][0] is Tier.SUMMARY
    assert (await world.rows(["m0000"]))["m0000"][0] is Tier.FULL
    reducer.is_down = False
    assert (await world.fading_with(reducer).degrade()).mended == 1
    await world.check_rows()


async def test_a_sweep_that_is_cut_off_is_taken_up_by_another(world):
    await world.fill(5)
    world.clock.advance(13 * HOUR)

    class Endless:
        async def reduce(self, text, tier):
            if "Note 3" in text:
                await asyncio.sleep(3600)
            return reduced(text, tier)

    sweep = asyncio.ensure_future(world.fading_with(Endless()).degrade())
    await asyncio.sleep(0.05)
    sweep.cancel()
    await asyncio.wait([sweep])
    assert (await world.fading.degrade()).is_complete
    assert await world.tiers() == {Tier.SUMMARY: [f"m{n:04}" for n in range(5)]}
    await world.check_rows()


SWEEPER = """
import asyncio, sys
from datetime import datetime
from lamina.adapters.sqlite import SqliteAdapter
from lamina.packs.pack_index import PackIndex
from lamina.packs.service import ContextPacks
from lamina.state.sqlite import SqlitePackStore
from lamina.testing import FrozenClock, HashingEmbedder

async def main(path, now, step):
    async def halt(*_, **__):
        print("here", flush=True)
        await asyncio.sleep(60)

    clock = FrozenClock(datetime.fromisoformat(now))
    store, adapter = SqlitePackStore(path), SqliteAdapter(path, table="lamina_packs")
    packs = ContextPacks(store, adapter, embedder=HashingEmbedder(), clock=clock)
    await packs.initialize()
    steps = {"tier": (store, "set_tier"), "row": (packs._index, "project"), "mark": (store, "mark_projected")}
    setattr(*steps[step], halt)
    await packs.degrade()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("step", ["tier", "row", "mark"])
async def test_a_process_that_is_killed_in_the_middle_of_a_sweep_loses_nothing(tmp_path, step):
    async with opened(tmp_path / "packs.db") as world:
        await world.fill(5)
        world.clock.advance(13 * HOUR)
        now = world.clock.now.isoformat()
        arguments = ("-c", SWEEPER, str(tmp_path / "packs.db"), now, step)
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
        assert await process.stdout.readline() == b"here\n"
        process.kill()
        await process.wait()
        report = await world.fading.degrade()
        assert report.mended + report.moved.get(Tier.SUMMARY, 0) == 5
        assert await world.tiers() == {Tier.SUMMARY: [f"m{n:04}" for n in range(5)]}
        await world.check_rows()


async def test_a_clock_that_goes_back_takes_nothing_up_and_down(world):
    await world.fill(2)
    world.clock.advance(25 * HOUR)
    await world.fading.degrade()
    world.clock.advance(-1000 * HOUR)
    assert await world.fading.degrade() == DegradationReport()
    assert await world.tiers() == {Tier.KEY_FACTS: ["m0000", "m0001"]}
    await world.packs.memory("m0000")
    (memory,) = await world.store.get_memories("default", ["m0000"])
    assert memory.tier is Tier.FULL


async def test_an_instant_without_a_zone_is_refused_and_any_zone_is_understood(world):
    await world.fill(1)
    with pytest.raises(InvalidInput) as caught:
        await world.fading.degrade(datetime(2030, 1, 1))  # noqa: DTZ001 - this is what is refused
    assert caught.value.field == "now"
    with pytest.raises(InvalidType):
        await world.fading.degrade("2030-01-01")
    with pytest.raises(InvalidInput):
        await world.fading.preview(datetime(2030, 1, 1))  # noqa: DTZ001 - likewise
    due = (world.clock.now + 12 * HOUR).astimezone(ZoneInfo("Asia/Kathmandu"))
    assert (await world.fading.degrade(due - timedelta(microseconds=1))).examined == 0
    assert (await world.fading.degrade(due)).examined == 1


@pytest.mark.parametrize("limit", [0, -1, 10**9, True, 1.5, "3"])
async def test_a_limit_that_is_none_is_refused(world, limit):
    with pytest.raises(InvalidInput):
        await world.fading.degrade(limit=limit)
    with pytest.raises(InvalidInput):
        await world.fading.preview(limit=limit)


async def test_a_preview_tells_what_fades_next_and_changes_nothing(world):
    await world.fill(2)
    await world.packs.add("notes", TEXT, id="soon", name="kiln", expires_at=world.clock.now + HOUR)
    start = world.clock.now
    steps = await world.fading.preview()
    assert [(each.id, each.next_tier, each.at - start) for each in steps] == [
        ("soon", Tier.ARCHIVED, HOUR),
        ("m0000", Tier.SUMMARY, 12 * HOUR),
        ("m0001", Tier.SUMMARY, 12 * HOUR),
    ]
    assert (steps[0].pack, steps[0].name, steps[0].tier) == ("notes", "kiln", Tier.FULL)
    assert [each.id for each in await world.fading.preview(start + HOUR)] == ["soon"]
    assert [each.id for each in await world.fading.preview(limit=1)] == ["soon"]
    world.clock.advance(30 * HOUR)
    assert {each.next_tier for each in await world.fading.preview()} == {Tier.ARCHIVED, Tier.KEY_FACTS}
    assert await world.tiers() == {Tier.FULL: ["m0000", "m0001", "soon"]}
    await world.fading.degrade()
    assert [(each.tier, each.next_tier) for each in await world.fading.preview()] == [
        (Tier.KEY_FACTS, Tier.EXISTENCE_MARKER)
    ] * 2


async def test_a_host_is_told_what_faded_by_tier_and_without_any_text(world):
    await world.fill(2)
    world.clock.advance(13 * HOUR)
    world.events.clear()
    await world.fading.degrade()
    (event,) = world.events
    (pack,) = await world.packs.list()
    assert (event.name, event.tenant) == (EventName.PACK_DEGRADED, "default")
    assert event.facts == {"tier": "summary", "ids": ["m0000", "m0001"], "packs": [pack.id]}


async def test_what_a_pack_says_of_its_own_fading_counts(tmp_path):
    async with opened(tmp_path / "own.db", decay=Decay(timedelta(minutes=1), (1, 2, 3, 4))) as world:
        await world.fill(1)
        world.clock.advance(150)
        await world.fading.degrade()
        assert await world.tiers() == {Tier.KEY_FACTS: ["m0000"]}
        await world.packs.update("notes", decay=Decay(timedelta(days=900)))
        world.clock.advance(24 * HOUR)
        assert (await world.fading.degrade()).examined == 0


async def test_another_tenants_memories_are_left_alone(world):
    await world.fill(1)
    other = ContextPacks(world.store, world.adapter, tenant="other", embedder=None, clock=world.clock)
    await other.create("notes", "project", decay=Decay(timedelta(hours=12)))
    await other.add("notes", TEXT, id="o")
    world.clock.advance(1000 * HOUR)
    assert (await world.fading.degrade()).examined == 1
    assert (await other.memory("o", touch=False)).tier is Tier.FULL
    assert (await world.fading.preview()) == []
