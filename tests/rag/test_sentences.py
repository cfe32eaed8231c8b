from __future__ import annotations

import pytest

from lamina.rag.sentences import sentence_spans


def sentences(text):
    spans = list(sentence_spans(text, 0, len(text)))
    assert "".join(text[start:end] for start, end in spans) == text
    return [text[start:end].strip() for start, end in spans]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Ayşe Yılmaz met Mr. Okafor.",
        "It grew by 3.5 percent, i.e. Quite a lot.",
        "Use e.g. Python for it.",
        "See fig. 3 and Sec. 4 there.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Government said so.",
        "Version 1.2.3 is out now.",
        "Am 3. Oktober war es so weit.",
        "1. Install it first",
        "He said “no!” and left.",
        "lamina.db is one file.",
        "Wait... what is it?",
        "Vgl. Abb. Nr. Sieben dort.",
        "Was sie senden (z. B. Bilder) zählt.",
        "",
    ],
)
def test_these_are_one_sentence(text):
    assert len(sentences(text)) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He left. “Why?” She knew.", ["He left.", "“Why?”", "She knew."]),
        ("It was 2020. Then it was over.", ["It was 2020.", "Then it was over."]),
        ("路線図は灯台の隣。壁に貼った！本当？はい。", ["路線図は灯台の隣。", "壁に貼った！", "本当？", "はい。"]),
        ("会议改到周五。“好的。”他说。", ["会议改到周五。", "“好的。”", "他说。"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
        ("ما هذا؟ هذا كتاب.", ["ما هذا؟", "هذا كتاب."]),
        ("Soft\nwrapped line. Next\nline.", ["Soft\nwrapped line.", "Next\nline."]),
        ("Well... Then it ended.", ["Well...", "Then it ended."]),
    ],
)
def test_these_are_several(text, expected):
    assert sentences(text) == expected


@pytest.mark.parametrize("text", ["." * 100_000, '."' * 50_000, ". " * 50_000, "a. b" * 50_000, "。" * 100_000])
def test_long_runs_of_stops_are_read_once(text):
    assert sum(map(len, (text[start:end] for start, end in sentence_spans(text, 0, len(text))))) == len(text)
