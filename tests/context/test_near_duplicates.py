from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.context.near_duplicates import MAX_CHARS, fingerprint, may_resemble, resemblance

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


@given(st.text(max_size=200), st.text(max_size=200), st.floats(0.5, 1))
def test_the_quick_test_rules_out_nothing_that_resembles(first, second, least):
    one, other = fingerprint(first), fingerprint(second)
    if one and other:
        degree = resemblance(one, other)
        assert 0 <= degree <= 1
        assert degree == resemblance(other, one)
        if degree >= least:
            assert may_resemble(one, other, least)
