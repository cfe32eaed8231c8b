from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

WriteSet = Callable[..., Path]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their modules can be imported."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture
def write_set(tmp_path: Path) -> WriteSet:
    """Writes a set of rows of documents and of queries, and of labels by the name of their file."""

    def write(
        name: str,
        corpus: Iterable[Mapping[str, Any]],
        queries: Iterable[Mapping[str, Any]],
        **labels: Iterable[tuple[str, str, int]],
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
        (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
        for file, rows in labels.items():
            lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
            (folder / f"{file}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return write


@pytest.fixture
def ferries(write_set: WriteSet) -> Path:
    """Two conversations; one says a thing twice, and one question has no answer."""
    turns = [
        ("a/1", "a", 1, "Mira", "the ferry leaves at nine"),
        ("a/2", "a", 1, "Tomas", "we are running late again"),
        ("a/3", "a", 2, "Mira", "the ferry leaves at nine"),
        ("b/1", "b", 1, "Yan", "the ferry leaves at noon"),
        ("b/2", "b", 1, None, "bring an umbrella"),
    ]
    questions = [
        ("q1", "a", "when does the ferry leave", "time"),
        ("q2", "a", "who runs late", "person"),
        ("q3", "b", "when does the ferry leave", "time"),
        ("q4", "b", "zzz", "none"),
        ("q5", "b", "umbrella?", "trick"),
    ]
    return write_set(
        "ferries",
        [
            {
                "id": id,
                "text": f"{speaker}: {text}" if speaker else text,
                "meta": {"group": group, "session": session, "speaker": speaker, "date": "1:56 pm on 8 May, 2023"},
            }
            for id, group, session, speaker, text in turns
        ],
        [
            {"id": id, "text": text, "meta": {"group": group, "category": category}}
            for id, group, text, category in questions
        ],
        qrels=[
            ("q1", "a/1", 1),
            ("q1", "a/3", 2),
            ("q2", "a/2", 2),
            ("q3", "b/1", 1),
            ("q3", "b/2", 0),
            ("q5", "b/2", 1),
        ],
        qrels_audited=[("q1", "a/1", 1), ("q2", "a/2", 1)],
    )
