from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Lamina = Callable[..., Any]


def test_export_and_import_carry_memories_over_exactly(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "for a week", "--ttl", "7d", "-u", "mira", "-n", "plans", "--meta", "a.b=[1,2]")
    lamina("recall", "week")
    assert lamina("export", "all.ndjson", "--json").document == {"exported": 1, "file": "all.ndjson"}
    first = (folder / "all.ndjson").read_bytes()
    assert lamina("import", "all.ndjson", "--db", "copy.db").code == 0
    lamina("export", "again.ndjson", "--db", "copy.db")
    assert (folder / "again.ndjson").read_bytes() == first


def test_importing_twice_changes_nothing(lamina: Lamina) -> None:
    lamina("remember", "a note")
    exported = lamina("export").out
    report = lamina("import", "--json", stdin=exported).document
    assert (report["written"], report["skipped"]) == (0, 1)
    assert lamina("export").out == exported


def test_an_export_is_for_its_owner_s_eyes_only(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "a note")
    lamina("export", "all.ndjson")
    if os.name == "posix":
        assert (folder / "all.ndjson").stat().st_mode & 0o777 == 0o600


def test_an_export_that_fails_leaves_the_former_file(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "so that there is a database")
    (folder / "all.ndjson").write_text("the former one", encoding="utf-8")
    assert lamina("export", "all.ndjson", "-n", " ").code == 2
    assert (folder / "all.ndjson").read_text(encoding="utf-8") == "the former one"
    assert [path.name for path in folder.iterdir()] == ["all.ndjson"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_an_export_through_a_link_replaces_what_it_leads_to_and_leaves_the_link(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "x", "--id", "x")
    (folder / "backup").mkdir()
    (folder / "link").symlink_to("backup/all.ndjson")
    for _ in range(2):  # the first time it leads nowhere yet
        assert lamina("export", "link").code == 0
        assert (folder / "link").readlink() == Path("backup/all.ndjson")
        assert '"id":"x"' in (folder / "backup" / "all.ndjson").read_text(encoding="utf-8")
    assert [path.name for path in (folder / "backup").iterdir()] == ["all.ndjson"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_an_export_to_what_is_no_regular_file_is_written_to_it(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "x", "--id", "x")
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert lamina("export", "pipe").code == 0
        assert b'"id":"x"' in os.read(reader, 65536)
    finally:
        os.close(reader)
    assert (folder / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("file", "told"), [("", "name a file"), (".", "is a folder"), ("nowhere/all.ndjson", "there is no folder")]
)
def test_an_export_to_what_can_be_no_file_is_a_wrong_call(lamina: Lamina, folder: Path, file: str, told: str) -> None:
    run = lamina("export", file)
    assert (run.code, run.out) == (2, "")
    assert told in run.err
    assert list(folder.iterdir()) == []


def test_export_keeps_to_the_scope(lamina: Lamina) -> None:
    lamina("remember", "mira's", "-u", "mira")
    lamina("remember", "tomas's", "-u", "tomas", "-l", "session")
    assert [line["owner"] for line in lamina("export", "-u", "mira").lines] == ["mira"]
    assert [line["owner"] for line in lamina("export", "-l", "session").lines] == ["tomas"]


def test_a_file_with_bad_lines_is_not_imported_and_every_bad_line_is_told(lamina: Lamina, folder: Path) -> None:
    (folder / "bad.ndjson").write_text('{"text": "good"}\n{"tex\n\n7\n', encoding="utf-8")
    run = lamina("import", "bad.ndjson")
    assert run.code == 1
    assert "line 2" in run.err
    assert "line 4" in run.err
    assert run.err.count("\n") == 1
    assert lamina("list", "--json").document["total"] == 0
    skipped = lamina("import", "bad.ndjson", "--skip-bad-lines")
    assert (skipped.code, "line 2 was skipped" in skipped.err) == (0, True)
    assert lamina("list", "--json").document["total"] == 1


def test_bytes_that_are_no_utf_8_are_a_bad_line_of_stdin(lamina: Lamina) -> None:
    run = lamina("import", stdin=b'{"text": "good"}\n{"text": "\xff"}\n')
    assert (run.code, "line 2" in run.err, "1 memories were written before" in run.err) == (1, True, True)


def test_lines_of_other_tools_are_taken(lamina: Lamina) -> None:
    line = json.dumps({"id": "m1", "memory": "likes tea", "user_id": "mira"})
    assert lamina("import", "-", stdin=line).out == "1 memory imported, 0 were there already, 0 embedded.\n"
    assert lamina("get", "m1", "--json").document["owner"] == "mira"


def test_replace_overwrites(lamina: Lamina) -> None:
    lamina("remember", "as it was", "--id", "m")
    exported = lamina("export").out
    edited = exported.replace("as it was", "as it is now")
    lamina("import", stdin=edited)
    assert lamina("get", "m", "--json").document["content"] == "as it was"
    lamina("import", "--replace", stdin=edited)
    assert lamina("get", "m", "--json").document["content"] == "as it is now"


def test_a_file_that_is_not_there_is_told_in_one_line(lamina: Lamina) -> None:
    run = lamina("import", "none.ndjson")
    assert (run.code, run.err.count("\n"), "none.ndjson" in run.err) == (2, 1, True)


def test_importing_at_a_terminal_without_a_file_does_not_wait_for_ever(lamina: Lamina) -> None:
    run = lamina("import", terminal=True)
    assert (run.code, "pipe lines in" in run.err) == (2, True)


@pytest.mark.parametrize("name", ["import", "export"])
def test_progress_is_not_shown_where_nobody_looks(lamina: Lamina, name: str) -> None:
    lamina("remember", "a note")
    assert lamina(name).err == ""


def test_a_copy_moves_memories_with_their_vectors_to_another_place(lamina: Lamina, folder: Path) -> None:
    lamina("remember", "tea without sugar", "-u", "mira", "--id", "tea", "--db", "lamina.db")
    lamina("remember", "a red kite", "-u", "tomas", "--db", "lamina.db")
    first = lamina("copy", "--from", "lamina.db", "--to", "sqlite:copy.db", "--to-option", "readers=2", "--json")
    assert (first.document["written"], first.document["present"]) == (2, 0)
    again = lamina("copy", "--from", "lamina.db", "--to", "copy.db")
    assert (again.code, "0 memories copied, 2 were there already" in again.out) == (0, True)
    assert lamina("export", "--db", "copy.db").out == lamina("export", "--db", "lamina.db").out


def test_a_copy_names_what_it_cannot_use(lamina: Lamina) -> None:
    lamina("remember", "tea without sugar", "--db", "lamina.db")
    missing = lamina("copy", "--from", "none.db", "--to", "copy.db")
    assert (missing.code, "there is no database" in missing.err) == (1, True)
    same = lamina("copy", "--from", "lamina.db", "--to", "lamina.db")
    assert (same.code, "the same place" in same.err) == (2, True)
    unknown = lamina("copy", "--from", "lamina.db", "--to", "copy.db", "--to-option", "speed=9")
    assert (unknown.code, "speed" in unknown.err) == (1, True)
    unset = lamina("copy", "--from", "lamina.db", "--to", "copy.db", "--to-option", "api_key=env:NOT_SET")
    assert (unset.code, "the environment has no NOT_SET" in unset.err) == (1, True)
    assert lamina("copy", "--from", "lamina.db", "--to", "copy.db", "--to-option", "speed").code == 2
    assert lamina("copy", "--from", "lamina.db", "--to", "copy.db", "-u", "mira").code == 2
