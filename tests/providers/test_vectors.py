from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import EmbeddingDimensionError, InvalidInput, InvalidType, ProviderError
from lamina.providers.vectors import checked_vectors, embed_checked


class Model:
    """Embeds by length, and remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [[float(len(text)), 1.0] for text in texts]


async def test_each_text_gets_its_vector_in_order() -> None:
    assert [list(v) for v in await embed_checked("p", ["a", "bbb"], Model())] == [[1.0, 1.0], [3.0, 1.0]]


async def test_a_blank_text_is_not_sent_and_gets_a_zero_vector_of_the_same_length() -> None:
    model = Model()
    vectors = await embed_checked("p", ["a", "\n\t", "bb", ""], model)
    assert model.calls == [["a", "bb"]]
    assert [list(v) for v in vectors] == [[1.0, 1.0], [0.0, 0.0], [2.0, 1.0], [0.0, 0.0]]


async def test_nothing_but_blank_texts_is_refused_and_no_text_is_no_call() -> None:
    model = Model()
    with pytest.raises(InvalidInput, match="texts"):
        await embed_checked("p", [" ", ""], model)
    assert await embed_checked("p", [], model) == []
    assert model.calls == []


async def test_a_lone_surrogate_or_nul_never_reaches_the_model() -> None:
    model = Model()
    await embed_checked("p", ["a\ud83d", "b\x00"], model)
    assert model.calls == [["a\ufffd", "b\ufffd"]]


@pytest.mark.parametrize("texts", ["one text", b"bytes", [1], [None], ["a", b"b"]])
async def test_what_is_no_list_of_texts_is_refused(texts: Any) -> None:
    with pytest.raises(InvalidType, match="texts"):
        await embed_checked("p", texts, Model())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([[1.0, 2.0]], "1 vectors for 2"),
        ([[1.0], [2.0], [3.0]], "3 vectors for 2"),
        ([[1.0], [float("nan")]], "vector 1 holds a number that is not finite"),
        ([[1.0], [float("-inf")]], "vector 1 holds a number that is not finite"),
        ([[1.0], [1e300]], "not finite"),
        ([[0.0, 0.0], [1.0, 0.0]], "vector 0 is all zero"),
        ([[1.0], [1e-60]], "vector 1 is all zero"),
        ([[1.0], []], "no list of numbers"),
        ([[1.0], None], "no list of numbers"),
        ([["1"], ["2"]], "no list of numbers"),
        ([[True], [True]], "no list of numbers"),
        ([[[1.0]], [[2.0]]], "no list of numbers"),
        ([[1.0, [2.0]], [1.0, 2.0]], "no list of numbers"),
        (None, "NoneType in place of vectors"),
        ([1.0, 2.0], "no list of numbers"),
    ],
)
def test_an_answer_that_is_not_one_good_vector_per_text_is_refused(answer: Any, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem):
        checked_vectors("p", answer, 2)


def test_vectors_of_several_lengths_or_of_another_than_asked_for_are_refused() -> None:
    with pytest.raises(EmbeddingDimensionError, match="1 dimensions, not 2"):
        checked_vectors("p", [[1.0, 2.0], [1.0]], 2)
    with pytest.raises(EmbeddingDimensionError, match="2 dimensions, not 3"):
        checked_vectors("p", [[1.0, 2.0]], 1, dimensions=3)


@given(st.lists(st.floats(-1e6, 1e6, width=32).filter(lambda x: abs(x) > 1e-3), min_size=1, max_size=8))
def test_any_container_of_numbers_becomes_the_same_array(numbers: list[float]) -> None:
    forms = [numbers, tuple(numbers), np.array(numbers, np.float32), np.array(numbers, np.float64), array("d", numbers)]
    expected = array("f", numbers)
    assert checked_vectors("p", iter(forms), len(forms)) == [expected] * len(forms)
