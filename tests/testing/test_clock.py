from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina.errors import InvalidInput
from lamina.testing import FrozenClock, counting_ids

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_a_frozen_clock_stands_still_until_it_is_moved():
    clock = FrozenClock(NOW)
    assert clock() == clock() == clock.now == NOW
    assert clock.advance(1.5) == clock() == NOW + timedelta(seconds=1.5)
    assert clock.advance(timedelta(days=-1)) == clock() == NOW + timedelta(days=-1, seconds=1.5)
    clock.now = NOW
    assert clock() == NOW


def test_a_frozen_clock_speaks_utc_and_is_told_no_naive_time():
    assert FrozenClock(NOW.astimezone(timezone(timedelta(hours=2))))().tzinfo is UTC
    with pytest.raises(InvalidInput):
        FrozenClock(datetime(2026, 3, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidInput):
        FrozenClock().now = datetime(2026, 3, 1)  # noqa: DTZ001 - what is refused


def test_ids_count_up_and_each_factory_from_one():
    first, second = counting_ids(), counting_ids("x")
    assert [first(), first(), second(), first()] == ["mem_000001", "mem_000002", "x000001", "mem_000003"]
