from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.pack import DEFAULT_DECAYS, PackType
from lamina.domain.pack_decay import DEFAULT_STEPS, Decay, Tier, next_step, tier_at
from lamina.errors import InvalidInput

ORDER = list(Tier)
SINCE = datetime(2026, 3, 1, 9, tzinfo=UTC)

decays = st.builds(
    lambda unit, steps: Decay(unit, tuple(sorted(steps))),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=36_500)),
    st.sets(st.floats(0.001, 10_000), min_size=4, max_size=4),
)
instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the zone is given beside them
tiers = st.sampled_from(Tier)


@pytest.mark.parametrize(
    ("type", "hours"),
    [
        (PackType.SESSION, (12, 24, 48, 96)),
        (PackType.USER, (720, 1440, 2880, 5760)),
        (PackType.PROJECT, (720, 1440, 2880, 5760)),
        (PackType.AGENT, (720, 1440, 2880, 5760)),
        (PackType.DOMAIN, (8760, 17520, 35040, 70080)),
    ],
)
def test_each_type_steps_down_at_its_own_idle_times_and_not_before(type, hours):
    for step, asked in zip(hours, ORDER[1:], strict=True):
        at = SINCE + timedelta(hours=step)
        before = at - timedelta(microseconds=1)
        assert tier_at(at, idle_since=SINCE, tier=Tier.FULL, decay=DEFAULT_DECAYS[type]) is asked
        assert tier_at(before, idle_since=SINCE, tier=Tier.FULL, decay=DEFAULT_DECAYS[type]) is not asked


@given(decays, instants, instants, tiers)
def test_nothing_goes_up_whatever_the_clock_says(decay, now, since, tier):
    assert ORDER.index(tier_at(now, idle_since=since, tier=tier, decay=decay)) >= ORDER.index(tier)


@given(decays, instants, instants, instants, tiers)
def test_more_idle_time_never_leaves_more(decay, now, later, since, tier):
    now, later = sorted([now, later])
    one, other = (tier_at(each, idle_since=since, tier=tier, decay=decay) for each in (now, later))
    assert ORDER.index(one) <= ORDER.index(other)


@given(decays, instants, instants, instants, tiers)
def test_two_sweeps_end_where_one_does(decay, now, later, since, tier):
    now, later = sorted([now, later])
    between = tier_at(now, idle_since=since, tier=tier, decay=decay)
    asked = tier_at(later, idle_since=since, tier=tier, decay=decay)
    assert tier_at(later, idle_since=since, tier=between, decay=decay) is asked


@given(decays, instants, tiers)
def test_a_memory_leaves_its_tier_at_its_next_step_and_not_before(decay, since, tier):
    step = next_step(idle_since=since, tier=tier, decay=decay)
    last = datetime.max.replace(tzinfo=UTC)
    if step is None:
        assert tier_at(last, idle_since=since, tier=tier, decay=decay) is tier
        return
    assert tier_at(step, idle_since=since, tier=tier, decay=decay) is not tier
    if step > since:
        before = step - timedelta(microseconds=1)
        assert tier_at(before, idle_since=since, tier=tier, decay=decay) is tier


@given(decays, instants, tiers)
def test_a_clock_that_went_back_leaves_the_tier_as_it_is(decay, since, tier):
    assert tier_at(since - timedelta(days=1), idle_since=since, tier=tier, decay=decay) is tier


def test_the_night_in_which_clocks_are_moved_is_as_long_as_it_is():
    """Berlin, 29 March 2026: an hour is missing between 2 and 3."""
    zone = ZoneInfo("Europe/Berlin")
    since = datetime(2026, 3, 28, 20, tzinfo=zone)
    decay = DEFAULT_DECAYS[PackType.SESSION]
    step = next_step(idle_since=since, tier=Tier.FULL, decay=decay)
    assert step == since.astimezone(UTC) + timedelta(hours=12)
    early = datetime(2026, 3, 29, 8, 59, tzinfo=zone)
    assert tier_at(early, idle_since=since, tier=Tier.FULL, decay=decay) is Tier.FULL
    due = datetime(2026, 3, 29, 9, tzinfo=zone)
    assert tier_at(due, idle_since=since, tier=Tier.FULL, decay=decay) is Tier.SUMMARY


@pytest.mark.parametrize(
    ("unit", "steps", "field"),
    [
        (timedelta(0), DEFAULT_STEPS, "decay.unit"),
        (timedelta(days=-1), DEFAULT_STEPS, "decay.unit"),
        (timedelta.max, DEFAULT_STEPS, "decay.unit"),
        (timedelta(days=1), (1.0, 2.0, 4.0), "decay.steps"),
        (timedelta(days=1), (0.0, 2.0, 4.0, 8.0), "decay.steps"),
        (timedelta(days=1), (1.0, 1.0, 4.0, 8.0), "decay.steps"),
        (timedelta(days=1), (4.0, 2.0, 8.0, 16.0), "decay.steps"),
        (timedelta(days=1), (1.0, 2.0, 4.0, float("nan")), "decay.steps"),
        (timedelta(days=1), (1.0, 2.0, 4.0, float("inf")), "decay.steps"),
    ],
)
def test_a_decay_that_makes_no_sense_is_refused_by_its_field(unit, steps, field):
    with pytest.raises(InvalidInput) as caught:
        Decay(unit, steps)
    assert caught.value.field == field
