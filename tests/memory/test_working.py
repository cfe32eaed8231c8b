from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lamina.errors import InvalidInput, InvalidType
from lamina.memory.working import WorkingItem, WorkingMemory
from lamina.testing import FrozenClock


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def working(clock):
    return WorkingMemory(clock=clock)


def test_a_value_lives_an_hour_unless_told_otherwise(working, clock):
    working.set("task", {"step": 1})
    clock.advance(3599)
    assert working.get("task") == {"step": 1}
    assert working.has("task")
    clock.advance(1)
    assert working.get("task") is None
    assert not working.has("task")
    assert working.get("task", "gone") == "gone"


def test_none_means_for_ever(working, clock):
    working.set("task", 1, None)
    clock.advance(10**9)
    assert working.get("task") == 1


def test_setting_again_replaces_value_and_time_to_live(working, clock):
    working.set("task", 1, 10)
    working.set("task", 2, 100)
    clock.advance(50)
    assert working.get("task") == 2


def test_prefixes_give_live_items_in_the_order_they_were_set(working):
    working.set("tool:mail", 1)
    working.set("task", 2)
    working.set("tool:web", 3)
    working.set("tool:old", 4, 1)
    assert [item.key for item in working.get_by_prefix("tool:")] == ["tool:mail", "tool:web", "tool:old"]
    assert working.get_by_prefix("tool:m") == [WorkingItem("tool:mail", 1)]
    assert len(working.get_by_prefix("")) == working.size() == 4


def test_expired_keys_count_for_nothing(working, clock):
    working.set("a", 1, 1)
    working.set("b", 2)
    clock.advance(2)
    assert working.size() == 1
    assert working.get_by_prefix("") == [WorkingItem("b", 2)]
    assert working.delete("a") is False


def test_delete_says_whether_the_key_was_there(working):
    working.set("a", None)
    assert working.has("a")
    assert working.delete("a") is True
    assert working.delete("a") is False


def test_clear_removes_everything(working):
    working.set("a", 1)
    working.clear()
    assert working.size() == 0


def test_the_least_recently_set_goes_first_when_there_is_no_room():
    working = WorkingMemory(max_items=2, clock=FrozenClock())
    working.set("a", 1)
    working.set("b", 2)
    working.set("a", 3)
    working.set("c", 4)
    assert [item.key for item in working.get_by_prefix("")] == ["a", "c"]


@pytest.mark.parametrize("ttl", [0, -1, float("nan")])
def test_a_time_to_live_that_is_not_positive_is_refused(working, ttl):
    with pytest.raises(InvalidInput, match="ttl"):
        working.set("a", 1, ttl)


def test_keys_are_text(working):
    with pytest.raises(InvalidType, match="key"):
        working.set(1, 1)


def test_threads_do_not_lose_items(working):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: working.set(f"key:{number}", number), range(2000)))
    assert working.size() == 2000
