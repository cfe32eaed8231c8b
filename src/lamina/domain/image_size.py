"""How large a picture is, read from the first bytes of its file: PNG, JPEG, GIF and WebP."""

from __future__ import annotations

import base64
import binascii
from typing import Final

__all__ = ["image_size"]

_HEAD: Final = 40
"""Base64 characters that hold what is needed of every kind but JPEG."""

_JPEG_HEAD: Final = 1_048_576
"""Base64 characters of a JPEG that are searched: its size comes after what a camera adds, thumbnails among it."""

_MARK: Final = 0xFF
"""What a JPEG segment begins with, and may be padded with."""
_WITHOUT_LENGTH: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The JPEG segments that state the size."""


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of the picture with these bytes in base64; None if they cannot be told."""
    head = _decoded(data[:_HEAD])
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = _number(head, 16, 4, "big"), _number(head, 20, 4, "big")
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = _number(head, 6, 2), _number(head, 8, 2)
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp(head)
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg(_decoded(data[:_JPEG_HEAD]))
    else:
        return None
    return size if min(size) > 0 else None


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8 ":
        return _number(head, 26, 2) & 0x3FFF, _number(head, 28, 2) & 0x3FFF
    if kind == b"VP8L":
        bits = _number(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return _number(head, 24, 3) + 1, _number(head, 27, 3) + 1
    return 0, 0


def _jpeg(head: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(head) and head[place] == _MARK:
        marker = head[place + 1]
        if marker in _FRAMES:
            return _number(head, place + 7, 2, "big"), _number(head, place + 5, 2, "big")
        if marker == _MARK:
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        else:
            place += 2 + max(2, _number(head, place + 2, 2, "big"))
    return 0, 0


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _number(head: bytes, start: int, length: int, order: str = "little") -> int:
    piece = head[start : start + length]
    if len(piece) < length:
        return 0
    return int.from_bytes(piece, "big" if order == "big" else "little")
