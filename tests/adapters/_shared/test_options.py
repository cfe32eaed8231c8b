"""Options that adapters have in common are refused by the name under which they were given."""

import pytest

from lamina.adapters._shared.options import DEFAULT_TABLE, check_count, check_seconds, checked_table, one_of
from lamina.errors import ConfigError


def test_a_table_may_go_by_the_backends_own_word():
    assert checked_table("notes", collection=None) == "notes"
    assert checked_table(DEFAULT_TABLE, collection="notes") == "notes"
    assert checked_table("notes", collection="notes") == "notes"
    assert checked_table("x" * 63) == "x" * 63


@pytest.mark.parametrize(
    ("field", "table", "options"),
    [
        ("table", "", {}),
        ("table", "x" * 64, {}),
        ("table", "a-b", {}),
        ("table", "a\n", {}),
        ("table", "täble", {}),
        ("table", None, {}),
        ("table", 7, {}),
        ("table", "ab", {"shortest": 3}),
        ("table", "1st", {"letter_first": True}),
        ("table", "_a", {"letter_first": True}),
        ("collection", DEFAULT_TABLE, {"collection": "a b"}),
        ("collection", DEFAULT_TABLE, {"collection": ["a"]}),
        ("collection", "one", {"collection": "other"}),
    ],
)
def test_what_can_name_no_collection_is_refused(field, table, options):
    with pytest.raises(ConfigError) as refusal:
        checked_table(table, **options)
    assert refusal.value.field == field


def test_of_two_names_of_an_option_one_is_enough():
    assert one_of("url", None, endpoint=None) is None
    assert one_of("url", "a", endpoint=None) == one_of("url", None, endpoint="a") == one_of("url", "a", endpoint="a")
    with pytest.raises(ConfigError) as refusal:
        one_of("url", "a", endpoint="b")
    assert refusal.value.field == "endpoint"


@pytest.mark.parametrize("value", [0, -1, 86_401, float("nan"), float("inf"), True, "5", None])
def test_what_is_no_number_of_seconds_is_refused(value):
    with pytest.raises(ConfigError) as refusal:
        check_seconds(connect_timeout=1, timeout=value)
    assert refusal.value.field == "timeout"


def test_seconds_may_be_whole_or_not_and_none_where_that_means_something():
    check_seconds(timeout=0.001, connect_timeout=86_400)
    check_seconds(least=0, retry_timeout=0)


@pytest.mark.parametrize("value", [0, 9, 1.5, True, "1", None])
def test_what_is_no_such_whole_number_is_refused(value):
    with pytest.raises(ConfigError) as refusal:
        check_count("threads", value, 8)
    assert refusal.value.field == "threads"
