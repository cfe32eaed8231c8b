"""Packs units into chunks, greedily, up to the size."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from lamina.rag.cutting import tail_start
from lamina.rag.splitting import Splitter
from lamina.rag.units import Kind, Unit

__all__ = ["Packed", "pack"]

_NO_CONTENT: Final = frozenset({Kind.HEADING, Kind.BLANK})
_NEVER_SPLIT: Final = frozenset({Kind.CODE, Kind.RAW, Kind.ROW, Kind.PIECE, Kind.HEADING, Kind.BLANK})
"""Not taken apart for being under a heading that would otherwise stand alone."""
_NO_OVERLAP: Final = frozenset({Kind.SECTION, Kind.HEADING})
_IN_PARTS: Final = frozenset({Kind.PARAGRAPH, Kind.LIST})
"""Their last sentences or items make an overlap where the whole is too much."""
_BLANK_LINES: Final = re.compile(r"(?:[ \t\f\v]*+(?:\r\n|\r|\n))*+")


@dataclass(frozen=True, slots=True)
class Packed:
    """A chunk: `start` to `end`, of which what is before `body` stands in the one before as well.

    `first` is the first unit that shows something, and `lead` the first that is no mere heading, if there is one.
    """

    start: int
    body: int
    end: int
    first: Unit
    lead: Unit


def pack(units: Iterable[Unit], splitter: Splitter, overlap: int) -> Iterator[Packed]:
    """The units in chunks of at most the splitter's size, exactly counted.

    A unit that is larger is taken apart. What a chunk repeats of the one before are whole units, sentences or
    items at its end with at most `overlap` tokens together; nothing is repeated across a heading, nor parts of code.
    Only a single character of more tokens than the size makes a larger chunk.
    """
    packer = _Packer(splitter, overlap)
    pending = deque(units)
    while pending:
        unit = pending.popleft()
        if unit.tokens > splitter.size and unit.kind is not Kind.PIECE:
            if unit.kind is Kind.SECTION and packer.has_content:
                pending.appendleft(unit)  # behind what the chunk puts back
                yield packer.close(pending)
            else:
                pending.extendleft(reversed(splitter.finer(unit)))
        elif packer.takes(unit):
            packer.add(unit)
        elif packer.has_content or unit.kind in _NEVER_SPLIT:
            pending.appendleft(unit)
            yield packer.close(pending)
        else:  # the chunk holds nothing but a heading: it gets the beginning of what comes
            pending.extendleft(reversed(splitter.finer(unit)))
        if not pending and packer.pieces:
            yield packer.close(pending)


class _Packer:
    """The chunk that is being filled."""

    def __init__(self, splitter: Splitter, overlap: int) -> None:
        self._splitter = splitter
        self._overlap = overlap
        self._before: list[Unit] = []
        self._start = 0
        self._tokens = 0
        self.pieces: list[Unit] = []

    @property
    def has_content(self) -> bool:
        return any(piece.kind not in _NO_CONTENT for piece in self.pieces)

    def takes(self, unit: Unit) -> bool:
        """Whether there is room; in an empty chunk there is."""
        return not self.pieces or self._tokens + unit.tokens <= self._splitter.size

    def add(self, unit: Unit) -> None:
        if not self.pieces:
            self._begin(unit)
        self.pieces.append(unit)
        self._tokens += unit.tokens

    def close(self, pending: deque[Unit]) -> Packed:
        """The chunk as it is; what must go into the next one is put back in front of what is pending."""
        if pending:
            self._give_back_headings(pending)
        self._shrink(pending)
        pieces, self.pieces = self.pieces, []
        self._before = pieces
        first = next((piece for piece in pieces if piece.kind is not Kind.BLANK), pieces[0])
        lead = next((piece for piece in pieces if piece.kind not in _NO_CONTENT), first)
        return Packed(self._start, pieces[0].start, pieces[-1].end, first, lead)

    def _begin(self, unit: Unit) -> None:
        """Start with what is repeated, if there is room, and leave some for a table's header."""
        room = self._splitter.size - unit.tokens
        self._tokens = 0
        if unit.header is not None and unit.header[0] < unit.start:
            header = self._tokens_of(*unit.header)
            if header <= min(room, self._splitter.size // 2):
                self._tokens = header
        self._start = unit.start
        if unit.kind not in _NO_OVERLAP and unit.kind is not Kind.BLANK and self._before:
            budget = min(self._overlap, room - self._tokens)
            self._start = self._overlap_start(budget)
            if self._start < unit.start:
                self._tokens += self._tokens_of(self._start, unit.start)

    def _overlap_start(self, budget: int) -> int:
        """From where on the end of the chunk before is within the budget."""
        start = self._before[-1].end
        for piece in reversed(self._before):
            if piece.kind in _NO_OVERLAP:
                break
            if piece.tokens <= budget and piece is not self._before[0]:
                budget -= piece.tokens
            else:
                return self._past_blank(self._part_start(piece, start, budget))
            start = piece.start
        return self._past_blank(start)

    def _part_start(self, piece: Unit, end: int, budget: int) -> int:
        """The same inside the last piece that counts, whose end is at `end`."""
        if piece.kind is Kind.PIECE:
            return tail_start(self._splitter.text, piece.start, end, limit=budget, count=self._splitter.count)
        start = end
        parts = self._splitter.finer(piece) if piece.kind in _IN_PARTS and budget > 0 else []
        for part in reversed(parts[1:]):
            if part.tokens > budget:
                break
            budget -= part.tokens
            start = part.start
        return start

    def _past_blank(self, start: int) -> int:
        """Past blank lines, but not past an indentation."""
        end = self._before[-1].end
        blank = _BLANK_LINES.match(self._splitter.text, start, end)
        after = start if blank is None else blank.end()
        return end if self._splitter.text[after:end].isspace() else after

    def _give_back_headings(self, pending: deque[Unit]) -> None:
        """A heading at the end belongs to what follows, unless it is all that there is."""
        kept = len(self.pieces)
        while kept and self.pieces[kept - 1].kind in _NO_CONTENT:
            kept -= 1
        while kept < len(self.pieces) and self.pieces[kept].kind is Kind.BLANK:
            kept += 1
        if 0 < kept < len(self.pieces) and any(piece.kind not in _NO_CONTENT for piece in self.pieces[:kept]):
            pending.extendleft(reversed(self.pieces[kept:]))
            del self.pieces[kept:]

    def _shrink(self, pending: deque[Unit]) -> None:
        """See to the exact size: a text may have more tokens than its parts have together."""
        while self._tokens_of(self._start, self.pieces[-1].end) > self._splitter.size:
            if self._start < self.pieces[0].start:
                self._start = self.pieces[0].start
            elif len(self.pieces) > 1:
                pending.appendleft(self.pieces.pop())
            elif self.pieces[0].kind is Kind.SECTION:
                parts = self._splitter.finer(self.pieces[0])
                self.pieces = parts[:-1] or parts
                if len(parts) > 1:
                    pending.appendleft(parts[-1])
            else:
                break  # counted exactly before: a single character

    def _tokens_of(self, start: int, end: int) -> int:
        return self._splitter.count(self._splitter.text[start:end])
