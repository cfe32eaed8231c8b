from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Lamina = Callable[..., Any]

GUIDE = """# Guide

## Storage

Everything is kept in one file. Back it up with a copy.

## Network

The lighthouse needs no network at all.
"""


@pytest.fixture
def pages(folder: Path) -> Path:
    pages = folder / "pages"
    (pages / "drafts").mkdir(parents=True)
    (pages / "guide.md").write_text(GUIDE, encoding="utf-8")
    (pages / "notes.txt").write_text("The harbour lamp is green.\n", encoding="utf-8")
    (pages / "drafts" / "plan.md").write_text("# Plan\n\nPaint the boat.\n", encoding="utf-8")
    return pages


def sources(lamina: Lamina, *options: str) -> list[str]:
    return [each["source"] for each in lamina("docs", "list", "--json", *options).document["documents"]]


def test_a_folder_is_taken_in_and_what_has_not_changed_is_left(lamina: Lamina, pages: Path) -> None:
    assert lamina("ingest", "pages").out == "3 documents ingested, 0 unchanged.\n"
    (pages / "notes.txt").write_text("The harbour lamp is red.\n", encoding="utf-8")
    report = lamina("ingest", "pages", "--json").document
    assert report["ingested"] == ["pages/notes.txt"]
    assert report["unchanged"] == ["pages/drafts/plan.md", "pages/guide.md"]
    assert sources(lamina) == ["pages/drafts/plan.md", "pages/guide.md", "pages/notes.txt"]
    assert "red" in lamina("docs", "search", "harbour lamp").out


def test_files_are_chosen_by_globs_and_those_that_are_gone_pruned(lamina: Lamina, pages: Path) -> None:
    assert lamina("ingest", "pages", "--pattern", "*.md", "--exclude", "drafts/**", "--source", "book").code == 0
    assert sources(lamina) == ["book/guide.md"]
    (pages / "guide.md").unlink()
    assert lamina("ingest", "pages", "--source", "book", "--prune", "--json").document["removed"] == ["book/guide.md"]


def test_single_files_and_stdin_are_taken_in(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages/guide.md", "pages/notes.txt", "--meta", "category=manual", "--meta", "rank=2")
    assert lamina("ingest", "pages/guide.md", "--meta", "category=manual", "--meta", "rank=2").out == (
        "0 documents ingested, 1 unchanged.\n"
    )
    assert lamina("ingest", "--source", "piped", stdin="A note on tides.\n").code == 0
    assert lamina("ingest", "-", "--source", "piped", stdin="Another note on tides.\n").code == 0
    assert sources(lamina) == ["pages/guide.md", "pages/notes.txt", "piped"]
    hits = lamina("docs", "search", "lamp", "--where", '{"category": "manual", "rank": {"gte": 2}}', "--json").document
    assert hits["results"][0]["source"] == "pages/notes.txt"
    assert "tides" in lamina("docs", "show", "piped", "--text").out
    lamina("ingest", "pages/notes.txt", "--keep")
    assert sources(lamina).count("pages/notes.txt") == 2
    assert "Name one of: doc_" in lamina("docs", "show", "pages/notes.txt").err


def test_one_bad_file_does_not_stop_the_others_and_is_told(lamina: Lamina, pages: Path) -> None:
    (pages / "bad.txt").write_bytes(b"caf\xe9")
    (pages / "empty.md").write_text(" \n", encoding="utf-8")
    run = lamina("ingest", "pages")
    assert (run.code, run.out) == (1, "3 documents ingested, 0 unchanged, 2 failed.\n")
    assert "pages/bad.txt" in run.err
    one = lamina("ingest", "pages/bad.txt", "--json")
    assert (one.code, one.document["failed"][0]["source"]) == (1, "pages/bad.txt")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("none.md", "there is no 'none.md'"),
        ("pages none.md", "there is no 'none.md'"),
        ("-", "--source"),
        ("pages/guide.md pages/notes.txt --source both", "several are given"),
        ("pages/guide.md --prune", "about folders"),
        ("pages --keep", "single documents"),
        ("pages/guide.md --meta source=x", "'source' is taken"),
        ("pages --meta prune=x", "'prune' is taken"),
        ("pages --strategy clever", "'clever' is not one of"),
    ],
)
def test_what_cannot_be_taken_in_is_refused_before_anything_is(
    lamina: Lamina, pages: Path, tmp_path: Path, arguments: str, told: str
) -> None:
    run = lamina("ingest", *arguments.split(), stdin="text")
    assert (run.code, run.err.count("\n"), told in run.err) == (2, 1, True), run.err
    assert not (tmp_path / "data").exists()


def test_an_overlap_that_is_too_large_is_refused(lamina: Lamina, pages: Path) -> None:
    run = lamina("ingest", "pages", "--chunk-size", "20", "--chunk-overlap", "20")
    assert (run.code, "smaller overlap" in run.err) == (2, True)
    assert lamina("ingest", "pages/guide.md", "--chunk-size", "12", "--chunk-overlap", "0").code == 0
    assert len(lamina("docs", "show", "pages/guide.md", "--json").document["chunks"]) > 1


def test_a_document_and_its_chunks_are_shown_by_id_or_source(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages/guide.md")
    shown = lamina("docs", "show", "pages/guide.md", "--json").document
    assert shown["chunk_count"] == len(shown["chunks"])
    chunk = shown["chunks"][0]
    assert GUIDE[chunk["start"] : chunk["end"]] == chunk["content"]
    assert lamina("docs", "show", shown["id"], "--json").document == shown
    assert "pages/guide.md" in lamina("docs", "show", shown["id"]).out
    assert lamina("docs", "show", "none").err == "Error: No document here has the id 'none'.\n"


def test_a_search_tells_what_was_degraded_and_may_come_a_line_at_a_time(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages")
    people = lamina("docs", "search", "harbour lamp")
    assert ("The harbour lamp is green." in people.out, "degraded" in people.out) == (True, True)
    lines = lamina("docs", "search", "--json", "--nl", "--limit", "1", stdin="harbour lamp\n")
    assert [each["source"] for each in lines.lines] == ["pages/notes.txt"]
    assert "degraded" in lines.err
    assert lamina("docs", "search", " ").code == 2
    assert lamina("docs", "search", "x", "--nl").code == 2
    assert "Nothing found." in lamina("docs", "search", "zebra").out


def test_documents_of_others_are_neither_seen_nor_removed(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages/guide.md", "-u", "mira")
    lamina("ingest", "pages/notes.txt")
    assert sources(lamina, "-u", "tomas") == ["pages/notes.txt"]
    assert lamina("docs", "search", "lighthouse network", "-u", "tomas", "--json").document["results"] == []
    for reference in ("pages/guide.md", "pages/notes.txt"):
        assert lamina("docs", "remove", reference, "--yes", "-u", "tomas").code == 1
    assert lamina("docs", "clear", "--yes", "-u", "tomas").out == "0 documents removed.\n"
    assert lamina("docs", "stats", "--json", "-u", "mira").document == {"documents": 2, "chunks": 2}
    assert lamina("docs", "clear", "--dry-run", "-u", "mira").out == "1 document would be removed.\n"


def test_removing_asks_and_removes(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages")
    assert "add --yes" in lamina("docs", "remove", "pages/guide.md").err
    assert lamina("docs", "remove", "pages/guide.md", terminal=True, stdin="n\n").code == 130
    assert lamina("docs", "remove", "pages/guide.md", terminal=True, stdin="y\n").code == 0
    assert lamina("docs", "clear").code == 2
    assert lamina("docs", "clear", "--dry-run", "--json").document == {"would_remove": 2}
    assert lamina("docs", "clear", "--yes", "--json").document == {"removed": 2}
    assert lamina("docs", "stats").out.split() == ["documents", "0", "chunks", "0"]
    assert "Nothing found." in lamina("docs", "list").out


def test_a_page_of_many_documents_tells_how_to_see_more(lamina: Lamina, pages: Path) -> None:
    lamina("ingest", "pages")
    assert "1 to 2 of 3; --offset 2 shows the next." in lamina("docs", "list", "--limit", "2").err
    assert [each["source"] for each in lamina("docs", "list", "--json", "--nl", "--offset", "2").lines] == [
        "pages/notes.txt"
    ]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no links")
def test_a_link_that_leads_out_of_a_folder_is_refused(lamina: Lamina, pages: Path, folder: Path) -> None:
    (folder / "secret.txt").write_text("secret", encoding="utf-8")
    (pages / "link.txt").symlink_to(folder / "secret.txt")
    run = lamina("ingest", "pages")
    assert (run.code, "leads out" in run.err) == (1, True)
    assert "pages/link.txt" not in sources(lamina)
