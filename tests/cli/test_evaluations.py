from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.rag.pipeline import RagPipeline

Lamina = Callable[..., Any]


@pytest.fixture
def labelled(folder: Path) -> str:
    (folder / "set").mkdir()
    for name, text in {
        "corpus.jsonl": '{"id": "d1", "text": "the harbour lamp is green", "meta": {"group": "g"}}\n'
        '{"id": "d2", "text": "trains leave at noon", "meta": {"group": "g"}}\n',
        "queries.jsonl": '{"id": "q1", "text": "harbour lamp", "meta": {"group": "g", "category": "one"}}\n'
        '{"id": "q2", "text": "zzz", "meta": {"group": "g", "category": "none"}}\n',
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    }.items():
        (folder / "set" / name).write_text(text, encoding="utf-8")
    return "set"


def test_recall_is_measured_on_labelled_sets(lamina: Lamina, labelled: str, folder: Path) -> None:
    options = ("--mode", "text", "--baselines", "--tokens", "50", "--cache", "vectors.db", "--out", "report", "--pool")
    run = lamina("eval", "recall", labelled, *options, "--json")
    (report,) = run.document
    assert (report["documents"], report["budget"], report["configuration"]["pooled"]) == (2, 50, True)
    assert report["figures"][0]["recall"]["5"] == 1.0
    assert "answers" not in report
    assert {path.name for path in (folder / "report").iterdir()} >= {"set.jsonl", "report.md"}
    assert ("lamina[eval]" in run.err) == (not (folder / "report" / "recall.png").exists())
    shown = lamina("eval", "recall", labelled, "--limit", "2", env={"COLUMNS": "200"})
    assert "recall@5" in shown.out
    assert "rightly empty" in shown.out
    assert "rightly empty" not in lamina("eval", "recall", labelled, "--limit", "1").out
    assert lamina("eval", "recall", "none").code == 2
    assert lamina("eval", "recall", labelled, labelled, "--limit", "1", "--out", "report").code == 2


def test_life_cycles_and_precision_are_measured_on_sets_that_tell_of_them(
    lamina: Lamina, labelled: str, folder: Path
) -> None:
    assert lamina("eval", "lifecycle", labelled).code == 2
    (folder / "set" / "qrels_forbidden.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td1\t1\n", encoding="utf-8")
    found = {(each["category"], each["way"]): each for each in lamina("eval", "lifecycle", labelled, "--json").document}
    assert found["all", "told"]["required"]["5"] == 1.0
    assert "forbidden@10" in lamina("eval", "lifecycle", labelled, env={"COLUMNS": "200"}).out
    assert lamina("eval", "precision", labelled).code == 2
    belief = {"user_id": "test-user", "scope": ["s"], "type": "fact", "pinned": False, "confidence": 1.0}
    (folder / "set" / "corpus.jsonl").write_text(
        json.dumps(
            {"id": "d1", "text": "the lamp is green", "meta": belief | {"superseded_by": None, "resolved_at": None}}
        ),
        encoding="utf-8",
    )
    expect = {"relevantBeliefs": {"shouldOnlyInclude": ["d1"]}}
    (folder / "set" / "queries.jsonl").write_text(
        "\n".join(
            json.dumps({"id": id, "text": text, "meta": {"scope": ["s"], "expect": expect, "case": {}}})
            for id, text in (("q1", "lamp"), ("q2", "zzz"))
        ),
        encoding="utf-8",
    )
    report = lamina("eval", "precision", labelled, "--json").document
    assert (report["passed"], report["cases"]) == (1, 2)
    assert "d1 is missing" in lamina("eval", "precision", labelled, env={"COLUMNS": "200"}).out


def test_contexts_are_measured_budget_by_budget(lamina: Lamina, labelled: str) -> None:
    run = lamina("eval", "context", labelled, "--budget", "1000", "--budget", "2000", "--json")
    assert run.code == 0
    assert [(each["budget"], each["evidence"], each["too_large"]) for each in run.document] == [
        (1_000, 1.0, 0),
        (2_000, 1.0, 0),
    ]
    assert "100.0%" in lamina("eval", "context", labelled, "--budget", "1000").out


def test_transcripts_are_replayed_into_a_memory_and_a_thread(lamina: Lamina, folder: Path) -> None:
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n}: the pool is in src/pool.py. {'word ' * 80}"}
        for n in range(40)
    ]
    row = {"id": "talk", "meta": {"top_paths": ["src/pool.py"]}, "messages": messages}
    (folder / "talks.jsonl").write_text(json.dumps(row), encoding="utf-8")
    run = lamina("eval", "transcripts", ".", "--least", "100", "--pre-rot", "1000", "--json")
    assert run.code == 0
    assert [each["way"] for each in run.document] == ["memory", "thread"]
    assert {each["restored"] for each in run.document} == {1.0}
    table = lamina("eval", "transcripts", "talks.jsonl", "--least", "100", env={"COLUMNS": "240"}).out
    assert "mean of 1 in talks" in table
    assert lamina("eval", "transcripts", ".", "--json").document == []
    assert lamina("eval", "transcripts", "nowhere").code == 2


def test_chunks_are_checked_and_a_broken_promise_is_exit_code_1(
    lamina: Lamina, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# Ferries\n\n```\nx\n```\n\nThey leave at nine.\n", encoding="utf-8")
    run = lamina("eval", "documents", "docs", "--json")
    assert (run.code, run.document[0]["fences"], run.document[0]["lost"]) == (0, 1, 0)
    assert "tokens/chunk" in lamina("eval", "documents", "docs", env={"COLUMNS": "240"}).out
    assert lamina("eval", "documents", "docs", "--overlap", "600").code == 2
    monkeypatch.setattr("lamina.evaluation.chunking.DEFAULT_SIZES", (500, 1_000))
    (tree,) = lamina("eval", "documents", "docs", "--speed", "--json").document
    assert [each["characters"] for each in tree["speed"]] == [500, 1_000]

    async def broken(self: RagPipeline, id: str, **options: Any) -> list[Any]:
        return [chunk.replace(content="x") for chunk in await chunks(self, id, **options)]

    chunks = RagPipeline.chunks
    monkeypatch.setattr(RagPipeline, "chunks", broken)
    assert lamina("eval", "documents", "docs").code == 1


def test_reductions_are_measured_on_texts_of_the_users_own(lamina: Lamina, folder: Path) -> None:
    (folder / "notes").mkdir()
    text = (
        "We met Ada Byron in Porto on 5 May 2024 and paid 12,500 euros for it. " + "That was all there was to say. " * 9
    )
    (folder / "notes" / "a.md").write_text(text, encoding="utf-8")
    summary, facts = lamina("eval", "reductions", "notes", "--json").document
    assert (summary["tier"], summary["texts"], summary["kept"]["all"]) == ("summary", 1, 1.0)
    assert facts["share"] < summary["share"] < 0.4
    assert "first n" in lamina("eval", "reductions", "notes", env={"COLUMNS": "240"}).out
    assert lamina("eval", "reductions", "none").code == 2
