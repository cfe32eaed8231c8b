"""What a message costs in tokens: everything of it that is sent; pictures and files by rule, never by their bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from lamina.domain.image_size import image_size
from lamina.domain.message import ContentPart, FilePart, ImagePart, Message, OpaquePart

__all__ = ["MESSAGE_OVERHEAD", "Count", "image_tokens", "message_tokens", "messages_tokens"]

Count: TypeAlias = Callable[[str], int]

MESSAGE_OVERHEAD: Final = 4
"""Tokens of the role and the marks around a message; what OpenAI's cookbook counts (3, and 1 to be safe)."""

_LOW_DETAIL: Final = 85
_TILE: Final = 170
_TILE_PIXELS: Final = 512
_PIXELS_PER_TOKEN: Final = 750
_LONG_SIDE: Final = 1568
_UNKNOWN_SIDE: Final = 1024
"""A picture of which the size is not known counts as one of this width and height."""

_FILE: Final = 1_000
"""The least that a file costs where nothing is known of its text: about a page."""
_BYTES_PER_TOKEN: Final = 50
"""And of a large one: between a PDF of text (about 10) and one of scanned pages (about 500)."""

_BULK: Final = re.compile(r"(?:data:[\w.+/-]+;base64,)?[\w+/=-]{1024,}")
"""Bytes in base64, in a field that Lamina does not know."""


def image_tokens(part: ImagePart) -> int:
    """By the dearer of two published rules, so that the budget holds at either provider.

    OpenAI ("Images and vision", cost of gpt-4o and gpt-4.1): 85 at low detail; else 85, and 170 for each tile of
    512 x 512, after shrinking to fit 2048 x 2048 and then to a short side of 768. Anthropic ("Vision"):
    width x height / 750, after shrinking to a long side of 1568.
    """
    if part.detail == "low":
        return _LOW_DETAIL
    width, height = _size(part)
    return max(_tiled(width, height), _by_area(width, height))


def message_tokens(message: Message, count: Count) -> int:
    """The message with its tool calls, and its overhead."""
    content = message.content
    size = count(content) if isinstance(content, str) else sum(_part_tokens(part, count) for part in content)
    for call in message.tool_calls:
        size += count(call.name) + count(call.arguments) + MESSAGE_OVERHEAD + _extra_tokens(call.extra, count)
    if message.name:
        size += count(message.name)
    return size + _extra_tokens(message.extra, count) + MESSAGE_OVERHEAD


def messages_tokens(messages: Iterable[Message], count: Count) -> int:
    """The sum over the messages."""
    return sum(message_tokens(message, count) for message in messages)


def _size(part: ImagePart) -> tuple[int, int]:
    if part.width and part.height and min(part.width, part.height) > 0:
        return part.width, part.height
    read = image_size(part.data) if part.data else None
    return read or (_UNKNOWN_SIDE, _UNKNOWN_SIDE)


def _tiled(width: float, height: float) -> int:
    for limit, side in ((2048, max), (768, min)):
        scale = min(1.0, limit / side(width, height))
        width, height = width * scale, height * scale
    return _LOW_DETAIL + math.ceil(width / _TILE_PIXELS) * math.ceil(height / _TILE_PIXELS) * _TILE


def _by_area(width: int, height: int) -> int:
    scale = min(1.0, _LONG_SIDE / max(width, height))
    return math.ceil(width * scale * height * scale / _PIXELS_PER_TOKEN)


def _part_tokens(part: ContentPart, count: Count) -> int:
    if isinstance(part, ImagePart):
        size = image_tokens(part)
    elif isinstance(part, FilePart):
        size = _file_tokens(part, count)
    elif isinstance(part, OpaquePart):
        size = count(part.kind)
    else:
        size = count(part.text)
    return size + _extra_tokens(part.extra, count)


def _file_tokens(part: FilePart, count: Count) -> int:
    size = count(part.name) if part.name else 0
    return size + (count(part.text) if part.text else _bulk_tokens(part.data or ""))


def _bulk_tokens(data: str) -> int:
    return max(_FILE, len(data) * 3 // 4 // _BYTES_PER_TOKEN)


def _extra_tokens(extra: Mapping[str, Any], count: Count) -> int:
    """Of what a provider added: names and values, each with its marks; without recursion, however deep it is."""
    if not extra:
        return 0
    texts: list[str] = []
    size = 0
    waiting: list[Any] = [extra]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            texts += map(str, value)
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, str) and _BULK.fullmatch(value):
            size += _bulk_tokens(value)
        else:
            texts.append(str(value))
    return size + count(" ".join(texts)) + len(texts)
