"""Texts that are cut and taken in: cutting ends, places are right, structure stays, and no file stops the others."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lamina.errors import InvalidInput
from lamina.providers.tokens import EstimateCounter
from lamina.rag.chunking import ChunkOptions, ChunkStrategy, chunk_text

ESTIMATE = EstimateCounter().count
every_strategy = pytest.mark.parametrize("strategy", list(ChunkStrategy))


def chunks_of(text, strategy, size, overlap=0, count=ESTIMATE):
    return list(chunk_text(text, ChunkOptions(strategy, size, overlap), count))


def covered(text, chunks):
    """The characters that show and are in no chunk."""
    held = set()
    for chunk in chunks:
        held.update(range(chunk.start, chunk.end))
    return "".join(letter for place, letter in enumerate(text) if place not in held and not letter.isspace())


@pytest.mark.case("B119")
@every_strategy
@pytest.mark.parametrize("rows", [1, 40])
async def test_a_table_with_a_wide_row_is_cut_with_a_number_of_counts_in_proportion(strategy, rows):
    wide = "| " + "w" * 900 + " | x |\n"
    text = "| a | b |\n|---|---|\n" + wide * rows + "| 1 | 2 |\n"
    calls = []

    def count(piece):
        calls.append(len(piece))
        return ESTIMATE(piece)

    chunks = chunks_of(text, strategy, 100, 20, count)
    assert covered(text, chunks) == ""
    assert sum(calls) <= 60 * len(text)


@pytest.mark.case("B121")
@every_strategy
@pytest.mark.parametrize("overlap", [300, 512, 600])
async def test_a_large_overlap_makes_progress_or_is_refused(strategy, overlap):
    text = "short line\n" * 800
    if overlap >= 512:
        with pytest.raises(InvalidInput, match="chunk_overlap"):
            chunks_of(text, strategy, 512, overlap)
        return
    chunks = chunks_of(text, strategy, 512, overlap)
    starts = [chunk.start for chunk in chunks]
    assert starts == sorted(set(starts))
    assert len(chunks) <= len(text)
    assert covered(text, chunks) == ""


@pytest.mark.case("B122")
@every_strategy
async def test_of_look_alikes_each_chunk_knows_its_own_place(strategy):
    text = "ping pong ping pong ping"
    chunks = chunks_of(text, strategy, 4, 2)
    assert covered(text, chunks) == ""
    for before, after in pairwise(chunks):
        assert before.start < after.start <= before.end + 1
    for chunk in chunks:
        assert text[chunk.start : chunk.end].strip()


@pytest.mark.case("B124")
@every_strategy
async def test_a_page_is_that_of_the_first_character_and_never_beyond_the_last(strategy):
    pages = [f"Page {number} tells of the harbour. " * 4 for number in (1, 2, 3)]
    text = "\f".join(pages)
    chunks = chunks_of(text, strategy, 12, 2)
    assert {chunk.page for chunk in chunks} == {1, 2, 3}
    for chunk in chunks:
        shown = len(text[: chunk.end]) - len(text[chunk.start : chunk.end].lstrip())
        assert chunk.page == text[:shown].count("\f") + 1


@pytest.mark.case("B125")
@every_strategy
async def test_what_looks_like_a_heading_inside_code_drops_nothing(strategy):
    text = "An opening paragraph.\n\n```sh\n# note\nrun --fast\n```\n\n# A heading\n\nAnd the rest of it.\n"
    for size in (5, 12, 200):
        assert covered(text, chunks_of(text, strategy, size)) == ""


@pytest.mark.case("B25")
@every_strategy
async def test_no_chunk_is_blank(strategy):
    text = "# One\n\n\n \t\n\n\n# Two\n\n\u200b\n\n\f\f\n# Three\n"
    assert all(text[chunk.start : chunk.end].strip(" \n\t\f\u200b") for chunk in chunks_of(text, strategy, 3))


@pytest.mark.case("B127")
async def test_a_table_of_sixty_rows_is_cut_between_rows_and_each_part_has_the_header():
    header = "| " + " | ".join(f"column {number}" for number in range(8)) + " |\n" + "|---" * 8 + "|\n"
    rows = ["| " + " | ".join(f"cell {row} {number}" for number in range(8)) + " |\n" for row in range(60)]
    text = header + "".join(rows)
    chunks = chunks_of(text, ChunkStrategy.RECURSIVE, 300)
    assert len(chunks) > 3
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert piece.startswith("| ")
        assert piece.rstrip("\n").endswith("|")
        assert all(line + "\n" in [*rows, *header.splitlines(keepends=True)] for line in piece.splitlines())
        assert piece.startswith(header) or chunk.table_header == header.rstrip("\n") or chunk.table_header == header


@pytest.mark.case("B128")
async def test_a_shorter_edition_leaves_nothing_of_the_longer_one(kernel):
    long, short = (
        "\n\n".join(f"Chapter {n} of {name}. " * 60 for n in range(parts)) for name, parts in (("old", 10), ("new", 4))
    )
    id = await kernel.rag.ingest(long, "book.md", chunk_size=150)
    before = len(await kernel.rag.chunks(id))
    assert await kernel.rag.ingest(short, "book.md", chunk_size=150) == id
    chunks = await kernel.rag.chunks(id)
    assert len(chunks) < before
    assert not any("of old" in chunk.content for chunk in chunks)
    found = await kernel.rag.retrieve("chapter of old", top_k=100)
    assert {chunk.id for chunk in found} <= {chunk.id for chunk in chunks}
    assert (await kernel.rag.stats()).chunks == len(chunks)


@pytest.mark.case("B130")
async def test_two_hundred_and_one_parts_are_there_after_one_run_and_after_two(kernel):
    text = "\n\n".join(f"Part {number} of the log, {'with words ' * 8}" for number in range(201))
    for _ in range(2):
        id = await kernel.rag.ingest(text, "log.md", chunk_size=30, chunk_overlap=0)
        chunks = await kernel.rag.chunks(id)
        said = "\n".join(chunk.content for chunk in chunks)
        assert all(f"Part {number} of the log" in said for number in range(201))


@pytest.mark.case("B131")
async def test_of_twenty_seven_files_one_that_is_too_large_is_told_and_the_others_are_there(tmp_path, kernel):
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(27):
        (folder / f"n{number:02d}.md").write_text(f"Note {number}: the lamp is lit.\n", encoding="utf-8")
    kernel.rag.config = kernel.rag.config.model_copy(update={"max_bytes": 100_000})
    (folder / "n01.md").write_text("word " * 340_000, encoding="utf-8")
    report = await kernel.rag.ingest_directory(folder)
    assert len(await kernel.rag.list_documents()) == 26
    assert [failed.source.endswith("n01.md") for failed in report.failed] == [True]
