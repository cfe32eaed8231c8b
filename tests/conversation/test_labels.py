from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.labels import MAX_LABEL_CHARS, label_of
from lamina.domain.message import FilePart, ImagePart, Message, TextPart

TRACE = "Traceback (most recent call last):\n  File \"src/app/main.py\", line 3, in run\nKeyError: 'pool_size'\n"
CODE = "import os\n\ndef main():\n    return os.getcwd()\n\nclass A:\n    pass\n"
FILE = "\n".join(f"{number}\tlet x{number} = src/lib.rs;" for number in range(1, 30))
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
LISTING = "src/\nREADME.md\nsrc/app/main.py\nsrc/app/pool.py\n"


def tool(text, name=None):
    return Message.tool(text, call_id="c1").replace(name=name)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (tool(TRACE), "error trace"),
        (tool("diff --git a/x.py b/x.py\n@@ -1,2 +1,2 @@\n-a\n+b\n"), "diff"),
        (tool(FILE), "file content"),
        (tool(TABLE), "table"),
        (tool(json.dumps({"a": [1, 2, 3]})), "JSON"),
        (tool("<!DOCTYPE html><html><body>x</body></html>"), "web page"),
        (tool("total 8\nall fine here", name="Bash"), "shell output"),
        (tool("It is 21 degrees", name="get_weather"), "result of get_weather"),
        (tool("something plain"), "tool result"),
        (tool(CODE), "code"),
        (tool(LISTING), "list of files"),
        (Message.assistant("Look:\n```python\nx = 1\n```"), "code block"),
        (Message.user("Please fix the pool of connections"), "user message"),
        (Message.user([ImagePart(url="https://example.org/a.png")]), "picture"),
        (Message.user([FilePart(name="plan.pdf")]), "file plan.pdf"),
    ],
)
def test_a_label_says_of_what_kind_the_message_is_and_how_large(message, kind):
    assert label_of(message, 1234).startswith(f"{kind}, 1,234 tokens")


def test_a_label_says_which_paths_the_message_names_most_and_how_it_begins():
    text = "The pool of the billing service is too small. " + "See src/billing/pool.py for it. " * 20
    label = label_of(Message.assistant(text), 400)
    assert "The pool of the billing service is too" in label
    assert "src/billing/pool.py" in label


def test_the_label_of_a_trace_tells_the_error_and_where_it_was():
    label = label_of(tool(TRACE), 400)
    assert "KeyError: 'pool_size'" in label
    assert "src/app/main.py" in label


def test_the_label_of_a_short_message_is_short():
    assert len(label_of(Message.user("see src/a.py and src/b.py, both of them, and src/c.py"), 20)) < 90


@given(st.text(max_size=3_000), st.integers(0, 10**6))
def test_a_label_is_one_line_without_brackets_and_bounded(text, tokens):
    label = label_of(Message.user(text), tokens)
    assert len(label) <= MAX_LABEL_CHARS
    assert not set(label) & set("[]\n\r")


def test_a_message_of_a_million_characters_gets_a_label():
    assert label_of(Message.user([TextPart("x" * 1_000_000)]), 250_000).startswith("user message, 250,000 tokens")


def test_blank_lines_of_a_trace_cost_no_more_than_their_number():
    long = "Traceback (most recent call last):\n" + "\n" * 150_000 + "    KeyError: 'pool_size'\n"
    assert "KeyError: 'pool_size'" in label_of(tool(long), 40_000)  # in time that is linear: else for hours
