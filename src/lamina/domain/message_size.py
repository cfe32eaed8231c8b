"""What a message costs in tokens: everything of it that is sent, pictures by rule."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from lamina.domain.message import ContentPart, FilePart, ImagePart, Message, OpaquePart

__all__ = ["MESSAGE_OVERHEAD", "Count", "image_tokens", "message_tokens", "messages_tokens"]

Count: TypeAlias = Callable[[str], int]

MESSAGE_OVERHEAD: Final = 4
"""Tokens of the role and the marks around a message; what OpenAI's cookbook counts (3, and 1 to be safe)."""

_LOW_DETAIL: Final = 85
_TILE: Final = 170
_TILE_PIXELS: Final = 512
_UNKNOWN_TILES: Final = 4
"""Of a picture of 1024 x 1024, where the size is not known."""
_FILE: Final = 1_000
"""Where nothing is known of a file's text: about a page or two."""


def image_tokens(part: ImagePart) -> int:
    """By OpenAI's rule: 85 and 170 for each tile of 512 x 512, after scaling to fit 2048 and a short side of 768."""
    if part.detail == "low":
        return _LOW_DETAIL
    if not part.width or not part.height:
        return _LOW_DETAIL + _UNKNOWN_TILES * _TILE
    scale = min(1.0, 2048 / max(part.width, part.height))
    scale = min(scale, 768 / min(part.width * scale, part.height * scale) * scale)
    tiles = math.ceil(part.width * scale / _TILE_PIXELS) * math.ceil(part.height * scale / _TILE_PIXELS)
    return _LOW_DETAIL + tiles * _TILE


def message_tokens(message: Message, count: Count) -> int:
    """The message with its tool calls, and its overhead."""
    content = message.content
    size = count(content) if isinstance(content, str) else sum(_part_tokens(part, count) for part in content)
    for call in message.tool_calls:
        size += count(call.name) + count(call.arguments) + MESSAGE_OVERHEAD
    if message.name:
        size += count(message.name)
    return size + _extra_tokens(message.extra, count) + MESSAGE_OVERHEAD


def messages_tokens(messages: Iterable[Message], count: Count) -> int:
    """The sum over the messages."""
    return sum(message_tokens(message, count) for message in messages)


def _part_tokens(part: ContentPart, count: Count) -> int:
    if isinstance(part, ImagePart):
        return image_tokens(part)
    if isinstance(part, FilePart):
        return count(part.text) if part.text else _FILE
    if isinstance(part, OpaquePart):
        return _extra_tokens(part.extra, count)
    return count(part.text)


def _extra_tokens(extra: dict[str, Any], count: Count) -> int:
    return count(json.dumps(extra, ensure_ascii=False, default=str)) if extra else 0
