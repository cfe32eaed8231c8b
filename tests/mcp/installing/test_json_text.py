from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput
from lamina.mcp.installing.json_text import with_entry, without_entry

OURS = {"command": "/bin/lamina", "args": ["mcp"]}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(settings=st.dictionaries(st.text(), anything, max_size=4), indent=st.sampled_from([None, 2, 4, "\t"]))
def test_whatever_else_is_in_the_settings_stays(settings, indent):
    settings.pop("mcpServers", None)
    before = json.dumps(settings, indent=indent)
    after = with_entry(before, "mcpServers", "lamina", OURS)
    assert json.loads(after) == {**settings, "mcpServers": {"lamina": OURS}}
    assert with_entry(after, "mcpServers", "lamina", OURS) == after
    removed = without_entry(after, "mcpServers", "lamina")
    assert json.loads(removed) == {**settings, "mcpServers": {}}
    after.encode()


def test_the_manner_of_the_file_stays():
    before = '\ufeff{\r\n\t"b": 1.5,\r\n\t"a": "é",\r\n\t"mcpServers": {"x": {"command": "y"}}\r\n}\r\n'
    after = with_entry(before, "mcpServers", "lamina", OURS)
    assert after.startswith('\ufeff{\r\n\t"b": 1.5,\r\n\t"a": "é",\r\n')
    assert after.endswith("}\r\n")
    assert "\n" not in after.replace("\r\n", "")
    assert list(json.loads(after.removeprefix("\ufeff"))["mcpServers"]) == ["x", "lamina"]


def test_keys_of_our_entry_that_are_not_ours_stay():
    before = json.dumps({"mcpServers": {"lamina": {"command": "old", "args": ["old"], "env": {"A": "b"}, "off": True}}})
    after = json.loads(with_entry(before, "mcpServers", "lamina", OURS))
    assert after["mcpServers"]["lamina"] == {**OURS, "env": {"A": "b"}, "off": True}


@pytest.mark.parametrize("before", ["", "  \n", "\ufeff"])
def test_an_empty_file_becomes_one_with_the_entry_alone(before):
    assert json.loads(with_entry(before, "servers", "lamina", OURS).removeprefix("\ufeff")) == {
        "servers": {"lamina": OURS}
    }


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "nonsense",
        '{"a": 1,}',
        '{"a": 1} // why',
        '/* why */ {"a": 1}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[]",
        '"text"',
        '{"mcpServers": []}',
        '{"mcpServers": {"lamina": "x"}}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_edited_without_harm_is_refused(text):
    with pytest.raises(InvalidInput):
        with_entry(text, "mcpServers", "lamina", OURS)


def test_taking_out_what_is_not_there_changes_nothing():
    before = '{"a":1}'
    assert without_entry(before, "mcpServers", "lamina") == before
