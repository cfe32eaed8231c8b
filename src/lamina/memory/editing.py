"""What an edit of a memory may change, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lamina.domain.text import clean
from lamina.domain.validation import check_ttl, clean_metadata
from lamina.errors import InvalidInput
from lamina.memory.inputs import read_instant, read_layer, read_tags, read_texts, read_trust
from lamina.ports.memory_adapter import ACCESS_FIELDS, UPDATABLE

__all__ = ["GUARDED", "read_changes"]

_EDITABLE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": lambda value: clean(value) if isinstance(value, str) else value,
    "layer": read_layer,
    "tags": lambda value: read_tags("tags", value),
    "metadata": clean_metadata,
    "relevance": lambda value: value,
    "confidence": lambda value: value,
    "ttl": check_ttl,
    "occurred_at": lambda value: read_instant("occurred_at", value),
    "valid_until": lambda value: read_instant("valid_until", value),
    "superseded_by": lambda value: value,
    "source": lambda value: value,
    "trust": read_trust,
    "derived_from": lambda value: read_texts("derived_from", value),
}
"""The fields that an edit may change, and how each is read."""

GUARDED: Final = UPDATABLE - ACCESS_FIELDS - {"embedding"}
"""The fields that an edit takes over from what `on_before_store` returns."""


def read_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes as they are to be stored, each by itself.

    Raises:
        InvalidInput: there are none, or a field cannot be edited, or its value cannot be.
        InvalidType: a value has a type that cannot be stored.
    """
    read = {field: _read_change(field, value) for field, value in changes.items()}
    if not read:
        raise InvalidInput("changes", "are empty", f"Name at least one of: {', '.join(_EDITABLE)}.")
    return read


def _read_change(field: str, value: Any) -> Any:
    if field not in _EDITABLE:
        raise InvalidInput(field, "cannot be edited", f"Use: {', '.join(_EDITABLE)}.")
    return _EDITABLE[field](value)
