from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput
from lamina.mcp.installing.toml_text import with_entry, without_entry

OURS = {"command": "/bin/lamina", "args": ["mcp", '--owner=é "x" \\ \x7f']}
SETTINGS = """\
# what I like
model = "x" # the best

[mcp_servers.other]
command = "y"

# about the next one
[projects."/a b"]
trust = "yes"
"""


def edited(text):
    return with_entry(text, "mcp_servers", "lamina", OURS)


def test_the_entry_is_added_behind_and_every_line_stays():
    after = edited(SETTINGS)
    assert after.startswith(SETTINGS)
    assert tomllib.loads(after)["mcp_servers"] == {"other": {"command": "y"}, "lamina": OURS}
    assert edited(after) == after
    assert without_entry(after, "mcp_servers", "lamina").rstrip() == SETTINGS.rstrip()


@pytest.mark.parametrize(
    "name",
    ["[mcp_servers.lamina]", "[ mcp_servers . lamina ] # ours", '[mcp_servers."lamina"]', "[mcp_servers.'lamina']"],
)
def test_an_older_entry_is_replaced_where_it_stands_and_keys_that_are_not_ours_stay(name):
    before = SETTINGS.replace(
        "# about",
        f"{name}\nstartup_timeout_sec = 20 # slow\nargs = [\n  'old', # old\n  'older',\n]\ncommand = 'old'\n"
        "[mcp_servers.lamina.env]\nA = 'b'\n\n# about",
    )
    after = edited(before)
    ours = {**OURS, "startup_timeout_sec": 20, "env": {"A": "b"}}
    assert tomllib.loads(after)["mcp_servers"]["lamina"] == ours
    assert "startup_timeout_sec = 20 # slow\n" in after
    assert "'old'" not in after
    removed = without_entry(after, "mcp_servers", "lamina")
    assert tomllib.loads(removed) == tomllib.loads(SETTINGS)
    assert "# about the next one\n[projects" in removed


@given(value=st.text(alphabet=st.characters(exclude_categories=["Cs"])), key=st.sampled_from(["model", "note"]))
def test_values_of_any_text_stay(value, key):
    before = with_entry("", "mcp_servers", "other", {key: value})
    after = edited(before)
    assert tomllib.loads(after)["mcp_servers"] == {"other": {key: value}, "lamina": OURS}


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = 1\na = 2",
        'mcp_servers = "x"',
        'mcp_servers = { lamina = { command = "x" } }',
        "mcp_servers = { other = { command = 'x' } }",
        'mcp_servers.lamina.command = "x"',
        "[mcp_servers]\nlamina = { command = 'x' }",
        "note = '''\n[mcp_servers.lamina]\n'''\n[mcp_servers.lamina]\ncommand = 'x'",
        "[[mcp_servers.lamina]]\ncommand = 'x'",
    ],
)
def test_what_cannot_be_edited_without_harm_is_refused(text):
    with pytest.raises(InvalidInput):
        edited(text)


def test_a_text_that_looks_like_a_table_is_left_alone():
    before = "note = '''\n[mcp_servers.lamina]\n'''\n"
    with pytest.raises(InvalidInput, match="edited safely"):
        edited(before)


def test_line_ends_stay():
    after = edited("a = 1\r\n")
    assert "\n" not in after.replace("\r\n", "")
