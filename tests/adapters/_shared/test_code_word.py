"""Codes of errors are shown, and nothing that only stands in their place."""

import pytest

from lamina.adapters._shared.code_word import code_word


@pytest.mark.parametrize("code", ["SQLITE_BUSY", "PGRST202", "22P02", "ValidationException", "X.Y", "404"])
def test_a_code_is_one_short_word(code):
    assert code_word(code) == code


@pytest.mark.parametrize("said", [None, "", "the secret", "a: b", "x" * 61, "é", "a\n", {"a": 1}, ["x"]])
def test_what_else_was_said_in_its_place_is_not_shown(said):
    assert code_word(said) == ""
