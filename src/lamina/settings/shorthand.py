"""Texts that stand for a whole table of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["SHORTHAND", "preset_table", "provider_table"]


def preset_table(value: Any) -> Any:
    """`news` as `{"preset": "news"}`; what is no text stays as it is."""
    return {"preset": value} if isinstance(value, str) else value


def provider_table(value: Any) -> Any:
    """`openai:gpt-4o` as the table of provider and model; what is no text stays as it is."""
    if not isinstance(value, str):
        return value
    provider, _, model = value.partition(":")
    return {"provider": provider} | ({"model": model} if model else {})


SHORTHAND: Final[Mapping[str, Callable[[Any], Any]]] = {
    "scoring": preset_table,
    "embedding": provider_table,
    "model": provider_table,
}
"""Key of a table → how a text in its place is read."""
