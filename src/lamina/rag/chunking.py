"""Chunks of a text: pure, exact in their offsets, linear in the text's length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from lamina.domain.text import is_blank
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput
from lamina.rag.cutting import windows
from lamina.rag.markdown import blocks
from lamina.rag.packing import Packed, pack
from lamina.rag.splitting import Splitter
from lamina.rag.units import Count, Kind, Unit, lines_of, measure

__all__ = ["CHUNKING_VERSION", "MAX_CHUNK_SIZE", "Chunk", "ChunkOptions", "ChunkStrategy", "chunk_text"]

CHUNKING_VERSION: Final = 1
"""Counts up when the same text and options give other chunks than before."""

MAX_CHUNK_SIZE: Final = 65_536
MAX_HEADER: Final = 4_096
"""Characters of a table's header that are repeated."""


class ChunkStrategy(StrEnum):
    """What is kept together first. What is too large for a chunk is split finer, in the order of this list."""

    RECURSIVE = "recursive"
    """Sections, then blocks such as paragraphs, lists and code, then sentences."""
    PARAGRAPH = "paragraph"
    """Blocks, whatever the headings say."""
    SENTENCE = "sentence"
    FIXED = "fixed"
    """So many tokens, whatever stands there."""


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """How a text is chunked; `size` and `overlap` in tokens.

    Raises:
        InvalidInput: the size is below 1, or the overlap is not below the size.
    """

    strategy: ChunkStrategy = ChunkStrategy.RECURSIVE
    size: int = 512
    overlap: int = 50

    @classmethod
    def read(cls, strategy: str, size: int, overlap: int) -> Self:
        """Options with the strategy of this name."""
        try:
            return cls(ChunkStrategy(strategy), size, overlap)
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            known = ", ".join(ChunkStrategy)
            raise InvalidInput("chunk_strategy", f"{strategy!r} is unknown", f"Use one of: {known}.") from None

    def __post_init__(self) -> None:
        check_whole_number("chunk_size", self.size, 1, MAX_CHUNK_SIZE)
        check_whole_number("chunk_overlap", self.overlap, 0, MAX_CHUNK_SIZE)
        if self.overlap >= self.size:
            problem = f"{self.overlap} is not below the chunk size {self.size}"
            raise InvalidInput("chunk_overlap", problem, "Give a smaller overlap, or 0 for none.")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text: `text[start:end]`. What is before `body` stands in the chunk before as well.

    `headers` are the titles that its first words stand under, outermost first; `above` are those of them that
    are not in the chunk itself. `page` counts form feeds, from 1; None if the text has none. `table_header` is the
    header of the table in whose middle the chunk begins.
    """

    index: int
    start: int
    body: int
    end: int
    headers: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    page: int | None = None
    table_header: str | None = None


def chunk_text(text: str, options: ChunkOptions, count: Count) -> Iterator[Chunk]:
    """The chunks in order. Every character that can be seen is in one; of blank ones none is made.

    Each has at most `options.size` tokens by `count`, unless a single character has more. Without their
    overlaps the chunks follow on one another without a gap, but for blank text of more than a chunk.
    """
    pages = "\f" in text
    page, counted = 1, 0
    index = 0
    for packed in _packed(text, options, count):
        content = text[packed.start : packed.end]
        if is_blank(content):
            continue
        first = packed.start + len(content) - len(content.lstrip())
        if pages and first > counted:  # an overlap never reaches back beyond the chunk before
            page, counted = page + text.count("\f", counted, first), first
        elif pages and first < counted:
            page, counted = page - text.count("\f", first, counted), first
        lead = packed.lead
        headers = lead.full_path if lead.kind in {Kind.SECTION, Kind.HEADING} else lead.path
        header = packed.first.header
        is_continued = header is not None and header[0] < packed.start
        yield Chunk(
            index,
            packed.start,
            packed.body,
            packed.end,
            headers=headers,
            above=packed.first.path,
            page=page if pages else None,
            table_header=text[header[0] : min(header[1], header[0] + MAX_HEADER)] if header and is_continued else None,
        )
        index += 1


def _packed(text: str, options: ChunkOptions, count: Count) -> Iterator[Packed]:
    if options.strategy is ChunkStrategy.FIXED:
        for start, body, end in windows(text, options.size, options.overlap, count=count):
            whole = Unit(Kind.PIECE, start, end)
            yield Packed(start, body, end, whole, whole)
        return
    splitter = Splitter(text, options.size, options.size - options.overlap, count)
    found = blocks(text, lines_of(text, 0, len(text)))
    measured = (measure(text, unit, options.size, count) for unit in found)
    if options.strategy is ChunkStrategy.RECURSIVE:
        yield from pack(_sections(measured), splitter, options.overlap)
    elif options.strategy is ChunkStrategy.PARAGRAPH:
        yield from pack(_with_paths(measured), splitter, options.overlap)
    else:
        yield from pack(_with_sentences(_with_paths(measured), splitter), splitter, options.overlap)


def _with_paths(units: Iterable[Unit]) -> Iterator[Unit]:
    """Each block with the titles above it."""
    open_headings: list[Unit] = []
    for unit in units:
        if unit.kind is Kind.HEADING:
            while open_headings and open_headings[-1].level >= unit.level:
                open_headings.pop()
        unit.path = tuple(heading.title for heading in open_headings if heading.title)
        if unit.kind is Kind.HEADING:
            open_headings.append(unit)
        yield unit


def _with_sentences(units: Iterable[Unit], splitter: Splitter) -> Iterator[Unit]:
    for unit in units:
        if unit.kind is Kind.PARAGRAPH:
            yield from splitter.finer(unit)
        else:
            yield unit


def _sections(units: Iterable[Unit]) -> list[Unit]:
    """The blocks as a tree: a heading and all that is under it is one unit, and so is each part of that."""
    root = Unit(Kind.SECTION, 0, 0)
    nested = [root]
    for unit in _with_paths(units):
        if unit.kind is Kind.HEADING:
            while nested[-1].level >= unit.level:
                _finish(nested.pop())
            section = Unit(Kind.SECTION, unit.start, unit.end, path=unit.path, title=unit.title, level=unit.level)
            nested[-1].parts.append(section)
            nested.append(section)
        nested[-1].parts.append(unit)
    while nested:
        _finish(nested.pop())
    return root.parts


def _finish(section: Unit) -> None:
    if section.parts:
        section.end = section.parts[-1].end
        section.tokens = sum(part.tokens for part in section.parts)
