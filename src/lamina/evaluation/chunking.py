"""Whether chunks of documents are what chunking promises, and how long it takes.

Fences and tables are looked for by rules of this module's own, and not by those that the chunking goes by: else
a fence that these do not see would count as whole.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.document import RagChunk
from lamina.domain.message_size import Count
from lamina.domain.text import clean
from lamina.evaluation.document_trees import DocumentTree
from lamina.ports.token_counter import TokenCounter
from lamina.providers.tokens import EstimateCounter
from lamina.rag.chunking import ChunkOptions, chunk_text
from lamina.rag.pipeline import RagPipeline
from lamina.state.sqlite import SqliteStateStore

__all__ = ["ChunkFigures", "SpeedFigures", "evaluate_chunks", "evaluate_tree", "fences", "measure_speed", "table_rows"]

DEFAULT_SIZES: Final = (250_000, 500_000, 1_000_000, 2_000_000)
"""Characters."""
_MILLION: Final = 1_000_000
_LEAST_ROUNDS: Final = 3

_OPENING: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_DELIMITERS: Final = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$")

Span = tuple[int, int]


@dataclass(slots=True)
class ChunkFigures:
    """What was found in the chunks of one tree.

    `inexact` chunks are not the text between their offsets, `too_large` ones above the size. `lost` counts
    characters, white space aside, that are in no chunk. `fences` and `rows` are those code fences and table rows
    that fit into a chunk, and `..._split` how many of these have the edge of a chunk inside them.
    """

    name: str
    documents: int = 0
    characters: int = 0
    chunks: int = 0
    tokens: int = 0
    inexact: int = 0
    too_large: int = 0
    lost: int = 0
    fences: int = 0
    fences_split: int = 0
    rows: int = 0
    rows_split: int = 0

    @property
    def kept(self) -> bool:
        """Whether everything is as promised."""
        return not (self.inexact or self.too_large or self.lost or self.fences_split or self.rows_split)

    @property
    def tokens_per_chunk(self) -> float:
        """The mean."""
        return self.tokens / self.chunks if self.chunks else 0.0


@dataclass(frozen=True, slots=True)
class SpeedFigures:
    """Seconds that chunking takes for a million characters of one text of so many."""

    characters: int
    seconds: float


async def evaluate_tree(
    tree: DocumentTree, *, options: ChunkOptions | None = None, counter: TokenCounter | None = None
) -> ChunkFigures:
    """Ingest the documents, in this process's memory and without embeddings, and look at the chunks that are kept."""
    options = options or ChunkOptions()
    counter = counter or EstimateCounter()
    figures = ChunkFigures(tree.name)
    pipeline = RagPipeline(InMemoryAdapter(), SqliteStateStore(":memory:"), embedder=None, counter=counter)
    async with pipeline:
        for name, text in tree.documents:
            if not text.strip():
                continue
            id = await pipeline.ingest(
                text,
                name,
                chunk_strategy=options.strategy,
                chunk_size=options.size,
                chunk_overlap=options.overlap,
                replace=False,
            )
            evaluate_chunks(clean(text), await pipeline.chunks(id), options.size, counter.count, into=figures)
    return figures


def evaluate_chunks(text: str, chunks: Sequence[RagChunk], size: int, count: Count, *, into: ChunkFigures) -> None:
    """Add what is found in the chunks of one text to the figures."""
    covered = 0
    edges: set[int] = set()
    for chunk in sorted(chunks, key=lambda each: each.start):
        tokens = count(chunk.content)
        into.tokens += tokens
        into.inexact += text[chunk.start : chunk.end] != chunk.content
        into.too_large += tokens > size and len(chunk.content) > 1
        into.lost += _visible(text[covered : max(covered, chunk.start)])
        covered = max(covered, chunk.end)
        edges |= {chunk.start, chunk.end}
    into.lost += _visible(text[covered:])
    into.documents += 1
    into.characters += len(text)
    into.chunks += len(chunks)
    ordered = sorted(edges)
    found = list(fences(text))
    fitting = [span for span in found if count(text[slice(*span)]) <= size]
    into.fences += len(fitting)
    into.fences_split += sum(_is_cut(span, ordered) for span in fitting)
    fitting = [span for span in table_rows(text, found) if count(f"{text[slice(*span)]}\n") <= size]
    into.rows += len(fitting)
    into.rows_split += sum(_is_cut(span, ordered) for span in fitting)


def fences(text: str) -> Iterator[Span]:
    """The code fences that are closed, from the opening marks to the closing ones, also in quotes and lists."""
    opened: tuple[int, str] | None = None
    for start, line in _lines(text):
        if opened is None:
            match = _OPENING.match(line)
            if match is not None and not (match["mark"][0] == "`" and "`" in match["info"]):
                opened = (start + match.start("mark"), match["mark"])
            continue
        bare = line.lstrip(" \t>").rstrip()
        if len(bare) >= len(opened[1]) and set(bare) == {opened[1][0]}:
            yield opened[0], start + len(line.rstrip())
            opened = None


def table_rows(text: str, fenced: Iterable[Span]) -> Iterator[Span]:
    """The rows of pipe tables outside of the fences, heads included."""
    inside = sorted(fenced)
    starts = [start for start, _ in inside]
    former: Span | None = None
    in_table = False
    for start, line in _lines(text):
        row = (start + len(line) - len(line.lstrip()), start + len(line.rstrip()))
        place = bisect_right(starts, start)
        is_code = place > 0 and start < inside[place - 1][1]
        if is_code or not line.strip():
            former, in_table = None, False
        elif in_table and "|" in line:
            yield row
        elif former is not None and _DELIMITERS.match(line):
            in_table = True
            yield former
            yield row
        else:
            in_table = False
            former = row if "|" in line else None


def measure_speed(
    tree: DocumentTree, *, options: ChunkOptions | None = None, sizes: Sequence[int] | None = None
) -> list[SpeedFigures]:
    """Chunk one text of each size, which is the tree's documents one after another, over again until it is full.

    The best of three runs counts, for whatever else the machine does can only make it slower.
    """
    options = options or ChunkOptions()
    count = EstimateCounter().count
    whole = "\n\n".join(text for _, text in tree.documents)
    figures = []
    for size in (sizes or DEFAULT_SIZES) if whole.strip() else ():
        text = (whole * (size // len(whole) + 1))[:size]
        figures.append(SpeedFigures(size, min(_seconds(text, options, count) for _ in range(_LEAST_ROUNDS))))
    return figures


def _seconds(text: str, options: ChunkOptions, count: Count) -> float:
    began = time.perf_counter()
    for _ in chunk_text(text, options, count):
        pass
    return (time.perf_counter() - began) / len(text) * _MILLION


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text):
        yield start, line.rstrip("\r\n")
        start += len(line)


def _visible(text: str) -> int:
    return sum(not character.isspace() for character in text)


def _is_cut(span: Span, edges: Sequence[int]) -> bool:
    """Whether an edge lies inside."""
    place = bisect_right(edges, span[0])
    return place < len(edges) and edges[place] < span[1]
