from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.validation import check_entry
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.earlier_rows import earlier_entry
from lamina.memory.inputs import EntryDefaults

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THEN = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
DEFAULTS = EntryDefaults(tenant="acme", owner="default", namespace="default", relevance=0.5, layer_ttls={})


def read(**row) -> MemoryEntry:
    return earlier_entry({"content": "tea", **row}, "agent_memories", DEFAULTS, NOW)


def test_a_full_row_is_taken_over():
    entry = read(
        id="mem-7",
        layer="long_term",
        tags='["drinks", "mira"]',
        user_id="mira",
        namespace="kitchen",
        created_at="2025-01-02T03:04:05Z",
        importance=0.9,
        access_count=3,
        metadata='{"room": "kitchen"}',
        embedding=b"\x00\x01",
        mood="calm",
    )
    assert entry == MemoryEntry(
        id="mem-7",
        content="tea",
        created_at=THEN,
        updated_at=THEN,
        tenant="acme",
        owner="mira",
        namespace="kitchen",
        layer=Layer.LONGTERM,
        tags=["drinks", "mira"],
        metadata={"room": "kitchen", "mood": "calm"},
        relevance=0.9,
        base_relevance=0.9,
        access_count=3,
        source="v1:agent_memories",
    )


def test_a_row_of_two_columns_takes_the_defaults():
    entry = earlier_entry({"id": 7, "text": "tea"}, "agent_memories", DEFAULTS, NOW)
    assert (entry.id, entry.content, entry.owner, entry.layer) == ("7", "tea", "default", Layer.LONGTERM)
    assert (entry.created_at, entry.relevance, entry.tenant) == (NOW, 0.5, "acme")


@pytest.mark.parametrize("column", ["content", "TEXT", "Memory", "body"])
def test_the_content_stands_under_any_of_its_names(column):
    assert earlier_entry({column: "tea"}, "t", DEFAULTS, NOW).content == "tea"


@pytest.mark.parametrize("column", ["owner", "owner_id", "user_id", "User"])
def test_the_owner_stands_under_any_of_its_names(column):
    assert read(**{column: "mira"}).owner == "mira"


@pytest.mark.parametrize(
    "value",
    [
        "2025-01-02T03:04:05Z",
        "2025-01-02 03:04:05",
        "2025-01-02T04:04:05+01:00",
        1735787045,
        1735787045.0,
        "1735787045",
        1735787045000,
        "1735787045000",
        1735787045000000,
        1735787045000000000,
    ],
)
def test_a_time_is_read_from_iso_text_and_from_any_unit_since_1970(value):
    assert read(created_at=value).created_at == THEN


@pytest.mark.parametrize("value", ["yesterday", "", "99999-01-01", 1e300, float("inf"), b"x", "2025-13-01"])
def test_a_time_that_is_none_is_kept_as_metadata_and_the_memory_is_from_now(value):
    entry = read(created_at=value)
    assert entry.created_at == NOW
    assert isinstance(value, bytes) or "created_at" in entry.metadata


@pytest.mark.parametrize(
    ("value", "layer"),
    [
        ("session", Layer.SESSION),
        ("short-term", Layer.SESSION),
        ("LongTerm", Layer.LONGTERM),
        ("long_term", Layer.LONGTERM),
        ("organizational", Layer.ORGANIZATIONAL),
        ("global", Layer.GLOBAL),
        ("working", Layer.WORKING),
    ],
)
def test_a_layer_is_known_by_its_usual_spellings(value, layer):
    entry = read(layer=value)
    assert entry.layer is layer
    assert entry.metadata == {}


def test_a_type_that_is_no_layer_is_metadata():
    entry = read(type="preference")
    assert entry.layer is Layer.LONGTERM
    assert entry.metadata == {"type": "preference"}


def test_a_type_beside_a_layer_is_metadata():
    entry = read(layer="session", type="fact")
    assert (entry.layer, entry.metadata) == (Layer.SESSION, {"type": "fact"})


@pytest.mark.parametrize("value", ['["a", "b"]', "a,b", '["a", "b", "a", "", 7.5]', "a,,b,a"])
def test_tags_are_read_from_a_list_in_json_or_between_commas(value):
    assert read(tags=value).tags[:2] == ["a", "b"]


@pytest.mark.parametrize(("column", "value"), [("relevance", 7), ("importance", "high"), ("confidence", -1)])
def test_a_share_that_is_none_is_kept_as_metadata(column, value):
    entry = read(**{column: value})
    assert entry.metadata == {column: value}
    assert (entry.relevance, entry.confidence) == (0.5, 1.0)


def test_metadata_that_is_no_object_is_kept_as_text():
    assert read(metadata="[1]").metadata == {"metadata": "[1]"}


def test_a_row_without_an_id_gets_the_same_one_each_time_and_another_for_another_owner():
    assert read().id == read().id
    assert len({read().id, read(owner="mira").id, read(content="milk").id}) == 3


@pytest.mark.parametrize(
    "row",
    [
        {"content": None},
        {"content": 7},
        {"content": b"tea"},
        {"content": "  "},
        {"content": "x" * 5_000_000},
        {"owner": "x" * 600},
        {"owner": b"mira"},
        {"owner": 1.5},
        {"id": "x" * 600},
        {"note": "x" * 300_000},
    ],
)
def test_a_row_that_cannot_be_stored_is_refused(row):
    with pytest.raises((InvalidInput, InvalidType)):
        read(**row)


def test_an_owner_that_cannot_be_never_becomes_the_default_one():
    with pytest.raises(InvalidInput, match="owner"):
        read(owner="m" * 513)
    assert read(owner=" ").owner == "default"


ANYTHING = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=12), st.binary(max_size=4), st.just("{}")
)
COLUMNS = st.sampled_from(
    "id content text layer type tags owner user_id namespace metadata created_at updated_at expires_at relevance"
    " importance confidence access_count last_accessed_at source embedding ttl other".split()
)


@given(st.dictionaries(COLUMNS, ANYTHING))
def test_any_row_is_a_memory_that_can_be_stored_or_is_refused(row):
    try:
        entry = earlier_entry(row, "agent_memories", DEFAULTS, NOW)
    except (InvalidInput, InvalidType):
        return
    check_entry(entry)
    assert entry.tenant == "acme"
