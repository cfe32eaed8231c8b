from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from lamina.errors import InvalidInput
from lamina.evaluation.dataset import load_dataset, load_judgements


def test_a_set_is_read_with_all_that_it_says(ferries):
    dataset = load_dataset(ferries)
    assert dataset.name == "ferries"
    assert [each.group for each in dataset.documents] == ["a", "a", "a", "b", "b"]
    assert [each.source for each in dataset.documents] == [
        "conversation:a/1",
        "conversation:a/1",
        "conversation:a/2",
        "conversation:b/1",
        "conversation:b/1",
    ]
    assert [each.speaker for each in dataset.documents] == ["Mira", "Tomas", "Mira", "Yan", None]
    assert dataset.latest == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [each.category for each in dataset.queries] == ["time", "person", "time", "none", "trick"]
    assert [dict(each.gains) for each in dataset.queries] == [
        {"a/1": 1, "a/3": 2},
        {"a/2": 2},
        {"b/1": 1},
        {},
        {"b/2": 1},
    ]


def test_nothing_that_a_set_does_not_say_is_made_up(write_set):
    folder = write_set("bare", [{"id": "d", "text": "t"}], [{"id": "q", "text": "t", "meta": {}}], qrels=[])
    (document,), (query,) = (dataset := load_dataset(folder)).documents, dataset.queries
    assert (document.group, document.source, document.speaker, document.occurred_at) == ("all", None, None, None)
    assert (query.group, query.category, query.evidence) == ("all", "all", frozenset())
    assert dataset.latest is None


def test_the_digest_is_that_of_the_content_and_not_of_its_form(ferries):
    digest = load_dataset(ferries).digest
    corpus = ferries / "corpus.jsonl"
    (ferries / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    corpus.unlink()
    assert load_dataset(ferries).digest == digest
    (ferries / "queries.jsonl").write_text('{"id": "q1", "text": "changed"}')
    assert load_dataset(ferries).digest != digest


def test_audited_labels_are_used_where_there_are_any(ferries):
    audited = load_dataset(ferries, audited=True)
    assert audited.labels == "qrels_audited.tsv"
    assert [sorted(each.evidence) for each in audited.queries] == [["a/1"], ["a/2"], [], [], []]
    (ferries / "qrels_audited.tsv").unlink()
    assert load_dataset(ferries, audited=True).labels == "qrels.tsv"


def test_a_set_may_be_pooled_and_cut_to_its_first_queries(ferries):
    dataset = load_dataset(ferries)
    pooled = dataset.pooled()
    assert {each.group for each in (*pooled.documents, *pooled.queries)} == {"all"}
    assert [each.source for each in pooled.documents] == [each.source for each in dataset.documents]
    first = dataset.first(2)
    assert [each.id for each in first.queries] == ["q1", "q2"]
    assert [each.id for each in first.documents] == ["a/1", "a/2", "a/3"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl", "{}"),
        ("queries.jsonl", "nonsense"),
        ("queries.jsonl", '{"id": "q", "text": "t", "meta": []}'),
        ("qrels.tsv", "head\nq1\ta/1"),
        ("qrels.tsv", "head\nq\td\tx"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(ferries, name, content):
    (ferries / name).write_text(content)
    with pytest.raises(InvalidInput, match=f"line . of {name}"):
        load_dataset(ferries)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"qrels\.tsv"):
        load_dataset(tmp_path)
    with pytest.raises(InvalidInput, match=r"qrels_forbidden\.tsv"):
        load_judgements(tmp_path, "qrels_forbidden.tsv")
