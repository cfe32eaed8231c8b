from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.extractive import extract, files_line, is_decision
from lamina.domain.facts import sentences
from lamina.providers.tokens import EstimateCounter

count = EstimateCounter().count


CASE = json.loads(Path(__file__).with_name("support_case.json").read_text(encoding="utf-8"))
TEXTS = CASE["texts"]


def kept(wanted, text):
    return sum(each in text for each in wanted) / len(wanted)


@pytest.mark.parametrize("kind", ["names", "numbers", "dates", "paths"])
def test_more_names_numbers_dates_and_paths_survive_than_in_a_cut_of_the_same_length(kind):
    wanted = CASE[kind]
    summary = extract(TEXTS, max_tokens=150, count=count)
    beginning = "\n".join(TEXTS)[: len(summary)]
    assert kept(wanted, summary) >= 0.75
    assert kept(wanted, summary) > kept(wanted, beginning)


def test_what_was_decided_survives_and_small_talk_does_not():
    summary = extract(TEXTS, max_tokens=150, count=count)
    assert "We decided to raise pool_size from 10 to 50" in summary
    assert "weather" not in summary
    assert "made our day" not in summary


def test_every_sentence_of_it_stands_in_the_text():
    picked = [line[2:] for line in extract(TEXTS, max_tokens=150, count=count).splitlines() if line.startswith("- ")]
    assert picked
    assert set(picked) <= {sentence for text in TEXTS for sentence in sentences(text)}


@given(st.lists(st.text(max_size=300), max_size=12), st.integers(0, 120), st.text(max_size=300))
def test_it_is_never_longer_than_it_may_be(texts, max_tokens, previous):
    assert count(extract(texts, max_tokens=max_tokens, count=count, previous=previous)) <= max_tokens


def test_there_is_nothing_where_there_is_nothing_to_say_or_no_room():
    assert extract([], max_tokens=100, count=count) == ""
    assert extract(["", " \n"], max_tokens=100, count=count) == ""
    assert extract(TEXTS, max_tokens=0, count=count) == ""


def test_of_a_sentence_that_is_too_long_for_the_room_the_beginning_stays():
    assert extract(["Bracket harbour lamp cracked yesterday evening again"], max_tokens=5, count=count).startswith(
        "Bracket"
    )


def test_a_text_of_a_million_characters_without_a_space_is_summarised():
    assert 0 < count(extract(["x" * 1_000_000], max_tokens=50, count=count)) <= 50


def test_a_former_summary_is_folded_in_and_never_nested():
    summary = extract(TEXTS, max_tokens=150, count=count)
    for number in range(5):
        chat = [f"Round {number}: the printer in room {number} was moved. Nothing else of note happened today."] * 3
        summary = extract(chat, max_tokens=150, count=count, previous=summary)
        assert count(summary) <= 150
        assert len(set(summary.splitlines())) == len(summary.splitlines())
    assert "We decided to raise pool_size from 10 to 50" in summary
    assert "config/billing.toml" in summary
    assert summary.count("We decided to raise") == 1


def test_how_often_a_file_was_named_adds_up_over_foldings():
    first = extract(["see src/a/pool.py"] * 4 + ["x src/a/pool.py y"] * 3, max_tokens=60, count=count)
    again = extract(["look at src/a/pool.py, will you"] * 2, max_tokens=60, count=count, previous=first)
    assert "src/a/pool.py (7)" in first
    assert "src/a/pool.py (9)" in again


def test_a_file_counts_under_its_longest_name():
    summary = extract(["/srv/app/src/pool.py and src/pool.py and pool.py"], max_tokens=60, count=count)
    assert "Files: /srv/app/src/pool.py (3)" in summary


def test_a_line_of_files_is_read_as_counts():
    line = files_line(Counter({"src/a.py": 12, "docs/b.md": 1}))
    assert line == "Files: src/a.py (12), docs/b.md"
    assert line in extract(["Hello there."], max_tokens=60, count=count, previous=line)
    assert files_line(Counter()) == ""


@pytest.mark.parametrize(
    "sentence",
    ["We decided to wait.", "It must never run twice.", "因为超时，决定重试。", "Wir haben entschieden, zu warten."],
)
def test_a_decision_is_known_by_its_words(sentence):
    assert is_decision(sentence)
    assert not is_decision("The sun is out.")


def test_chinese_and_japanese_text_is_picked_sentence_by_sentence():
    text = "今天天气很好。我们决定在2026年3月5日把超时改为30秒。大家都很高兴。" * 2 + "会議は金曜に変わった。"
    summary = extract([text], max_tokens=60, count=count)
    assert "2026年3月5日" in summary
    assert "30秒" in summary
