from __future__ import annotations

import dataclasses
import io
import os
import shutil
import subprocess
import sysconfig

import pytest
from rich.console import Console

from lamina.demo import run
from lamina.demo.run import demo, run_demo
from lamina.demo.texts import load_questions, load_turns
from lamina.errors import InvalidInput


def console():
    return Console(file=io.StringIO(), width=120)


def printed(console):
    return console.file.getvalue()


async def test_every_expected_memory_is_in_the_top_three_and_owners_stay_apart_and_the_file_still_knows(tmp_path):
    out = console()
    report = await demo(out, path=tmp_path / "demo.db")
    assert report.missed == ()
    assert report.leaked == ()
    assert report.reopened
    assert (report.memories, report.questions, report.found) == (len(load_turns()), 10, 10)
    assert report.context.missing == ()
    assert report.context.leaked == ()
    assert report.as_expected
    assert (tmp_path / "demo.db").is_file()
    text = printed(out)
    assert all(question.question in text for question in load_questions())
    assert text.count("✓") == 11  # each expected memory, and the legend
    assert text.rstrip().splitlines()[-1] == str(report)
    assert f"{report.memories} memories, 10 of 10 questions" in str(report)


def test_the_command_shows_the_demo_and_ends_well(tmp_path):
    command = shutil.which("lamina", path=sysconfig.get_path("scripts"))
    assert command is not None
    environment = {**os.environ, "LAMINA_DATA_DIR": str(tmp_path / "data"), "TMPDIR": str(tmp_path), "NO_COLOR": "1"}
    result = subprocess.run(
        [command, "demo"], capture_output=True, text=True, encoding="utf-8", check=False, env=environment, cwd=tmp_path
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "10 of 10 questions" in result.stdout.rstrip().splitlines()[-1]
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_a_missed_question_is_said_counted_and_the_exit_status(monkeypatch, tmp_path):
    right, wrong = load_questions()[:2]
    wrong = dataclasses.replace(wrong, expected="mira-99")
    monkeypatch.setattr(run, "load_questions", lambda: [right, wrong])
    monkeypatch.setattr(run, "load_turns", lambda: [turn for turn in load_turns() if turn.owner == "mira"])
    out = console()
    assert run_demo(out, path=tmp_path / "demo.db") == 1
    assert "The expected memory mira-99 is not among them." in printed(out)
    assert "1 of 2 questions" in printed(out)


async def test_what_a_stranger_finds_of_another_is_reported_as_leaked(monkeypatch, tmp_path):
    shared = [dataclasses.replace(turn, layer="global") for turn in load_turns() if turn.owner == "mira"]
    monkeypatch.setattr(run, "load_questions", lambda: load_questions()[:1])
    monkeypatch.setattr(run, "load_turns", lambda: shared)
    report = await demo(console(), path=tmp_path / "demo.db")
    assert "mira-15" in report.leaked
    assert not report.as_expected
    assert "memories leaked" in str(report)


async def test_the_demo_does_not_write_into_a_file_that_is_there(tmp_path):
    path = tmp_path / "mine.db"
    path.write_bytes(b"precious")
    with pytest.raises(InvalidInput, match="exists already"):
        await demo(console(), path=path)
    assert path.read_bytes() == b"precious"
