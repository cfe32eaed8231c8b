"""Cosines: the plain values, and equal ones for equal vectors."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from lamina.domain.closeness import cosines


def test_a_cosine_depends_on_direction_and_not_on_length():
    values = cosines([3.0, 4.0], [[6.0, 8.0], [-0.3, -0.4], [4.0, -3.0], [0.0, 9.0]])
    assert values == pytest.approx([1.0, -1.0, 0.0, 0.8])


def test_a_zero_vector_is_similar_to_nothing():
    assert cosines([1.0, 0.0], [[0.0, 0.0], [1.0, 0.0]]) == [0.0, 1.0]
    assert cosines([0.0, 0.0], [[1.0, 0.0]]) == [0.0]


def test_no_cosine_leaves_its_range():
    vectors = [array("f", [number / 7] * 384) for number in range(1, 60)]
    values = [value for vector in vectors for value in cosines(vector, vectors)]
    assert max(values) == 1.0
    assert values == pytest.approx([1.0] * len(values))


def test_there_are_none_without_vectors():
    assert cosines([1.0], []) == []


def test_equal_vectors_have_equal_cosines_wherever_they_stand():
    random = Random(7)
    query, same, *others = (array("f", [random.gauss(0, 1) for _ in range(383)]) for _ in range(70))
    matrix = [same if place % 3 else others[place % len(others)] for place in range(202)]
    values = {value for value, vector in zip(cosines(query, matrix), matrix, strict=True) if vector is same}
    assert len(values) == 1
