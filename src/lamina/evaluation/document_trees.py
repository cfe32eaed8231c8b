"""Trees of documents, to be chunked: folders of Markdown or text, or files with a document a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lamina.errors import InvalidInput

__all__ = ["DocumentTree", "load_trees"]

_SUFFIXES: Final = frozenset({".md", ".mdx", ".markdown", ".txt"})


@dataclass(frozen=True, slots=True)
class DocumentTree:
    """Documents that belong together: their names and texts."""

    name: str
    documents: tuple[tuple[str, str], ...]

    @property
    def characters(self) -> int:
        """How many there are in all of them."""
        return sum(len(text) for _, text in self.documents)


def load_trees(folder: str | Path) -> Iterator[DocumentTree]:
    """A tree for each `.jsonl` or `.jsonl.gz` file of the folder, and one of the Markdown and text files below it.

    A line of the former is `{id, text}`. A path may name one such file too.

    Raises:
        InvalidInput: nothing is there, or a file cannot be read.
    """
    folder = Path(folder)
    packed = [folder] if folder.is_file() else sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    loose = [] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES)
    if not packed and not loose:
        problem = f"{folder} has neither .jsonl files nor Markdown or text"
        raise InvalidInput("path", problem, "Give a folder of documents.")
    for path in packed:
        yield DocumentTree(path.name.partition(".jsonl")[0], tuple(_lines(path)))
    if loose:
        yield DocumentTree(folder.name, tuple((str(path.relative_to(folder)), _text(path)) for path in loose))


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                yield str(row["id"]), str(row["text"])
            except (ValueError, KeyError, TypeError) as error:
                problem = f"line {number} of {path.name} cannot be read"
                raise InvalidInput("path", problem, "Give lines of id and text.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("path", f"{path.name} is not UTF-8", "Convert it, or leave it out.") from error
