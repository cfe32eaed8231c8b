"""Reading fields of mappings that came from outside: each is refused by its full name if it is not what it must be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lamina.domain.message import Message
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "as_mapping",
    "as_messages",
    "data_url",
    "items_of",
    "json_text",
    "optional_text",
    "parse_data_url",
    "rest_of",
    "text_of",
]

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


def json_text(field: str, value: object) -> str:
    """The value as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(field, "holds what JSON cannot carry, or is nested too deep", "Give JSON values.") from None


def as_messages(messages: object) -> list[Message]:
    """The messages, if that is what they all are."""
    found = list(items_of("messages", messages))
    for field, message in found:
        if not isinstance(message, Message):
            raise InvalidType(field, f"must be a Message, not {type(message).__name__}", "Read it with from_openai.")
    return [message for _, message in found]


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
