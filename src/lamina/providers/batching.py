"""Cutting a list of texts into requests that a provider takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["approximate_tokens", "batches", "cut_to_tokens"]

_BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token: English has about 4.5 and Chinese about 3, so this counts rather too many."""


def approximate_tokens(text: str) -> int:
    """An upper estimate of the tokens in ordinary text; dense strings such as hashes may have more."""
    return len(text.encode()) // _BYTES_PER_TOKEN + 1


def cut_to_tokens(text: str, limit: int) -> str:
    """The beginning of the text that has at most about `limit` tokens."""
    if approximate_tokens(text) <= limit:
        return text
    return text.encode()[: (limit - 1) * _BYTES_PER_TOKEN].decode(errors="ignore")


def batches(texts: Sequence[str], *, max_items: int, max_tokens: int) -> Iterator[list[str]]:
    """The texts in order, in lists within both limits; a text above `max_tokens` goes alone."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = approximate_tokens(text)
        if batch and (len(batch) == max_items or tokens + size > max_tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch
