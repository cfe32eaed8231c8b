"""What a backend cannot evaluate is found wherever it stands in a condition."""

import pytest

from lamina.adapters._shared.gaps import gap_of_tokens
from lamina.domain.filters import And, Not, Or, Where

FINE = Where("a").eq(1)


@pytest.mark.parametrize("gap", [Where("n").gt(1), Where("n").lte("x"), Where("t").contains("part")])
@pytest.mark.parametrize(
    "around", [lambda gap: gap, Not, lambda gap: And((FINE, gap)), lambda gap: Or((FINE, Not(gap)))]
)
def test_a_comparison_that_tokens_do_not_answer_is_a_gap(gap, around):
    assert gap_of_tokens(around(gap), "Redis").startswith("Redis does not")


@pytest.mark.parametrize(
    "condition",
    [FINE, And(()), Or(()), Not(Where("a").ne("x")), Where("l").contains(3), Where("a").is_in([1, "x"])],
    ids=str,
)
def test_what_tokens_answer_is_none(condition):
    assert gap_of_tokens(condition, "Redis") is None
