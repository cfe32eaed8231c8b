from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lamina.cli.app import app
from lamina.cli.command import SHARED
from lamina.settings import EmbeddingConfig, JwtConfig, MemoryConfig, RateLimit, ScoringConfig, ServerConfig

DOCS = Path(__file__).parents[2] / "docs"


def leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        if command.params and len(path) > 1:  # it does something alone
            yield path, command
        for name, below in command.commands.items():
            yield from leaves(below, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(get_command(app), ("lamina",)))
EVERY = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


def section(title: str) -> str:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    _, found, rest = page.partition(f"\n### {title}\n")
    assert found, f"docs/cli.md has no section {title!r}"
    return rest.partition("\n### ")[0]


def examples(command: Any) -> list[str]:
    return [line.strip() for line in command.help.partition("Examples:\n")[2].splitlines()]


def test_all_the_commands_are_there() -> None:
    wanted = "remember recall list get forget decay stats import export copy reembed doctor vacuum demo version".split()
    wanted += [
        "backup",
        "check",
        "erase",
        "restore",
        "migrate-v1",
        "serve",
        "ask",
        "context",
        "chat",
        "ingest",
        "config show",
        "config path",
    ]
    wanted += ["mcp", "mcp install", "mcp uninstall", "quarantine", "release", "forget-source"]
    wanted += [f"eval {name}" for name in "recall lifecycle precision transcripts documents context reductions".split()]
    wanted += [f"docs {name}" for name in "list show search remove clear stats".split()]
    wanted += [f"packs {name}" for name in "list show create add search fade scrub pin unpin archive restore".split()]
    wanted += [f"thread {name}" for name in "list show add history compact extract archive unarchive delete".split()]
    wanted += [f"token {name}" for name in "create list revoke".split()]
    assert sorted(" ".join(path[1:]) for path in COMMANDS) == sorted(wanted)


@EVERY
def test_each_command_and_its_options_are_documented(path: tuple[str, ...]) -> None:
    text = section(" ".join(path))
    shared = section("Options of every command")
    for parameter in COMMANDS[path].params:
        names = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
        for name in names:
            assert f"`{name}`" in (shared if parameter.name in SHARED else text)


@EVERY
def test_each_command_has_the_shared_options_and_a_word_of_help_on_all(path: tuple[str, ...]) -> None:
    parameters = {parameter.name: parameter for parameter in COMMANDS[path].params}
    assert parameters.keys() >= SHARED.keys()
    assert [name for name, parameter in parameters.items() if not parameter.help] == []


@EVERY
def test_the_help_of_each_command_begins_with_what_it_does_and_ends_with_examples(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    first = command.help.splitlines()[0]
    verb = first.split()[0].rstrip(",")
    assert verb.istitle()
    assert not verb.endswith("s")
    assert first.endswith(".")
    assert examples(command)


@EVERY
def test_each_example_is_a_call_that_the_command_takes(path: tuple[str, ...]) -> None:
    for example in examples(COMMANDS[path]):
        words = shlex.split(example)
        start = words.index("lamina")
        assert tuple(words[start : start + len(path)]) == path
        end = next((index for index in range(start, len(words)) if words[index] in {"|", ">"}), len(words))
        with COMMANDS[path].make_context(path[-1], words[start + len(path) : end]):
            pass


@pytest.mark.parametrize("model", [MemoryConfig, ScoringConfig, EmbeddingConfig, ServerConfig, JwtConfig, RateLimit])
def test_each_setting_is_documented(model: Any) -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert [name for name in model.model_fields if f"`{name}`" not in page] == []
