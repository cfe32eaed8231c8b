"""What stores refuse is in their contract; here is what they need not be asked for."""

from array import array
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina.domain.pack import DEFAULT_DECAYS, Pack, PackMemory, PackType
from lamina.domain.pack_decay import Decay, Tier
from lamina.domain.pack_query import PackMemoryQuery, PackQuery
from lamina.domain.storable_pack import (
    check_pack_name,
    storable_memory_query,
    storable_pack,
    storable_pack_memory,
    storable_pack_query,
    storable_revisions,
)
from lamina.errors import InvalidInput

NOW = datetime(2031, 3, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def memory(**fields) -> PackMemory:
    return PackMemory(
        **{"id": "m1", "tenant": "t", "pack_id": "p", "content": "x", "created_at": NOW, **fields}, updated_at=NOW
    )


@pytest.mark.parametrize("name", ["a", "0", "a_-", "a" * 63])
def test_a_name_that_is_part_of_an_address_is_a_packs(name):
    assert check_pack_name(name) == name


def test_instants_become_utc_and_vectors_32_bit():
    tokyo = datetime(2031, 3, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    kept = storable_pack(Pack("p", "t", "x", PackType.AGENT, tokyo, tokyo, embedding=(0.1,), fingerprint="f"))
    assert kept.created_at.utcoffset() == timedelta()
    assert kept.embedding == array("f", [0.1])
    assert storable_pack_memory(memory(expires_at=tokyo)).expires_at == NOW


def test_steps_given_as_whole_numbers_are_kept_as_floats():
    decay = Decay(timedelta(days=1), (1, 2, 3, 4))
    kept = storable_pack(Pack("p", "t", "x", PackType.AGENT, NOW, NOW, decay=decay)).decay
    assert kept is not None
    assert [type(each) for each in kept.steps] == [float] * 4


def test_an_empty_content_stands_for_the_kept_one_only_where_there_may_be_one():
    assert storable_pack_memory(memory(content=""), keeps_content=True).content == ""
    for blank in ("", " "):
        with pytest.raises(InvalidInput, match="content"):
            storable_pack_memory(memory(content=blank))
    with pytest.raises(InvalidInput, match="content"):
        storable_pack_memory(memory(content=" "), keeps_content=True)


def test_queries_are_cleaned_as_what_they_look_for_is():
    assert storable_pack_query(PackQuery(tenant="t", tag="a\x00")).tag == "a\ufffd"
    query = storable_memory_query(PackMemoryQuery(tenant="t", pack_ids=("p", "\ud800", "p"), tags=("a\x00",)))
    assert (query.pack_ids, query.tags) == (("p",), ("a\ufffd",))


def test_revisions_of_ids_that_nothing_can_have_are_left_out():
    assert storable_revisions({"m1": 2, "m\x00": 3}) == {"m1": 2}


def test_every_type_of_pack_has_its_way_to_fade():
    assert set(DEFAULT_DECAYS) == set(PackType)
    units = [DEFAULT_DECAYS[each].unit for each in PackType]
    assert units == [timedelta(hours=12), *(timedelta(days=days) for days in (30, 365, 30, 30))]
    own = Decay(timedelta(seconds=1))
    assert Pack("p", "t", "x", PackType.DOMAIN, NOW, NOW, decay=own).current_decay is own


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, NOW + timedelta(days=1)),
        ({"last_accessed": NOW + timedelta(days=9)}, NOW + timedelta(days=10)),
        ({"tier": Tier.SUMMARY}, NOW + timedelta(days=2)),
        ({"tier": Tier.EXISTENCE_MARKER}, NOW + timedelta(days=8)),
        ({"tier": Tier.ARCHIVED}, None),
        ({"tier": Tier.ARCHIVED, "expires_at": NOW}, None),
        ({"is_deleted": True, "expires_at": NOW}, None),
        ({"pinned_at": NOW}, None),
        ({"pinned_at": NOW, "expires_at": LAST}, LAST),
        ({"expires_at": NOW}, NOW),
        ({"expires_at": LAST}, NOW + timedelta(days=1)),
        ({"created_at": LAST}, None),
    ],
)
def test_a_memory_is_due_at_its_next_step_or_when_it_expires(fields, expected):
    assert memory(**fields).due_at(Decay(timedelta(days=1))) == expected
