from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.token_estimate import estimate_tokens

TEXTS = st.text(st.characters(exclude_categories=[]), max_size=60)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("a", 1), ("x" * 4000, 1000)])
def test_plain_words_cost_a_token_for_four_characters_rounded_up(text, tokens):
    assert estimate_tokens(text) == tokens


def test_an_english_sentence_costs_a_quarter_of_its_characters():
    sentence = "The spare key is under the blue pot beside the kitchen door, and nobody else knows about that."
    assert estimate_tokens(sentence) == -(-len(sentence) // 4)


@given(TEXTS)
def test_an_estimate_is_never_below_a_quarter_of_the_characters(text):
    assert estimate_tokens(text) >= len(text) / 4


@given(TEXTS, TEXTS)
def test_appending_text_never_makes_the_estimate_smaller(text, more):
    assert estimate_tokens(text + more) >= estimate_tokens(text)


@given(st.lists(TEXTS, max_size=8))
def test_the_estimate_of_a_whole_is_at_most_that_of_its_parts_and_three_for_each_seam(parts):
    assert estimate_tokens("".join(parts)) <= sum(map(estimate_tokens, parts)) + 3 * len(parts)


@pytest.mark.parametrize("letter", ["a", "é", "字", "한", "🎉", " ", "1", "!", "\n", "\ud83d"])
def test_a_million_characters_without_a_space_are_counted_in_proportion(letter):
    assert estimate_tokens(letter * 1_000_000) == pytest.approx(1000 * estimate_tokens(letter * 1000), rel=0.01)
