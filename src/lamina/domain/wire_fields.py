"""Reading fields of mappings that came from outside: each is refused by its full name if it is not what it must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lamina.errors import InvalidInput, InvalidType

__all__ = ["as_mapping", "data_url", "items_of", "optional_text", "parse_data_url", "rest_of", "text_of"]

_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")


def as_mapping(field: str, value: object) -> Mapping[str, Any]:
    """The value, if it is a mapping with text for keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidType(field, f"must be a mapping, not {type(value).__name__}", "Give a dict.")
    return value


def items_of(field: str, value: object) -> Iterator[tuple[str, Any]]:
    """The items of a list, each with its full name."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise InvalidType(field, f"must be a list, not {type(value).__name__}", "Give a list.")
    return ((f"{field}[{place}]", item) for place, item in enumerate(value))


def text_of(field: str, value: Mapping[str, Any], key: str) -> str:
    """The text under the key, which must be there."""
    text = value.get(key)
    if not isinstance(text, str):
        problem = "is missing" if text is None else f"must be text, not {type(text).__name__}"
        raise InvalidInput(f"{field}.{key}", problem, "Give a str.")
    return text


def optional_text(field: str, value: Mapping[str, Any], key: str) -> str | None:
    """The text under the key, or None if there is none."""
    return None if value.get(key) is None else text_of(field, value, key)


def rest_of(value: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Everything under other keys."""
    return {key: item for key, item in value.items() if key not in known}


def parse_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the base64 of a `data:` address, or None if it is another address."""
    match = _DATA_URL.match(url)
    return None if match is None else (match[1], url[match.end() :])


def data_url(media_type: str | None, data: str) -> str:
    """The `data:` address of these bytes in base64."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"
