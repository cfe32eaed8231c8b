from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.providers.wordpiece import WordPiece

TOKENS = "[CLS] [SEP] [UNK] [ mem ##ory ##ories cafe sep ] , . 路 線 a ##b ##bc o".split()
NUMBER = {token: number for number, token in enumerate(TOKENS)}


@pytest.fixture
def tokenizer() -> WordPiece:
    return WordPiece("\n".join(TOKENS) + "\n")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", ""),
        (" \t\n", ""),
        ("memory", "mem ##ory"),
        ("Memories, MEM.", "mem ##ories , mem ."),
        ("abc", "a ##bc"),
        ("abb", "a ##b ##b"),
        ("abd", "[UNK]"),
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("路線", "路 線"),
        ("me\u200bm\x00o\ufffdry", "mem ##ory"),
        ("mem\u00a0mem\u3000a", "mem mem a"),
        ("a" * 101, "[UNK]"),
        ("[SEP]", "[ sep ]"),
    ],
)
def test_text_becomes_the_longest_known_pieces(tokenizer: WordPiece, text: str, tokens: str) -> None:
    expected = [NUMBER[token] for token in ["[CLS]", *tokens.split(), "[SEP]"]]
    assert tokenizer.encode(text, 1_000) == expected
    assert tokenizer.encode(text, 1_000) == expected, "a remembered word is split as it was at first"


@pytest.mark.parametrize(
    ("text", "known"), [("memory", True), ("🦉 mem", True), ("🦉", False), ("", False), ("x" * 500, False)]
)
def test_a_text_is_known_if_any_piece_of_it_is(tokenizer: WordPiece, text: str, known: bool) -> None:
    assert tokenizer.knows(tokenizer.encode(text, 100)) is known


def test_what_is_beyond_the_limit_is_left_out_but_not_the_end_mark(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("mem mem memory memory", 5) == [NUMBER[t] for t in "[CLS] mem mem mem [SEP]".split()]


@given(st.text(), st.integers(2, 20))
def test_any_text_becomes_ids_within_the_limit(text: str, limit: int) -> None:
    ids = WordPiece("\n".join(TOKENS)).encode(text, limit)
    assert 2 <= len(ids) <= limit
    assert (ids[0], ids[-1]) == (0, 1)
    assert set(ids[1:-1]) <= set(range(2, len(TOKENS)))


@pytest.mark.parametrize(
    ("first", "second", "most", "tokens", "lengths"),
    [
        ("mem", "a", 10, "[CLS] mem [SEP] a [SEP]", (3, 2)),
        ("mem " * 9, "a " * 9, 8, "[CLS] mem mem [SEP] a a a [SEP]", (4, 4)),
        ("mem " * 9, "a", 8, "[CLS] mem mem [SEP] a [SEP]", (4, 2)),
        ("mem", "", 8, "[CLS] mem [SEP] [SEP]", (3, 1)),
    ],
)
def test_a_pair_is_told_apart_and_the_first_leaves_the_second_half_the_room(
    tokenizer: WordPiece, first: str, second: str, most: int, tokens: str, lengths: tuple[int, int]
) -> None:
    ids, types = tokenizer.encode_pair(first, second, most)
    assert ids == [NUMBER[token] for token in tokens.split()]
    assert types == [0] * lengths[0] + [1] * lengths[1]
