"""Bytes as values: what a fuzzer changes is made into texts and JSON that come near to what a parser knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vocabularies import ODD

NUMBERS = [
    0,
    1,
    -1,
    2,
    63,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
    10**400,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e308,
]
NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
DEEPEST = 6


class Feed:
    """Reads bytes as choices; when they are used up, each choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def choice(self, among: Sequence[Any]) -> Any:
        return among[self.byte() % len(among)]

    def rest(self) -> bytes:
        return self._data[self._at :]

    def text(self, words: Sequence[str] = ()) -> str:
        """Words, odd characters and what the bytes say; sometimes one of them very often."""
        pieces: list[str] = []
        for _ in range(self.byte() % 12):
            match self.byte() % 8:
                case 0 | 1 | 2 | 3 if words:
                    pieces.append(self.choice(words))
                case 4 | 5:
                    pieces.append(self.choice(ODD))
                case 6:
                    pieces.append(chr((self.byte() << 8) | self.byte()))
                case 7:
                    pieces.append(self.choice(words or ODD) * self.choice((3, 40, 700)))
                case _:
                    pieces.append(chr(32 + self.byte() % 95))
        return "".join(pieces)

    def value(self, words: Sequence[str], depth: int = 0) -> Any:
        """JSON, or what a caller in Python may give in its place; its names are mostly those that are known."""
        kind = self.byte() % (16 if depth < DEEPEST else 8)
        match kind:
            case 0:
                return None
            case 1:
                return self.choice((True, False))
            case 2:
                return self.choice(NUMBERS)
            case 3:
                return self.choice(NO_NUMBERS)
            case 4 | 5:
                return self.choice(words)
            case 6 | 7:
                return self.text(words)
            case 8 | 9 | 10:
                return [self.value(words, depth + 1) for _ in range(self.byte() % 5)]
            case _:
                return {self.name(words): self.value(words, depth + 1) for _ in range(self.byte() % 7)}

    def name(self, words: Sequence[str]) -> str:
        return self.choice(words) if self.byte() % 8 else self.text()

    def mapping(self, words: Sequence[str]) -> dict[str, Any]:
        return {self.name(words): self.value(words, 1) for _ in range(1 + self.byte() % 8)}

    def mutated(self, seed: bytes) -> bytes:
        """The seed with some bytes turned, cut out, doubled or put in."""
        data = bytearray(seed)
        for _ in range(1 + self.byte() % 6):
            place = ((self.byte() << 8) | self.byte()) * (len(data) + 1) >> 16
            length = self.byte() % 64
            match self.byte() % 5:
                case 0:
                    data[place : place + 1] = bytes([self.byte()])
                case 1:
                    del data[place : place + length]
                case 2:
                    data[place:place] = data[place : place + length] * 3
                case 3:
                    data[place:place] = self.text().encode("utf-8", "surrogatepass")
                case _:
                    del data[place:]
        return bytes(data)
