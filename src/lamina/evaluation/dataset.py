"""Labelled retrieval sets: documents, queries, and which documents answer which query.

A set is a folder of three files, the format of many public collections:

* `corpus.jsonl` — one document a line: `id`, `text`, `meta`;
* `queries.jsonl` — one query a line: `id`, `text`, `meta`, with `meta.category` where there are categories;
* `qrels.tsv` — a header line, then `query-id`, `corpus-id`, `score`, where a score of 1 or more is evidence,
  the better the higher.

The first two may be gzipped (`.gz`). What `meta` says is told to the engine as a user would tell it:

* `group`: one conversation, one user; a query may retrieve documents of its own group only;
* `session` (or `batch`): the part of the group that a document was said in, in the order of the file;
* `speaker`: who said it; and `date` (or `timestamp`): when.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from lamina.errors import InvalidInput
from lamina.evaluation.dates import read_date

__all__ = ["Dataset", "Document", "Query", "load_dataset", "load_judgements"]

LABELS: Final = "qrels.tsv"
AUDITED_LABELS: Final = "qrels_audited.tsv"
UNGROUPED: Final = "all"


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be retrieved, the group whose queries may, and what is known of where it comes from."""

    id: str
    text: str
    group: str
    source: str | None = None
    """The conversation that it is a part of: the group and its session."""
    speaker: str | None = None
    occurred_at: datetime | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, its category, and the documents that answer it, with how well (none: nothing does)."""

    id: str
    text: str
    group: str
    category: str
    gains: Mapping[str, int]
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def evidence(self) -> frozenset[str]:
        """The ids of the documents that answer it."""
        return frozenset(self.gains)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A labelled set; `digest` is the SHA-256 over its three files, `labels` the name of the third."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    digest: str
    labels: str = LABELS

    @property
    def latest(self) -> datetime | None:
        """When the last of what the documents tell of happened, if any says."""
        return max((each.occurred_at for each in self.documents if each.occurred_at is not None), default=None)

    def pooled(self) -> Dataset:
        """The same set in one group: every query may retrieve every document."""
        return dataclasses.replace(
            self,
            documents=tuple(dataclasses.replace(each, group=UNGROUPED) for each in self.documents),
            queries=tuple(dataclasses.replace(each, group=UNGROUPED) for each in self.queries),
        )

    def first(self, most: int) -> Dataset:
        """The first so many queries, and the documents of their groups."""
        queries = self.queries[:most]
        groups = {query.group for query in queries}
        documents = tuple(document for document in self.documents if document.group in groups)
        return dataclasses.replace(self, documents=documents, queries=queries)


def load_dataset(folder: str | Path, *, audited: bool = False) -> Dataset:
    """Read the set in this folder; `audited` prefers the labels of `qrels_audited.tsv`, where there are any.

    Raises:
        InvalidInput: a file is missing or a line of it cannot be read.
    """
    folder = Path(folder)
    labels = AUDITED_LABELS if audited and (folder / AUDITED_LABELS).exists() else LABELS
    digest = hashlib.sha256()
    gains = _judgements(folder, labels, digest)
    documents = tuple(_document(row) for row in _records(folder, "corpus.jsonl", digest))
    queries = tuple(_query(row, gains) for row in _records(folder, "queries.jsonl", digest))
    return Dataset(folder.resolve().name, documents, queries, digest.hexdigest(), labels)


def load_judgements(folder: str | Path, name: str) -> dict[str, dict[str, int]]:
    """For each query the documents that this file of the format of `qrels.tsv` gives it, and their scores from 1 on.

    Raises:
        InvalidInput: the file is missing or a line of it cannot be read.
    """
    return _judgements(Path(folder), name, hashlib.sha256())


def _judgements(folder: Path, name: str, digest: hashlib._Hash) -> dict[str, dict[str, int]]:
    gains: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(_lines(folder, name, digest), start=1):
        fields = line.split("\t")
        if number == 1:
            continue
        try:
            query, document, score = fields[0], fields[1], int(fields[2])
        except (IndexError, ValueError):
            raise _bad_line(folder / name, number) from None
        if score >= 1:
            gains[query][document] = score
    return dict(gains)


def _document(row: Mapping[str, Any]) -> Document:
    meta = row["meta"]
    session, speaker = _said(meta, "session", "batch"), _said(meta, "speaker")
    group = _said(meta, "group")
    return Document(
        row["id"],
        row["text"],
        UNGROUPED if group is None else str(group),
        source=None if session is None else f"conversation:{session if group is None else f'{group}/{session}'}",
        speaker=None if speaker is None else str(speaker),
        occurred_at=read_date(_said(meta, "date", "timestamp")),
        meta=meta,
    )


def _query(row: Mapping[str, Any], gains: Mapping[str, Mapping[str, int]]) -> Query:
    meta = row["meta"]
    group, category = _said(meta, "group"), _said(meta, "category")
    return Query(
        row["id"],
        row["text"],
        UNGROUPED if group is None else str(group),
        "all" if category is None else str(category),
        gains.get(row["id"], {}),
        meta,
    )


def _said(meta: Mapping[str, Any], *keys: str) -> Any:
    """What the first of these keys says that says anything."""
    return next((meta[key] for key in keys if meta.get(key) is not None), None)


def _records(folder: Path, name: str, digest: hashlib._Hash) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(folder, name, digest), start=1):
        try:
            row = json.loads(line)
            row["id"], row["text"], row.setdefault("meta", {}).keys()
        except (ValueError, KeyError, TypeError, AttributeError):
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
