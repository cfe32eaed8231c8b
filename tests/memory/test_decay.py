from __future__ import annotations

from datetime import timedelta

import pytest

from lamina.errors import InvalidInput, InvalidType
from lamina.memory.decay import decayed


def test_forty_five_cycles_reach_the_floor_and_stay_there():
    relevance, seen = 1.0, []
    for _ in range(60):
        relevance = decayed(relevance, 0.95, 0.1)
        seen.append(relevance)
    assert seen[:2] == [0.95, pytest.approx(0.9025)]
    assert seen[43] == pytest.approx(0.1047, abs=5e-5)
    assert seen[44:] == [0.1] * 16


def test_what_is_below_the_floor_stays_where_it_is():
    assert decayed(0.05, 0.95, 0.1) == 0.05


async def test_a_cycle_fades_the_old_and_spares_the_young(engine, clock):
    old = await engine.store("the cellar key hangs by the door", relevance=1.0)
    clock.advance(timedelta(hours=25))
    young = await engine.store("the attic key is lost", relevance=1.0)
    report = await engine.decay()
    assert (report.scanned, report.decayed, report.floored) == (1, 1, 0)
    faded = await engine.get(old)
    assert (faded.relevance, faded.base_relevance) == (0.95, 1.0)
    assert (await engine.get(young)).relevance == 1.0


async def test_each_call_is_a_cycle_of_its_own(engine, clock):
    id = await engine.store("the cellar key hangs by the door", relevance=1.0)
    clock.advance(timedelta(days=2))
    await engine.decay()
    await engine.decay()
    assert (await engine.get(id)).relevance == pytest.approx(0.9025)


async def test_a_confirmed_memory_is_young_again(engine, clock):
    id = await engine.store("the cellar key hangs by the door")
    clock.advance(timedelta(days=2))
    await engine.store("the cellar key hangs by the door")
    assert (await engine.decay()).scanned == 0
    assert (await engine.get(id)).relevance == 1.0


async def test_floored_memories_are_still_found_by_an_inclusive_minimum(engine, clock):
    id = await engine.store("the cellar key hangs by the door", relevance=0.101)
    clock.advance(timedelta(days=2))
    report = await engine.decay()
    assert (report.decayed, report.floored) == (1, 1)
    assert [entry.id for entry in await engine.query("cellar key", min_relevance=0.1)] == [id]


async def test_the_age_can_be_given_in_milliseconds(engine, clock):
    await engine.store("the cellar key hangs by the door")
    clock.advance(1)
    assert (await engine.decay(older_than_ms=500)).scanned == 1
    assert (await engine.decay(older_than_ms=2000)).scanned == 0


async def test_a_factor_of_one_changes_nothing(engine, clock):
    await engine.store("the cellar key hangs by the door")
    clock.advance(timedelta(days=2))
    assert (await engine.decay(factor=1)).decayed == 0


@pytest.mark.parametrize("factor", [0, -0.5, 1.1, float("nan")])
async def test_a_factor_outside_its_range_is_refused(engine, factor):
    with pytest.raises(InvalidInput, match="factor"):
        await engine.decay(factor=factor)


async def test_a_bool_is_no_factor(engine):
    with pytest.raises(InvalidType, match="factor"):
        await engine.decay(factor=True)


async def test_decay_keeps_to_its_owner(engine, clock):
    hers = await engine.store("tea with lemon", owner="mira", relevance=1.0)
    his = await engine.store("tea with milk", owner="tomas", relevance=1.0)
    clock.advance(timedelta(days=2))
    await engine.decay(owner="mira")
    assert (await engine.get(hers)).relevance == 0.95
    assert (await engine.get(his)).relevance == 1.0
