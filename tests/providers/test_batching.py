from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.providers.batching import approximate_tokens, batches, cut_to_tokens


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40)), st.integers(1, 5), st.integers(1, 20))
def test_batches_hold_every_text_once_in_order_and_keep_both_limits(texts: list[str], items: int, tokens: int) -> None:
    made = list(batches(texts, max_items=items, max_tokens=tokens))
    assert [text for batch in made for text in batch] == texts
    for batch in made:
        assert 1 <= len(batch) <= items
        assert len(batch) == 1 or sum(map(approximate_tokens, batch)) <= tokens


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 30))
def test_a_cut_text_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    cut = cut_to_tokens(text, limit)
    assert text.startswith(cut)
    assert approximate_tokens(cut) <= limit


@pytest.mark.parametrize("text", ["naïve café", "路線図は灯台の隣", "plain words only"])
def test_a_text_within_the_limit_stays_whole(text: str) -> None:
    assert cut_to_tokens(text, 50) == text
