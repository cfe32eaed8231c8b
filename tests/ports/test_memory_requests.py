from datetime import UTC, datetime

import pytest

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, InvalidType, ScopeError
from lamina.ports.memory_requests import (
    ACCESS_FIELDS,
    MAX_LIMIT,
    UPDATABLE,
    ListOptions,
    Order,
    SearchOptions,
    check_in_scope,
    check_meta,
    check_updates,
)

NOW = datetime(2099, 3, 1, tzinfo=UTC)
MINE = Scope("acme", "ada")
LIVE = MemoryFilter(now=NOW)


def entry(id: str, **fields) -> MemoryEntry:
    return MemoryEntry(
        **{"content": "x", "tenant": "acme", "owner": "ada", **fields}, id=id, created_at=NOW, updated_at=NOW
    )


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1", None, MAX_LIMIT + 1, 2**63])
def test_a_limit_is_a_whole_number_from_one_to_a_thousand_million(limit):
    for options in (ListOptions, SearchOptions):
        with pytest.raises(InvalidInput) as refusal:
            options(scope=MINE, filter=LIVE, limit=limit)
        assert refusal.value.field == "limit"


@pytest.mark.parametrize("offset", [-1, True, 0.5, MAX_LIMIT + 1, 2**63])
def test_an_offset_is_a_whole_number_from_zero_to_a_thousand_million(offset):
    with pytest.raises(InvalidInput, match="offset"):
        ListOptions(scope=MINE, filter=LIVE, limit=1, offset=offset)


def test_the_greatest_limit_and_offset_are_taken():
    assert ListOptions(scope=MINE, filter=LIVE, limit=MAX_LIMIT, offset=MAX_LIMIT).limit == MAX_LIMIT


@pytest.mark.parametrize("after", [-1, True, 0.5, "1", 2**63])
def test_a_place_in_the_order_is_a_whole_number(after):
    with pytest.raises(InvalidInput, match="after"):
        ListOptions(scope=MINE, filter=LIVE, limit=1, after=after)


def test_pages_after_a_seq_go_with_insertion_order_only():
    with pytest.raises(InvalidInput, match="after"):
        ListOptions(scope=MINE, filter=LIVE, limit=1, after=1, order=Order.RELEVANCE)


def test_updates_are_of_fields_that_may_change():
    check_updates(dict.fromkeys(UPDATABLE))
    assert ACCESS_FIELDS < UPDATABLE
    assert not UPDATABLE & {"id", "tenant", "owner", "namespace", "created_at", "seq", "revision"}
    for updates in ({}, {"owner": "bob"}, {"content": "x", "colour": "red"}):
        with pytest.raises(InvalidInput, match="updates"):
            check_updates(updates)


@pytest.mark.parametrize(("key", "value"), [("", "x"), ("a\0", "x"), ("k", " \u200b"), ("k", "a\0"), ("k", None)])
def test_meta_that_could_not_be_kept_is_refused(key, value):
    check_meta("k", "x")
    with pytest.raises((InvalidInput, InvalidType)):
        check_meta(key, value)


def test_an_entry_outside_the_scope_is_refused():
    check_in_scope(MINE, entry("m1"))
    with pytest.raises(ScopeError, match="'m1' lies outside"):
        check_in_scope(MINE, entry("m1", owner="bob"))
