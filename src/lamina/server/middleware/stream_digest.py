"""What tells one streamed body from another: a digest of what was read of it, made on the way."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from starlette.types import Message, Receive

__all__ = ["StreamDigest"]

_MARK: Final = re.compile(r"(whole|begun) ([0-9]{1,18}) ([0-9a-f]{64})")


class StreamDigest:
    """Stands between a body and whoever reads it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._digest = hashlib.sha256()
        self._size = 0
        self._is_whole = False

    @property
    def mark(self) -> str:
        """What was read so far: whether that is all, how many bytes, and their SHA-256.

        An answer that was given before the end depends on nothing behind what was read.
        """
        return f"{'whole' if self._is_whole else 'begun'} {self._size} {self._digest.hexdigest()}"

    async def receive(self) -> Message:
        """The next message, noted."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._note(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        return message

    async def repeats(self, mark: str) -> bool:
        """Whether this body, of which nothing was read yet, is alike as far as the mark tells; it reads no further.

        Raises:
            HTTPException: 413, it is longer than it may be.
        """
        found = _MARK.fullmatch(mark)
        if found is None:
            return False
        is_whole, size = found[1] == "whole", int(found[2])
        while not self._is_whole and (self._size < size or (is_whole and self._size == size)):
            message = await self._receive()
            if message["type"] != "http.request":
                return False
            piece = message.get("body", b"")
            self._note(piece if is_whole else piece[: size - self._size])
            self._is_whole = not message.get("more_body", False)
        same = (self._size, self._digest.hexdigest()) == (size, found[3])
        return same and (self._is_whole or not is_whole)

    def _note(self, piece: bytes) -> None:
        self._digest.update(piece)
        self._size += len(piece)
