"""Writes the generated parts of the documents; with --check only says whether one is out of date.

CHANGELOG.md        what has changed since the last release, from the notes in changes/
docs/adapters.md    which adapter can do what, from the adapter classes
docs/case-table.md  which tests hold against which kind of fault, from tests/cases
docs/cli.md         every command and its options, from the commands themselves
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import case_table
from typer.main import get_command

from lamina.cli.app import app
from lamina.cli.command import SHARED
from lamina.ports.memory_adapter import Capability
from lamina.registry import adapter_names, load_adapter

ROOT = Path(__file__).parents[1]
# Google's libraries tell whoever loads the Firestore adapter that the grpcio of the tests is older than they like.
warnings.filterwarnings("ignore", "(Package google.* depends on grpcio|grpcio < )", FutureWarning)
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")


def unreleased() -> str:
    """The notes by kind, in the order of their file names."""
    parts = []
    for kind in KINDS:
        notes = [path.read_text(encoding="utf-8").strip() for path in sorted((ROOT / "changes").glob(f"*.{kind}.md"))]
        if notes:
            items = "\n".join("- " + note.replace("\n", "\n  ") for note in notes)
            parts.append(f"### {kind.capitalize()}\n\n{items}")
    return "\n\n".join(parts) or "Nothing yet."


def capability_matrix() -> str:
    """A table with a row for each adapter and a column for each capability."""
    rows = [["adapter", *(each.value for each in Capability)], ["---"] * (len(Capability) + 1)]
    for name in adapter_names():
        adapter = load_adapter(name)
        rows.append([name, *("yes" if each in adapter.capabilities else "no" for each in Capability)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def command_reference() -> str:
    """A section for each command: what it does, its options, examples."""
    commands = dict(leaves(get_command(app), "lamina"))
    shared = [each for each in next(iter(commands.values())).params if each.name in SHARED]
    parts = [f"### Options of every command\n\n{option_table(shared)}"]
    for name, command in commands.items():
        text, _, examples = command.help.partition("\n\n\b\nExamples:\n")
        own = [each for each in command.params if each.name not in SHARED]
        lines = "\n".join(line.strip() for line in examples.splitlines())
        parts.append(f"### {name}\n\n{text}\n\n{option_table(own)}\n\n```sh\n{lines}\n```".replace("\n\n\n\n", "\n\n"))
    return "\n\n".join(parts)


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that is no mere group, with its full name."""
    if hasattr(command, "commands"):
        if command.params and " " in name:  # it does something alone
            yield name, command
        for part, below in command.commands.items():
            yield from leaves(below, f"{name} {part}")
    else:
        yield name, command


def option_table(parameters: list[Any]) -> str:
    """A row for each option and argument; empty without any."""
    if not parameters:
        return ""
    rows = ["| option | what it is | default |", "| --- | --- | --- |"]
    for each in parameters:
        names = each.opts if each.param_type_name == "option" else [each.name.upper()]
        unsaid = each.required or each.default is None or each.default is False
        default = "" if unsaid else f"`{each.default}`"
        rows.append(f"| {', '.join(f'`{name}`' for name in names)} | {each.help} | {default} |")
    return "\n".join(rows)


PARTS = {
    "CHANGELOG.md": unreleased,
    "docs/adapters.md": capability_matrix,
    "docs/case-table.md": lambda: case_table.page(ROOT),
    "docs/cli.md": command_reference,
}
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->"


def renewed(text: str, part: str) -> str:
    """The document's text with the generated part in place."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{part}\n\n{END}{after}"


def main(check: bool) -> int:
    """0, or 1 if a document is out of date and only to be checked."""
    status = 0
    for name, make in PARTS.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        new = renewed(text, make())
        if new == text:
            continue
        if check:
            print(f"{name} is out of date: run `make generate`", file=sys.stderr)
            status = 1
        else:
            path.write_text(new, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
