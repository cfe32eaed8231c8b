"""Chunks documentation trees, and texts made to be hard, and checks what chunking promises.

    python benchmarks/chunking.py [FOLDER] [estimate|o200k_base|cl100k_base] [LENGTH]

FOLDER holds `*.jsonl.gz` (a document a line, with a `text`), or Markdown files at any depth; without one, only
the texts that are made here are chunked, of LENGTH characters each. For each tree and strategy: how many chunks
there are and how large, whether every offset is exact and every size within the limit, how many code fences and
table rows that fit were split, and seconds per million characters of the tree once and four times over.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lamina.providers.tokens import EstimateCounter, VocabularyCounter
from lamina.rag.chunking import Chunk, ChunkOptions, ChunkStrategy, chunk_text
from lamina.rag.markdown import blocks
from lamina.rag.units import Kind, lines_of

Count = Callable[[str], int]
MILLION = 1_000_000


@dataclass
class Findings:
    """What was seen in the chunks of one tree."""

    chunks: int = 0
    tokens: int = 0
    inexact: int = 0
    too_large: int = 0
    lost: int = 0
    split_fences: int = 0
    split_rows: int = 0


def trees(folder: Path) -> Iterator[tuple[str, list[str]]]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield path.name.removesuffix(".jsonl.gz"), [json.loads(line)["text"] for line in lines]
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))]
    if texts:
        yield folder.name, texts


def hard_texts(length: int) -> Iterator[tuple[str, str]]:
    sentence = "The ferry leaves at nine from the north pier, and at ten on Sundays. "
    yield "one line without a space", "x" * length
    yield "one paragraph", sentence * (length // len(sentence))
    yield "one line of Chinese", "会议改到周五。" * (length // 7)
    yield "one table of wide rows", "| a |\n|---|\n" + ("| " + "wide " * 180 + "|\n") * (length // 900)
    yield "one list", "- an item of it\n" * (length // 16)
    yield "one open fence", "```\n" + "line = 'of code'\n" * (length // 17)
    yield "spaces", "word" + " " * length + "word"
    yield "headings alone", "# Heading\n" * (length // 10)


def spans(text: str) -> Iterator[tuple[Kind, int, int]]:
    """The fences and the table rows of the text, those in lists and quotes left out."""
    for unit in blocks(text, lines_of(text, 0, len(text))):
        if unit.kind is Kind.CODE:
            yield Kind.CODE, unit.start, unit.end
        elif unit.kind is Kind.TABLE:
            yield from ((Kind.ROW, line.start, line.end) for line in lines_of(text, unit.start, unit.end))


def examine(text: str, chunks: list[Chunk], count: Count, options: ChunkOptions, findings: Findings) -> None:
    end = 0
    edges = set()
    for chunk in chunks:
        content = text[chunk.start : chunk.end]
        tokens = count(content)
        findings.tokens += tokens
        findings.too_large += tokens > options.size and len(content) > 1
        findings.inexact += not chunk.start <= chunk.body < chunk.end
        findings.lost += len(text[end : chunk.body].split())
        end = chunk.end
        edges |= {chunk.start, chunk.body, chunk.end}
    findings.lost += len(text[end:].split())
    findings.chunks += len(chunks)
    if options.strategy is ChunkStrategy.FIXED:
        return
    ordered = sorted(edges)
    for kind, start, stop in spans(text):
        place = bisect_right(ordered, start)
        inside = place < len(ordered) and ordered[place] < stop
        if inside and count(text[start:stop]) <= options.size:
            if kind is Kind.CODE:
                findings.split_fences += 1
            else:
                findings.split_rows += 1


def seconds(texts: list[str], options: ChunkOptions, count: Count) -> tuple[float, list[list[Chunk]]]:
    begin = time.perf_counter()
    made = [list(chunk_text(text, options, count)) for text in texts]
    return (time.perf_counter() - begin) / max(sum(map(len, texts)), 1) * MILLION, made


def measure(name: str, texts: list[str], count: Count) -> None:
    for strategy in ChunkStrategy:
        options = ChunkOptions(strategy)
        once, made = seconds(texts, options, count)
        four_times, _ = seconds([text * 4 for text in texts], options, count)
        findings = Findings()
        for text, chunks in zip(texts, made, strict=True):
            examine(text, chunks, count, options, findings)
        print(
            f"{name:26} {strategy.value:10} {findings.chunks:7} {findings.tokens // max(findings.chunks, 1):5}"
            f" {findings.inexact + findings.lost:8} {findings.too_large:9} {findings.split_fences:7}"
            f" {findings.split_rows:5} {once:7.2f} {four_times:7.2f}",
            flush=True,
        )


def main() -> None:
    arguments = sys.argv[1:]
    folder = next((Path(each) for each in arguments if Path(each).is_dir()), None)
    length = next((int(each) for each in arguments if each.isdecimal()), MILLION)
    names = [each for each in arguments if not each.isdecimal() and not Path(each).is_dir()]
    counter = VocabularyCounter(names[0]) if names and names[0] != "estimate" else EstimateCounter()
    counter.count("loads the vocabulary")
    print(f"counted by {counter.name}; sizes 512, overlaps 50; s/M: seconds per million characters")
    print(f"{'text':26} {'strategy':10} {'chunks':>7} {'mean':>5} {'wrong at':>8} {'too large':>9}", end=" ")
    print(f"{'fences':>7} {'rows':>5} {'s/M':>7} {'4x':>7}")
    for name, texts in trees(folder) if folder is not None else ():
        measure(name, texts, counter.count)
    for name, text in hard_texts(length):
        measure(name, [text], counter.count)


if __name__ == "__main__":
    main()
