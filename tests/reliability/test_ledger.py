from __future__ import annotations

import pytest
from kill_ledger import Ledger


@pytest.fixture
def ledger():
    """One value was acknowledged and seen, as all books begin."""
    ledger = Ledger()
    ledger.tried(0, {"a": "old"}, is_whole=True)
    ledger.done(0)
    assert list(ledger.settle({"a": "old"}).findings()) == []
    return ledger


@pytest.mark.parametrize(
    ("is_done", "found", "kind"),
    [
        (True, {"a": "new"}, None),
        (True, {"a": "old"}, "lost"),  # the change is gone
        (True, {}, "lost"),
        (True, {"a": "other"}, "invented"),
        (True, {"a": "new", "b": "new"}, "invented"),
        (False, {"a": "new"}, None),
        (False, {"a": "old"}, None),
        (False, {}, "lost"),  # nobody tried to delete it
        (False, {"a": "other"}, "invented"),
    ],
)
def test_a_change_that_was_acknowledged_must_be_there_and_one_that_was_tried_may_be(ledger, is_done, found, kind):
    ledger.tried(1, {"a": "new"}, is_whole=True)
    if is_done:
        ledger.done(1)
    verdict = ledger.settle(found)
    assert [name for name in ("lost", "invented", "torn") if getattr(verdict, name)] == ([kind] if kind else [])


def test_what_was_deleted_must_not_come_back(ledger):
    ledger.tried(1, {"a": None}, is_whole=True)
    ledger.done(1)
    assert ledger.settle({}).lost == []
    assert ledger.settle({"a": "old"}).lost == ["a"]


@pytest.mark.parametrize(("is_whole", "torn"), [(True, ["b"]), (False, [])])
def test_a_part_of_what_is_written_together_is_torn(ledger, is_whole, torn):
    ledger.tried(1, {"b": "1", "c": "2"}, is_whole=is_whole)
    assert ledger.settle({"a": "old", "b": "1"}).torn == torn


def test_all_or_nothing_of_what_is_written_together_is_whole(ledger):
    for number, found in ((1, {}), (2, {"b": "1", "c": "2"})):
        ledger.tried(number, {"b": "1", "c": "2"}, is_whole=True)
        assert list(ledger.settle({"a": "old", **found}).findings()) == []


def test_what_was_found_after_one_kill_must_be_there_after_the_next(ledger):
    ledger.tried(1, {"b": "1"}, is_whole=True)
    assert ledger.settle({"a": "old", "b": "1"}).lost == []
    assert ledger.settle({"a": "old"}).lost == ["b"]


def test_single_values_are_counted_by_whether_they_were_acknowledged(ledger):
    ledger.tried(1, {"b": "1", "c": "2"}, is_whole=True)
    ledger.tried(2, {"d": "1"}, is_whole=True)
    ledger.done(1)
    ledger.settle({"a": "old", "b": "1", "c": "2"})
    assert (ledger.acknowledged, ledger.unknown) == (3, 1)
