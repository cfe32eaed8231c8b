from __future__ import annotations

import pytest

from lamina.rag.markdown import blocks
from lamina.rag.units import Kind, lines_of


def kinds(text):
    found = list(blocks(text, lines_of(text, 0, len(text))))
    assert "".join(text[unit.start : unit.end] for unit in found) == text
    return [unit.kind.name for unit in found if unit.kind is not Kind.BLANK]


def titles(text):
    return [
        (unit.level, unit.title) for unit in blocks(text, lines_of(text, 0, len(text))) if unit.kind is Kind.HEADING
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One", [(1, "One")]),
        ("###### Six ######", [(6, "Six")]),
        ("## C# ##\n", [(2, "C#")]),
        ("# F#\n", [(1, "F#")]),
        ("####### seven", []),
        ("#tag", []),
        ("#\n", [(1, "")]),
        ("   ## In by three", [(2, "In by three")]),
        ("    # In by four", []),
        ("## With anchor { #with-anchor }\n", [(2, "With anchor")]),
        ("Title\n=====\n", [(1, "Title")]),
        ("Two\nlines\n---\n", [(2, "Two lines")]),
        ("- item\n---\n", []),
        ("| a |\n---\n", [(2, "| a |")]),
        ("\n---\n\ntext\n", []),
        ("---\ntitle: x\n---\n# Real\n", [(1, "Real")]),
        ("+++\ntitle = 'x'\n+++\n# Real\n", [(1, "Real")]),
        ("---\n\n# Kept\n\n---\n", [(1, "Kept")]),
        ("---\ntitle: never closed\n\n# Kept\n", [(1, "Kept")]),
        ("```\n# no\n```\n# yes\n", [(1, "yes")]),
        ("````\n```\n# no\n```\n````\n# yes\n", [(1, "yes")]),
        ("~~~\n```\n# no\n~~~\n# yes\n", [(1, "yes")]),
        ("``` not`a fence\n# yes\n", [(1, "yes")]),
        ("<!-- \n# no\n-->\n# yes\n", [(1, "yes")]),
        ("<pre>\n# no\n</pre>\n# yes\n", [(1, "yes")]),
        ("> # quoted\n", []),
        ("- # in an item\n", []),
        ("- item\n\n  ```\n  # no\n  ```\n\n# yes\n", [(1, "yes")]),
        ("text\n# interrupts\n", [(1, "interrupts")]),
        ("# One\r\n\r\n## Two\r\n", [(1, "One"), (2, "Two")]),
        ("# One\r## Two\r", [(1, "One"), (2, "Two")]),
        ("# a\u2028b\x0cc\n", [(1, "a b c")]),
    ],
)
def test_a_heading_is_what_commonmark_calls_one(text, expected):
    assert titles(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree\n", ["PARAGRAPH", "PARAGRAPH"]),
        ("```\na\n\nb\n```\ntext\n", ["CODE", "PARAGRAPH"]),
        ("```\nnever closed\n\n# x\n", ["CODE"]),
        ("text\n\n    code\n\n    more\n\ntext\n", ["PARAGRAPH", "CODE", "PARAGRAPH"]),
        ("!!! note\n\n    ```py\n    x\n    ```\n\ntext\n", ["PARAGRAPH", "CODE", "PARAGRAPH"]),
        ("- a\n\n  more of a\n- b\n\ntext\n", ["LIST", "PARAGRAPH"]),
        ("- a\nlazy\n\ntext\n", ["LIST", "PARAGRAPH"]),
        ("1. a\n   - b\n2. c\n", ["LIST"]),
        ("- a\n# H\n", ["LIST", "HEADING"]),
        ("- a\n```\ncode\n```\n", ["LIST", "CODE"]),
        ("text\n2. not a list\n", ["PARAGRAPH"]),
        ("text\n1. a list\n", ["PARAGRAPH", "LIST"]),
        ("* * *\n", ["PARAGRAPH"]),
        ("> a\n> b\n\ntext\n", ["QUOTE", "PARAGRAPH"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\ntext\n\nmore\n", ["TABLE", "PARAGRAPH"]),
        ("before\n| a | b |\n|---|---|\n| 1 | 2 |\n", ["PARAGRAPH", "TABLE"]),
        ("a | b\n--|--\n1 | 2\n", ["TABLE"]),
        ("| a \\| b |\n|---|\n| 1 |\n", ["TABLE"]),
        ("| a | b |\n|---|\n", ["PARAGRAPH"]),
        ("---\na: 1\n---\ntext\n", ["RAW", "PARAGRAPH"]),
        ("", []),
        (" \n\t\n", []),
    ],
)
def test_blocks_tile_the_text_and_are_of_the_right_kind(text, expected):
    assert kinds(text) == expected


def test_a_fence_that_a_component_holds_is_code_up_to_its_end():
    text = '<Step title="One">\n    ```python\n    a = 1\n\n    b = 2\n    ```\n</Step>\n'
    assert kinds(text) == ["PARAGRAPH", "CODE", "PARAGRAPH"]


@pytest.mark.parametrize(
    "text",
    [">" * 5_000 + " x\n", "- " * 5_000 + "x\n", "#" * 50_000, "|" * 50_000 + "\n" + "|-" * 25_000, "`" * 50_000],
    ids=["quotes", "items", "marks", "cells", "ticks"],
)
def test_deep_nesting_and_long_runs_of_marks_are_read(text):
    assert kinds(text)
