from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.facts import MAX_SENTENCE_CHARS, Fact, FactKind, facts_in, facts_of, paths_of, sentences


def texts_of(kind, sentence):
    return [fact.text for fact in facts_in(sentence) if fact.kind is kind]


@pytest.mark.parametrize(
    ("kind", "sentence", "found"),
    [
        (FactKind.PATH, "see src/app/main.py, ./b.sh and /etc/hosts", ["src/app/main.py", "./b.sh", "/etc/hosts"]),
        (FactKind.PATH, "edit main.go-12-var and C:\\data\\a.txt", ["main.go", "C:\\data\\a.txt"]),
        (FactKind.PATH, "a closing </details> tag and 2/3 of it", []),
        (
            FactKind.LINK,
            "at https://example.org/a?b=1, or a@example.org.",
            ["https://example.org/a?b=1", "a@example.org"],
        ),
        (FactKind.DATE, "on 3 March 2026 at 14:30, or 2026-03-09", ["3 March 2026", "14:30", "2026-03-09"]),
        (FactKind.DATE, "会议改到2026年3月5日下午", ["2026年3月5日"]),
        (FactKind.NUMBER, "it took 30 s and cost $1,234.50, up 12 %", ["30 s", "$1,234.50", "12 %"]),
        (FactKind.IDENTIFIER, "call parse_config or getName, see BILL-4471", ["parse_config", "getName", "BILL-4471"]),
        (FactKind.NAME, "I met Marta Olsen there", ["Marta Olsen"]),
        (FactKind.NAME, "The pool is empty", []),
        (FactKind.NAME, "山田さんはトヨタへ行った", ["トヨタ"]),
    ],
)
def test_facts_are_found_by_their_form(kind, sentence, found):
    assert texts_of(kind, sentence) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Olsen paid 3.5 for it, e.g. today.", ["Dr. Olsen paid 3.5 for it, e.g. today."]),
        ("会議は金曜。場所は東京！", ["会議は金曜。", "場所は東京！"]),
        ("- a list\r\n* of  things\n\n\n", ["a list", "of things"]),
        ("\x1b[31mred\x1b[0m", ["red"]),
        ("  \n\t ", []),
    ],
)
def test_a_text_is_cut_into_sentences_and_lines(text, expected):
    assert list(sentences(text)) == expected


@given(st.text(max_size=2_000))
def test_no_sentence_is_blank_or_too_long(text):
    assert all(0 < len(sentence) <= MAX_SENTENCE_CHARS and sentence.strip() for sentence in sentences(text))


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs")), max_size=1_000))
def test_cutting_into_sentences_loses_no_letter(text):
    letters = [character for character in text if character.isalnum()]
    assert [character for sentence in sentences(text) for character in sentence if character.isalnum()] == letters


@given(st.text(max_size=1_000))
def test_paths_alone_are_the_paths_among_the_facts_of_a_text_without_other_facts(text):
    assert {path for path in paths_of(text) if "/" in path} >= {
        fact.text for fact in facts_of(text) if fact.kind is FactKind.PATH and "/" in fact.text
    }


@pytest.mark.parametrize("text", ["a", ".", "a/", "a_", "- ", "[[", "1,", "Ab ", "「", "\x1b[", "a@", "v1.", "```"])
def test_a_long_run_of_anything_is_read_to_its_end(text):
    repeated = text * (200_000 // len(text))
    assert sum(len(sentence) for sentence in sentences(repeated)) <= len(repeated)
    assert all(isinstance(fact, Fact) for fact in facts_of(repeated))
