from __future__ import annotations

import asyncio

import numpy as np
import pytest

from lamina.errors import InvalidType, ProviderError, ProviderUnavailable
from lamina.ports.reranker import reads
from lamina.providers.callable_reranker import CallableReranker, as_reranker


def lengths(query: str, texts: list[str]) -> list[float]:
    return [len(text) / 10 for text in texts]


async def lengths_later(query: str, texts: list[str]) -> list[float]:
    return lengths(query, texts)


class Own:
    """A reranker as the port has it."""

    provider, model = "own", "m"
    is_closed = False

    def reads(self, query: str, texts: list[str]) -> bool:
        return query not in texts

    async def score(self, query: str, texts: list[str]) -> list[float]:
        return lengths(query, texts)

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    "thing",
    [
        lengths,
        lengths_later,
        lambda query, texts: (len(text) / 10 for text in texts),
        lambda query, texts: np.array([0.1, 0.2]),
        Own(),
    ],
)
async def test_whatever_gives_one_number_per_text_is_a_reranker(thing: object) -> None:
    assert await as_reranker(thing).score("q", ["a", "bc"]) == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("answer", [None, 0.5, "ab", [0.1], [0.1, 2], [0.1, -0.1], [0.1, float("nan")], [True, 0.1]])
async def test_any_other_answer_is_refused(answer: object) -> None:
    with pytest.raises(ProviderError, match="it answered"):
        await as_reranker(lambda query, texts: answer).score("q", ["a", "b"])


async def test_what_takes_too_long_or_is_down_is_given_up_and_then_not_called() -> None:
    calls = []

    async def hang(query: str, texts: list[str]) -> list[float]:
        calls.append(query)
        await asyncio.sleep(60)
        return []

    reranker = CallableReranker(hang, provider="slow", model="m", seconds=0.01)
    for _ in range(3):
        with pytest.raises(ProviderUnavailable, match="within"):
            await reranker.score("q", ["a"])
    with pytest.raises(ProviderUnavailable, match="not called now"):
        await reranker.score("q", ["a"])
    assert len(calls) == 3


@pytest.mark.parametrize("owned", [True, False])
async def test_a_reranker_keeps_its_names_and_languages_and_is_closed_only_if_owned(owned: bool) -> None:
    own = Own()
    made = as_reranker(own, owned=owned)
    assert (made.provider, made.model) == ("own", "m")
    assert [reads(each, "q", ["q"]) for each in (made, as_reranker(lengths))] == [False, True]
    assert reads(made, "q", ["other"])
    await made.close()
    assert own.is_closed is owned


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidType, match="rerank"):
        as_reranker("cross-encoder")
