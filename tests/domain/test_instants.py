from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.instants import from_micros, to_micros
from lamina.errors import InvalidInput


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_instant_comes_back(instant: datetime) -> None:
    assert from_micros(to_micros(instant)) == instant


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_the_order_is_kept(one: datetime, other: datetime) -> None:
    assert (to_micros(one) < to_micros(other)) == (one < other)


def test_the_ends_of_time_and_other_zones_are_fine() -> None:
    for bound in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)):
        assert from_micros(to_micros(bound)) == bound
    there = timezone(timedelta(hours=5, minutes=30))
    assert to_micros(datetime(1970, 1, 1, 5, 30, tzinfo=there)) == 0


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        to_micros(datetime(2026, 1, 1))  # noqa: DTZ001 - the point
