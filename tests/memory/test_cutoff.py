from __future__ import annotations

import pytest

from lamina.errors import InvalidInput, InvalidType
from lamina.memory.cutoff import cut_off, read_min_match
from lamina.memory.fusion import least_match
from lamina.providers.builtin import BuiltinEmbedder
from lamina.providers.resilience import BorrowedEmbedder
from lamina.testing import HashingEmbedder


@pytest.mark.parametrize(
    ("asked", "matches", "level", "expected"),
    [
        (None, [0.1, 0.9], 0.34, 0),
        (0.5, [0.1, 0.9], 0.34, 0.5),
        ("auto", [0.1, 0.9], 0.34, 0.45),
        ("auto", [0.1, 0.34], 0.34, 0.17),
        ("auto", [0.1, 0.339], 0.34, 0.34),
        ("auto", [], 0.34, 0.34),
        ("auto", [0.01], None, 0),
    ],
)
def test_nothing_is_left_below_the_level_and_above_it_what_compares_with_the_best(asked, matches, level, expected):
    assert cut_off(asked, matches, level) == expected


def test_a_cut_off_is_a_figure_or_auto_and_zero_is_not_left_out():
    given = ((None, None), (None, "auto"), (None, 0.3), (0, "auto"), ("auto", 0.3))
    assert [read_min_match(*each) for each in given] == [None, "auto", 0.3, 0, "auto"]
    for wrong in ("strict", 1.5, -0.1, True, float("nan"), [0.5]):
        with pytest.raises((InvalidInput, InvalidType), match="min_match"):
            read_min_match(wrong)


def test_the_level_is_the_embedders_own_for_the_script_of_the_query():
    own, other = BuiltinEmbedder(), HashingEmbedder()
    assert least_match(BorrowedEmbedder(own), "Where is the key?", with_text=True) == pytest.approx(0.34)
    assert least_match(own, "钥匙在哪里", with_text=True) == pytest.approx(0.298)
    assert least_match(own, "Where is the key?", with_text=False) == pytest.approx(0.4)
    assert least_match(other, "Where is the key?", with_text=True) == pytest.approx(0.18)
