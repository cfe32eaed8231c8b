from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lamina.cli.session import Session

Lamina = Callable[..., Any]


def test_a_file_system_s_refusal_is_one_line(lamina: Lamina) -> None:
    run = lamina("export", "x" * 300)
    assert (run.code, run.err.startswith("Error: File name too long: ")) == (1, True)


def test_input_that_is_no_utf_8_is_refused(lamina: Lamina) -> None:
    run = lamina("remember", stdin=b"caf\xe9")
    assert (run.code, run.err) == (1, "Error: the input is not UTF-8. Convert it first\n")


def test_a_defect_of_ours_is_one_line_as_well(lamina: Lamina, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: Session) -> None:
        raise KeyError("a\nb")

    monkeypatch.setattr(Session, "engine", broken)
    run = lamina("list")
    assert run.code == 1
    assert run.err == "Error: KeyError: 'a\\nb'. This is a defect; LAMINA_DEBUG=1 shows where\n"


def test_an_interrupt_is_exit_code_130(lamina: Lamina, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_self: Session) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "engine", interrupted)
    run = lamina("list")
    assert (run.code, run.out, run.err) == (130, "", "")


def test_without_a_command_it_shows_what_there_is(lamina: Lamina) -> None:
    run = lamina()
    assert (run.code, "Usage: lamina" in run.out, "remember" in run.out) == (0, True, True)


@pytest.mark.parametrize("group", ["config", "eval", "thread", "docs"])
def test_a_group_without_a_command_shows_what_there_is(lamina: Lamina, group: str) -> None:
    run = lamina(group)
    assert (run.code, run.err, f"Usage: lamina {group}" in run.out) == (0, "", True)


def test_an_error_that_holds_line_breaks_stays_one_line(lamina: Lamina) -> None:
    run = lamina("get", "a\nb")
    assert (run.code, run.err.count("\n")) == (1, 1)
