"""The pieces that a text is taken apart into before it is packed into chunks. All offsets are into that text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Count", "Kind", "Line", "Unit", "lines_of", "measure"]

Count: TypeAlias = Callable[[str], int]

MAX_CHARS_PER_TOKEN: Final = 32
"""A text of more characters than this times the limit is over the limit without being counted.

No vocabulary is that good at prose; a run of spaces may be, and is then split for nothing.
"""

_LINE: Final = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)?")


class Kind(Enum):
    """What a unit is, from the coarse to the fine."""

    SECTION = auto()
    HEADING = auto()
    LIST = auto()
    ITEM = auto()
    QUOTE = auto()
    TABLE = auto()
    CODE = auto()
    RAW = auto()
    """Kept whole where it fits, and split by lines: HTML, front matter."""
    PARAGRAPH = auto()
    ROW = auto()
    SENTENCE = auto()
    LINE = auto()
    PIECE = auto()
    """Cut by tokens alone."""
    BLANK = auto()


class Line(NamedTuple):
    """A line from `start` to `end`, its break included; what its container leaves of it is from `at` to `stop`."""

    start: int
    at: int
    stop: int
    end: int


@dataclass(slots=True)
class Unit:
    """A span that is kept whole if it fits into a chunk.

    `path` are the titles above it, outermost first, its own (`title`) not among them.
    """

    kind: Kind
    start: int
    end: int
    tokens: int = 0
    path: tuple[str, ...] = ()
    title: str = ""
    level: int = 0
    header: tuple[int, int] | None = None
    """Of a table's later rows: where the table's header is."""
    parts: list[Unit] = field(default_factory=list)
    """Of a section."""
    lines: list[Line] | None = None
    """Of a block inside a quote or a list item, whose lines begin with what belongs to the container."""
    depth: int = 0
    """In how many containers it stands."""

    @property
    def full_path(self) -> tuple[str, ...]:
        """The titles above it and its own."""
        return (*self.path, self.title) if self.title else self.path


def lines_of(text: str, start: int, end: int) -> Iterator[Line]:
    """The lines of the span. Only CR, LF and both end one: form feeds and the like do not."""
    while start < end:
        found = _LINE.match(text, start, end)
        after = end if found is None else found.end()
        stop = after
        if text[stop - 1] == "\n":
            stop -= 1
        if stop > start and text[stop - 1] == "\r":
            stop -= 1
        yield Line(start, start, stop, after)
        start = after


def measure(text: str, unit: Unit, limit: int, count: Count) -> Unit:
    """Give the unit its size: the exact one, or one above the limit if it is certainly above."""
    if unit.end - unit.start > limit * MAX_CHARS_PER_TOKEN:
        unit.tokens = limit + 1
    else:
        unit.tokens = count(text[unit.start : unit.end])
    return unit
