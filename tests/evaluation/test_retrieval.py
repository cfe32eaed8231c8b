from __future__ import annotations

import gzip
import json

import pytest

from lamina.domain.recall import SearchMode
from lamina.errors import InvalidInput
from lamina.evaluation.baselines import fts5_porter, reciprocal_rank_fusion
from lamina.evaluation.dataset import load_dataset
from lamina.evaluation.retrieval import evaluate, recall_at
from lamina.memory.factory import create_memory_engine
from lamina.testing import HashingEmbedder

CORPUS = [
    ("a/1", "a", "Mira: the ferry leaves at nine"),
    ("a/2", "a", "Tomas: we are running late again"),
    ("a/3", "a", "Mira: the ferry leaves at nine"),
    ("b/1", "b", "Yan: the ferry leaves at noon"),
    ("b/2", "b", "Lea: bring an umbrella"),
]
QUERIES = [
    ("q1", "a", "when does the ferry leave", "time"),
    ("q2", "a", "who runs late", "person"),
    ("q3", "b", "when does the ferry leave", "time"),
    ("q4", "b", "what is the capital of Peru", "none"),
    ("q5", "b", "umbrella?", "trick"),
]
QRELS = [("q1", "a/1", 1), ("q1", "a/3", 1), ("q2", "a/2", 2), ("q3", "b/1", 1), ("q3", "b/2", 0), ("q5", "b/2", 1)]


@pytest.fixture
def folder(tmp_path):
    corpus = [json.dumps({"id": id, "text": text, "meta": {"group": group}}) for id, group, text in CORPUS]
    queries = [
        json.dumps({"id": id, "text": text, "meta": {"group": group, "category": category}})
        for id, group, text, category in QUERIES
    ]
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(corpus).encode()))
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    (tmp_path / "qrels.tsv").write_text(
        "\n".join(["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in QRELS)]) + "\n"
    )
    return tmp_path


def test_a_set_is_read_with_its_groups_categories_and_evidence(folder):
    dataset = load_dataset(folder)
    assert [document.group for document in dataset.documents] == ["a", "a", "a", "b", "b"]
    assert [query.category for query in dataset.queries] == ["time", "person", "time", "none", "trick"]
    assert [sorted(query.evidence) for query in dataset.queries] == [["a/1", "a/3"], ["a/2"], ["b/1"], [], ["b/2"]]
    assert len(dataset.digest) == 64
    (folder / "queries.jsonl").write_text('{"id": "q1", "text": "changed"}')
    assert load_dataset(folder).digest != dataset.digest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl", "{}"),
        ("queries.jsonl", "nonsense"),
        ("qrels.tsv", "head\nq1\ta/1"),
        ("qrels.tsv", "head\nq\td\tx"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(folder, name, content):
    (folder / name).write_text(content)
    with pytest.raises(InvalidInput, match=f"line . of {name}"):
        load_dataset(folder)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"qrels\.tsv"):
        load_dataset(tmp_path)


def test_recall_is_the_share_of_the_evidence_that_was_found():
    assert recall_at(2, ["x", "a", "b"], frozenset("ab")) == 0.5
    assert recall_at(3, ["x", "a", "b"], frozenset("ab")) == 1
    assert recall_at(1, [], frozenset("ab")) == 0


async def test_an_evaluation_counts_by_category_and_way(folder):
    steps = []
    async with await create_memory_engine(provider="memory", embed=HashingEmbedder()) as engine:
        report = await evaluate(
            load_dataset(folder),
            engine,
            depths=(1, 2, 3),
            baselines=True,
            leave_out=["trick"],
            progress=lambda step, done, total: steps.append((step, done, total)),
        )
    figures = {(each.category, each.way): each for each in report.figures}
    ways = {"hybrid", "vector", "text", "baseline: FTS5 porter", "baseline: RRF of FTS5 and vector"}
    assert {way for _, way in figures} == ways
    assert {category for category, _ in figures} == {"time", "person", "trick", "all", "all but trick"}
    assert figures["all", "hybrid"].queries == 4
    assert figures["all but trick", "hybrid"].queries == 3
    assert figures["trick", "text"].recall == {1: 1, 2: 1, 3: 1}
    # q1's two documents say the same, so they are one memory and both stand for it: the second counts from depth 2.
    assert figures["time", "text"].recall == {1: 0.75, 2: 1, 3: 1}
    assert steps[0] == ("store", 5, 5)
    assert report.embedder == "testing:hashing"


async def test_only_the_ways_asked_for_run(folder):
    async with await create_memory_engine(provider="memory", embedding="none") as engine:
        report = await evaluate(load_dataset(folder), engine, modes=[SearchMode.TEXT], baselines=True)
    assert {each.way for each in report.figures} == {"text", "baseline: FTS5 porter"}
    assert report.embedder is None


def test_the_plain_keyword_baseline_stems_and_keeps_to_the_group(folder):
    found = fts5_porter(load_dataset(folder), 10)
    assert found["q2"] == ["a/2"]
    assert set(found["q3"]) == {"b/1"}
    assert found["q4"] == ["b/1"]


def test_fusion_rewards_what_both_rankings_have():
    fused = reciprocal_rank_fusion([{"q": ["a", "b"]}, {"q": ["c", "b"]}], 2)
    assert fused == {"q": ["b", "a"]}
