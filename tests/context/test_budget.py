from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lamina.context.budget import fits_alone, keep_count, settle

SIZES = st.lists(st.integers(0, 50), max_size=40)


@given(SIZES, st.integers(0, 500))
def test_as_many_are_kept_as_fit_and_not_one_more(sizes, budget):
    kept = keep_count(len(sizes), budget, lambda some: sum(sizes[:some]))
    assert sum(sizes[:kept]) <= budget
    assert kept == len(sizes) or sum(sizes[: kept + 1]) > budget or 0 in sizes


def test_nothing_is_kept_where_nothing_fits():
    assert keep_count(3, 10, lambda some: 11 + some) == 0
    assert keep_count(0, 10, lambda some: 11) == 0


def test_few_measurements_are_made():
    asked = []

    def measure(some):
        asked.append(some)
        return some

    assert keep_count(1_000, 700, measure) == 700
    assert len(asked) <= 12


@given(SIZES, st.integers(0, 500), st.integers(-5, 5))
def test_an_estimate_that_is_off_is_settled_by_the_exact_test(sizes, budget, off):
    def fits(some):
        return sum(sizes[:some]) <= budget

    exact = max(some for some in range(len(sizes) + 1) if fits(some))
    start = min(len(sizes), max(0, exact + off))
    assert settle(start, len(sizes), fits) == exact


@given(SIZES, st.integers(0, 60))
def test_what_is_larger_than_the_room_is_told_with_its_size(sizes, room):
    items = list(range(len(sizes)))
    kept, large = fits_alone(items, sizes, room)
    assert all(sizes[item] <= room for item in kept)
    assert all(sizes[item] == size > room for item, size in large)
    assert sorted([*kept, *(item for item, _ in large)]) == items
