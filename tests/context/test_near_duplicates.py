from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.context.near_duplicates import MAX_CHARS, Resembling, fingerprint, resemblance

LONG = (
    "The deployment runs every Tuesday evening after the review board has signed the list of changes, and the team "
    "that is on duty watches the dashboards for an hour before it hands over to the colleagues in Porto"
)


def alike(first, second):
    return resemblance(fingerprint(first), fingerprint(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Releases go out on Tuesdays.", "releases go out on tuesdays"),
        ("- **Releases** go out on _Tuesdays_!", "Releases go out on Tuesdays"),
        ("Café größe", "CAFÉ GRÖSSE"),
        ("路線図は壁に貼った。", "路線図は壁に貼った"),
    ],
)
def test_marks_and_case_make_no_difference(first, second):
    assert alike(first, second) == 1.0


def test_a_word_more_in_a_long_text_is_near():
    assert alike(LONG, f"{LONG} again") >= 0.9


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{LONG} at 3", f"{LONG} at 4"),
        (f"{LONG} now", f"{LONG} not now"),
        (f"{LONG} jetzt", f"{LONG} jetzt nicht"),
        (f"{LONG} 可以", f"{LONG} 不可以"),
        (f"{LONG} allowed", f"{LONG} never allowed"),
    ],
)
def test_another_number_or_a_negation_is_another_thing(first, second):
    assert alike(first, second) == 0.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Tomas likes jazz", "Tomas dislikes jazz"),
        ("The wifi of the Porto office is slow", "The wifi of the Lisbon office is slow"),
        ("The review is led by Mira", "The review is led by Tomas"),
        ("会议改到周五", "会议改到周四"),
    ],
)
def test_short_texts_that_differ_in_a_word_are_not_near(first, second):
    assert alike(first, second) < 0.9


def test_texts_of_no_letters_and_very_long_ones_have_no_fingerprint():
    assert fingerprint("!!! 🎉") is None
    assert fingerprint("a" * (MAX_CHARS + 1)) is None


WORDS = st.sampled_from("the lamp in hall is lit not 12 again before it rains over there".split())
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=40).map(" ".join) | st.text(max_size=60), max_size=8)


@given(TEXTS, st.data(), st.floats(0.5, 1))
def test_what_is_looked_up_is_what_comparing_with_all_would_find(texts, data, least):
    seen = Resembling(least)
    marks = [mark for mark in map(fingerprint, texts) if mark]
    for place, mark in enumerate(marks):
        longer = f"{mark.text} {data.draw(WORDS)}" if data.draw(st.booleans()) else mark.text
        changed = fingerprint(longer)
        assert 0 <= resemblance(mark, changed) == resemblance(changed, mark) <= 1
        seen.add(str(place), mark)
        first = (str(each) for each, other in enumerate(marks[: place + 1]) if resemblance(changed, other) >= least)
        assert seen.find(changed) == next(first, None)


def test_texts_that_differ_are_not_compared_at_all(monkeypatch):
    compared = []
    monkeypatch.setattr("lamina.context.near_duplicates._share", lambda *pair: compared.append(pair) or 0.0)
    seen = Resembling(0.9)
    for place in range(200):
        mark = fingerprint(" ".join(hashlib.sha256(f"{place} {word}".encode()).hexdigest()[:7] for word in range(12)))
        assert seen.find(mark) is None
        seen.add(str(place), mark)
    assert len(compared) <= 200  # of 19,900 pairs
