"""The rule for texts going into a model and for vectors coming out of one, the same for every embedder.

What goes in is clean, not blank and never an empty list. What comes out is one vector per text, all of one
length, of finite numbers that are not all zero: anything else is an error, because a wrong vector
that is stored looks like any other.
"""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from lamina.domain.memory import Vector
from lamina.domain.text import clean
from lamina.errors import EmbeddingDimensionError, InvalidInput, InvalidType, ProviderError

__all__ = ["BatchEmbed", "check_texts", "checked_vectors", "embed_checked"]

BatchEmbed: TypeAlias = Callable[[list[str]], Awaitable[Iterable[Any]]]
"""Embeds a non-empty list of clean texts that are not blank; its answer is not trusted."""


async def embed_checked(
    provider: str, texts: Sequence[str], embed: BatchEmbed, *, dimensions: int | None = None
) -> list[Vector]:
    """One checked vector per text, in order.

    Blank texts are not sent: theirs is a zero vector, which is similar to nothing, so that one of them does
    not spoil the batch of the others.

    Raises:
        InvalidInput: every text is blank.
        ProviderError: the answer is not one good vector per text.
    """
    cleaned = check_texts(texts)
    if not cleaned:
        return []
    wanted = [text for text in cleaned if text.strip()]
    if not wanted:
        raise InvalidInput("texts", "hold nothing but white space", "Embed a text with a visible character.")
    vectors = checked_vectors(provider, await embed(wanted), len(wanted), dimensions=dimensions)
    zeros = bytes(4 * len(vectors[0]))
    remaining = iter(vectors)
    return [next(remaining) if text.strip() else array("f", zeros) for text in cleaned]


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as UTF-8 can carry them; refuses a single str and whatever is not text."""
    if isinstance(texts, str | bytes):
        raise InvalidType("texts", "must be a list of texts, not one text", "Put it into a list.")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidType("texts", f"must hold texts, not {type(text).__name__}", "Give each as a str.")
    return [clean(text) for text in texts]


def checked_vectors(provider: str, answer: Iterable[Any], count: int, *, dimensions: int | None = None) -> list[Vector]:
    """The answer as `array("f")`s, if it is `count` good vectors, of `dimensions` numbers if that is given.

    Raises:
        EmbeddingDimensionError: a vector has another length than asked for, or than the first one.
        ProviderError: there are more or fewer vectors than texts, or one is no list of finite numbers, or all zero.
    """
    try:
        raw = list(answer)
    except TypeError as error:
        raise ProviderError(provider, f"it answered {type(answer).__name__} in place of vectors") from error
    if len(raw) != count:
        raise ProviderError(provider, f"it answered {len(raw)} vectors for {count} texts")
    vectors: list[Vector] = list(_at_once(raw))
    if vectors and (dimensions is None or len(vectors[0]) == dimensions):
        return vectors
    vectors = []
    for position, each in enumerate(raw):
        vector = _vector(provider, each, position)
        expected = dimensions or len(vectors[0] if vectors else vector)
        if len(vector) != expected:
            raise EmbeddingDimensionError(expected, len(vector))
        vectors.append(vector)
    return vectors


def _at_once(raw: list[Any]) -> Iterator[array[float]]:
    """The vectors of an answer that is 32-bit floats of one length throughout, as most are; nothing of any other."""
    import numpy as np

    if any(type(each) is not np.ndarray or each.dtype != np.float32 or each.ndim != 1 for each in raw):
        return
    if len({len(each) for each in raw}) != 1:
        return
    rows = np.stack(raw) if len(raw) > 1 else raw[0][None]  # stacking takes longer than all the rest of one
    if rows.shape[1] and np.isfinite(rows).all() and rows.any(axis=1).all():
        yield from (array("f", row.tobytes()) for row in rows)


def _vector(provider: str, raw: Any, position: int) -> array[float]:
    import numpy as np

    try:
        numbers = np.asarray(raw)
    except Exception as error:  # the edge to somebody else's arrays, whose conversion may raise anything
        raise ProviderError(provider, f"vector {position} is no list of numbers") from error
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "fiu":
        raise ProviderError(provider, f"vector {position} is no list of numbers")
    # Checked as stored: what a float32 cannot hold is infinite or zero only after the conversion.
    with np.errstate(over="ignore"):
        numbers = numbers.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ProviderError(provider, f"vector {position} holds a number that is not finite")
    if not numbers.any():
        raise ProviderError(provider, f"vector {position} is all zero")
    return array("f", numbers.tobytes())
