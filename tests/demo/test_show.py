from __future__ import annotations

import pytest

from lamina.demo.show import bar


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "      "), (0.5, "███   "), (1.0, "██████"), (0.75, "████▌ "), (-1.0, "      "), (2.0, "██████")],
)
def test_a_bar_is_six_characters_wide_and_as_full_as_its_value(value, expected):
    assert bar(value) == expected
