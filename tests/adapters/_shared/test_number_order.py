"""Keys of numbers sort as the numbers do."""

from hypothesis import example, given
from hypothesis import strategies as st

from lamina.adapters._shared.number_order import number_key

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**11), 2**11).map(lambda near: 2**62 + near),
    st.integers(-(2**11), 2**11).map(lambda near: float(2**62 + near)),
    st.integers(-(2**11), 2**11).map(lambda near: -(2**62) + near),
)


@given(NUMBERS, NUMBERS)
@example(0.0, -0.0)
@example(2**53 + 1, float(2**53))
@example(2**63 - 1, float(2**63))
@example(-(2**63), float(-(2**63)))
@example(-(2**53) - 1, -float(2**53))
@example(5e-324, 0)
def test_keys_compare_as_their_numbers_do(one, other):
    assert (number_key(one) < number_key(other)) == (one < other)
    assert (number_key(one) == number_key(other)) == (one == other)
    assert len(number_key(one)) == 10
