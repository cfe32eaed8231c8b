from __future__ import annotations

import os
import sys

import pytest

from lamina.errors import InvalidInput, InvalidType
from lamina.settings.rag import RagConfig


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "docs/index.md": "# Index\n\nThe ferry leaves at nine.",
        "docs/guide/use.md": "# Use\n\nRing the bell.",
        "docs/guide/deep/notes.txt": "Some notes on piers.",
        "docs/picture.png": "no text",
        "docs/.hidden.md": "hidden",
        "docs/.git/config.md": "hidden too",
        "docs-old/index.md": "# Old index\n\nThe ferry left at eight.",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "docs"


async def sources(rag, **options):
    return [head.source for head in await rag.list_documents(**options)]


async def test_a_folder_is_taken_in_with_progress_and_again_without_change(rag, folder):
    steps = []
    report = await rag.ingest_directory("docs", progress=lambda done, total: steps.append((done, total)))
    expected = ["docs/guide/deep/notes.txt", "docs/guide/use.md", "docs/index.md"]
    assert report.ingested == expected == await sources(rag)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert (report.unchanged, report.failed, report.removed) == ([], [], [])
    again = await rag.ingest_directory("docs")
    assert (again.ingested, again.unchanged) == ([], expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pattern": "*.md"}, ["guide/use.md", "index.md"]),
        ({"pattern": "guide/*"}, ["guide/use.md"]),
        ({"pattern": "guide/**"}, ["guide/deep/notes.txt", "guide/use.md"]),
        ({"pattern": "**/*.md"}, ["guide/use.md", "index.md"]),
        ({"pattern": ["index.??", "*.txt"]}, ["guide/deep/notes.txt", "index.md"]),
        ({"exclude": "guide/**"}, ["index.md"]),
        ({"exclude": ["*.txt", "use.*"]}, ["index.md"]),
        ({"pattern": "*.rst"}, []),
    ],
)
async def test_globs_choose_files(rag, folder, options, expected):
    report = await rag.ingest_directory(folder, prefix="", **options)
    assert report.ingested == expected


async def test_one_bad_file_never_stops_the_others(open_pipeline, tmp_path):
    rag = await open_pipeline(config=RagConfig(max_bytes=10_000))
    for number in range(27):
        (tmp_path / f"{number:02}.md").write_text(f"The ferry number {number}.")
    (tmp_path / "02.md").write_text("x" * 10_001)
    (tmp_path / "03.md").write_text(" \n ")
    (tmp_path / "04.md").write_bytes(b"\xff\xff\xff")
    (tmp_path / "05.pdf").write_bytes(b"%PDF nonsense")
    report = await rag.ingest_directory(tmp_path, prefix="all", exclude="*.db*")
    assert len(report.ingested) == 24
    reasons = {each.source: each.reason for each in report.failed}
    assert sorted(reasons) == ["all/02.md", "all/03.md", "all/04.md", "all/05.pdf"]
    assert "10001 bytes" in reasons["all/02.md"]
    assert "blank" in reasons["all/03.md"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
async def test_links_out_of_the_folder_are_refused_and_those_inside_followed(rag, folder, tmp_path):
    (tmp_path / "secret.md").write_text("the secret ferry")
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "outside").symlink_to(tmp_path / "docs-old")
    (folder / "in.md").symlink_to(folder / "index.md")
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    (folder / "loop").symlink_to(folder)
    (folder / "self.md").symlink_to(folder / "self.md")
    (folder / ".env").write_text("the secret ferry")
    (folder / "notes.txt").symlink_to(folder / ".env")
    report = await rag.ingest_directory("docs")
    assert "docs/in.md" in report.ingested
    assert len(report.ingested) == 4
    assert {each.source for each in report.failed} == {
        "docs/out.md", "docs/gone.md", "docs/self.md", "docs/notes.txt",
    }  # fmt: skip
    assert "secret" not in await rag.get_context("the secret ferry", top_k=20)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
async def test_a_pipe_is_never_opened(rag, folder):
    os.mkfifo(folder / "pipe.md")
    report = await rag.ingest_directory("docs")
    assert [each.source for each in report.failed] == ["docs/pipe.md"]
    with pytest.raises(InvalidInput, match="no regular file"):
        await rag.ingest_file(folder / "pipe.md")


async def test_pruning_removes_only_documents_of_the_folder_whose_file_is_gone(rag, folder):
    await rag.ingest_directory("docs")
    await rag.ingest_directory("docs-old")
    await rag.ingest("Written by hand.", "docs/by-hand.md")
    await rag.ingest("Somebody else's.", "docs/index.md", owner="mira")
    (folder / "index.md").unlink()
    (folder / "guide/use.md").write_bytes(b"\xff now it fails")
    (folder.parent / "docs-old/index.md").unlink()
    kept = await rag.ingest_directory("docs")
    assert kept.removed == []
    report = await rag.ingest_directory("docs", pattern="*.md", prune=True)
    assert report.removed == ["docs/index.md"]
    assert await sources(rag) == [
        "docs-old/index.md",
        "docs/by-hand.md",
        "docs/guide/deep/notes.txt",
        "docs/guide/use.md",
        "docs/index.md",
    ]


async def test_the_same_name_of_another_folder_is_another_folder(rag, folder, tmp_path, monkeypatch):
    await rag.ingest_directory("docs")
    (tmp_path / "elsewhere/docs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    report = await rag.ingest_directory("docs", prune=True)
    assert report.removed == []
    assert len(await sources(rag)) == 3


async def test_owner_and_metadata_hold_for_every_file(rag, folder):
    await rag.ingest_directory("docs", owner="mira", category="manual")
    assert await rag.retrieve("ferry", owner="tomas") == []
    [best] = await rag.retrieve("ferry leaves", owner="mira", top_k=1, filter={"category": "manual"})
    assert best.source == "docs/index.md"


async def test_a_file_is_taken_in_under_its_path_or_another_source(rag, folder):
    await rag.ingest_file("docs/index.md", category="x")
    await rag.ingest_file(folder / "index.md", source="front page")
    assert await sources(rag) == ["docs/index.md", "front page"]


@pytest.mark.parametrize("path", ["nowhere.md", "docs", "nul\0.md", "docs/picture.png", "", "\ud800.md", "a" * 5_000])
async def test_a_file_that_cannot_be_read_is_refused(rag, folder, path):
    with pytest.raises(InvalidInput) as caught:
        await rag.ingest_file(path)
    assert caught.value.field == "path"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
async def test_a_file_whose_name_is_no_text_is_told_in_words_that_can_be_written(rag, folder):
    (folder / os.fsdecode(b"odd\xff.md")).write_text("odd")
    report = await rag.ingest_directory("docs")
    assert [each.source for each in report.failed] == ["docs/odd\ufffd.md"]


@pytest.mark.parametrize("path", ["nowhere", "docs/index.md", "nul\0", "", "\ud800", "a" * 5_000])
async def test_what_is_no_folder_is_refused(rag, folder, path):
    with pytest.raises(InvalidInput, match="path"):
        await rag.ingest_directory(path)


async def test_arguments_of_a_wrong_type_are_refused(rag, folder):
    with pytest.raises(InvalidType):
        await rag.ingest_file(5)
    with pytest.raises(InvalidType):
        await rag.ingest_directory("docs", pattern=[5])
    for options in ({"path": 5}, {"path": b"docs"}, {"path": "docs", "pattern": 5}, {"path": "docs", "prefix": 5}):
        with pytest.raises(InvalidType):
            await rag.ingest_directory(**options)
    with pytest.raises(InvalidInput, match="chunk_overlap"):
        await rag.ingest_directory("docs", chunk_size=5, chunk_overlap=5)
    with pytest.raises(InvalidInput, match="metadata"):
        await rag.ingest_directory("docs", page=5)
    assert await rag.list_documents() == []
