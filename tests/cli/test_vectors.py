"""The commands with the embedder that comes with Lamina, for real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Lamina = Callable[..., Any]

BUILTIN = {"LAMINA_EMBEDDER": "builtin"}


def test_a_question_finds_what_shares_no_word_with_it(lamina: Lamina) -> None:
    lamina("remember", "Mira is allergic to peanuts", "--id", "allergy", env=BUILTIN)
    lamina("remember", "The printer is on the second floor", env=BUILTIN)
    found = lamina("recall", "which foods are dangerous for her?", "--mode", "vector", "--json", env=BUILTIN).document
    assert found["results"][0]["entry"]["id"] == "allergy"
    assert found["degraded"] == []


def test_memories_without_a_vector_are_told_by_doctor_and_mended_by_reembed(lamina: Lamina) -> None:
    lamina("remember", "stored while nothing embedded")
    sick = lamina("doctor", env=BUILTIN)
    assert (sick.code, "lamina reembed --missing" in sick.out) == (1, True)
    assert lamina("reembed", "--missing", "--json", env=BUILTIN).document == {"embedded": 1, "skipped": 0, "failed": 0}
    assert lamina("doctor", env=BUILTIN).code == 0
    assert lamina("reembed", env=BUILTIN).out == "0 memories embedded, 1 had their vector, 0 failed.\n"
    assert lamina("reembed", "--force", "--json", env=BUILTIN).document["embedded"] == 1


def test_what_is_imported_without_a_vector_is_embedded_unless_told_not_to(lamina: Lamina) -> None:
    line = '{"id": "a", "text": "a note"}'
    lamina("import", "--db", "plain.db", stdin=line)
    exported = lamina("export", "--db", "plain.db").out
    report = lamina("import", "--json", "--db", "one.db", "--no-embed", stdin=exported, env=BUILTIN).document
    assert (report["written"], report["embedded"]) == (1, 0)
    report = lamina("import", "--json", "--db", "two.db", stdin=exported, env=BUILTIN).document
    assert (report["written"], report["embedded"]) == (1, 1)


def test_vectors_travel_with_an_export_if_asked(lamina: Lamina) -> None:
    lamina("remember", "a note", env=BUILTIN)
    with_vectors = lamina("export", "--with-embeddings", env=BUILTIN).out
    report = lamina("import", "--json", "--db", "other.db", stdin=with_vectors, env=BUILTIN).document
    assert (report["written"], report["without_vector"], report["embedded"]) == (1, 0, 0)
    assert lamina("stats", "--json", "--db", "other.db", env=BUILTIN).document["without_embedding"] == 0


def test_vectors_of_another_model_are_left_out_and_doctor_tells_of_a_changed_one(lamina: Lamina) -> None:
    lamina("remember", "a note", env=BUILTIN)
    line = lamina("export", "--with-embeddings", env=BUILTIN).out
    foreign = line.replace('"id":"mem_', '"id":"mem_2').replace('"model":"', '"model":"another-')
    report = lamina("import", "--no-embed", stdin=foreign, env=BUILTIN)
    assert "1 vectors were another model's" in report.err
    lamina("import", "--db", "foreign.db", stdin=foreign)
    sick = lamina("doctor", "--db", "foreign.db", env=BUILTIN)
    assert (sick.code, "lamina reembed" in sick.out) == (1, True)
    degraded = lamina("recall", "note", "--db", "foreign.db", "--json", env=BUILTIN).document["degraded"]
    assert [mark["reason"] for mark in degraded] == ["other_model"]


@pytest.mark.parametrize("spec", ["nobody:model", "builtin:nothing"])
def test_an_unknown_embedder_is_told_in_one_line(lamina: Lamina, spec: str) -> None:
    run = lamina("remember", "x", env={"LAMINA_EMBEDDER": spec})
    assert (run.code, run.err.count("\n"), run.err.startswith("Error: ")) == (1, 1, True)
