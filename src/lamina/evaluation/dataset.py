"""Labelled retrieval sets: documents, queries, and which documents answer which query.

A set is a folder of three files, the format of many public collections:

* `corpus.jsonl` — one document a line: `id`, `text`, `meta`;
* `queries.jsonl` — one query a line: `id`, `text`, `meta`, with `meta.category` where there are categories;
* `qrels.tsv` — a header line, then `query-id`, `corpus-id`, `score`, where a score of 1 or more is evidence.

The first two may be gzipped (`.gz`). Where `meta.group` is given, a query may retrieve documents of its
own group only: one conversation, one user.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.errors import InvalidInput

__all__ = ["Dataset", "Document", "Query", "load_dataset"]


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be retrieved, and the group whose queries may."""

    id: str
    text: str
    group: str


@dataclass(frozen=True, slots=True)
class Query:
    """A question, its category, and the ids of the documents that answer it (none: nothing does)."""

    id: str
    text: str
    group: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A labelled set; `digest` is the SHA-256 over its three files."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    digest: str


def load_dataset(folder: str | Path) -> Dataset:
    """Read the set in this folder.

    Raises:
        InvalidInput: a file is missing or a line of it cannot be read.
    """
    folder = Path(folder)
    digest = hashlib.sha256()
    evidence: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_lines(folder, "qrels.tsv", digest), start=1):
        fields = line.split("\t")
        if number == 1:
            continue
        try:
            query, document, score = fields[0], fields[1], int(fields[2])
        except (IndexError, ValueError):
            raise _bad_line(folder / "qrels.tsv", number) from None
        if score >= 1:
            evidence[query].add(document)
    documents = [Document(row["id"], row["text"], _group(row)) for row in _records(folder, "corpus.jsonl", digest)]
    queries = [
        Query(
            row["id"], row["text"], _group(row), str(row["meta"].get("category", "all")), frozenset(evidence[row["id"]])
        )
        for row in _records(folder, "queries.jsonl", digest)
    ]
    return Dataset(folder.name, tuple(documents), tuple(queries), digest.hexdigest())


def _group(row: Mapping[str, Any]) -> str:
    return str(row["meta"].get("group", "all"))


def _records(folder: Path, name: str, digest: hashlib._Hash) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(folder, name, digest), start=1):
        try:
            row = json.loads(line)
            row["id"], row["text"], row.setdefault("meta", {})
        except (ValueError, KeyError, TypeError):
            raise _bad_line(folder / name, number) from None
        yield row


def _lines(folder: Path, name: str, digest: hashlib._Hash) -> list[str]:
    plain, zipped = folder / name, folder / f"{name}.gz"
    if plain.exists():
        content = plain.read_bytes()
    elif zipped.exists():
        content = gzip.decompress(zipped.read_bytes())
    else:
        problem = f"{folder} has no {name} or {name}.gz"
        raise InvalidInput("path", problem, "Give the folder of a set in the format of the documentation.")
    digest.update(content)
    return [line for line in content.decode().split("\n") if line]


def _bad_line(path: Path, number: int) -> InvalidInput:
    return InvalidInput("path", f"line {number} of {path.name} cannot be read", "See the format in the documentation.")
