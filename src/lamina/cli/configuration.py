"""Commands on the settings: config show, config path."""

from __future__ import annotations

import json
from typing import Any, Final

import typer

from lamina.cli.command import command, group
from lamina.cli.session import Session

__all__ = ["register"]

NEVER: Final = "never"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    config = group("Show the settings in force, and where they come from.")
    command(config, "show", examples=["lamina config show", "lamina config show --json"], scoped=False)(show)
    command(config, "path", examples=["lamina config path"], scoped=False)(path)
    app.add_typer(config, name="config")


def show(session: Session) -> None:
    """Show every setting that is in force with its origin; secrets are shortened."""
    values, origins = _in_force(session)
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({name: {"value": value, "origin": origins[name]} for name, value in values.items()})
        return
    from rich.table import Table

    from lamina.cli.output import console, printable

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("setting", no_wrap=True)
    for name in ("value", "from"):
        table.add_column(name, overflow="fold")
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        table.add_row(name, printable(text), printable(origins[name]))
    console().print(table)


def _in_force(session: Session) -> tuple[dict[str, Any], dict[str, str]]:
    """Every setting by its dotted path, with what follows where nothing is said, and where each comes from."""
    from lamina.domain.memory import Layer
    from lamina.settings import redacted

    settings, memory = session.settings, session.memory
    document = redacted(settings.config) | {"memory": redacted(memory), "data_dir": str(settings.data_dir())}
    lifetimes = {layer.value: memory.layer_ttl(layer) for layer in Layer}
    document["memory"]["layer_ttls"] = {
        layer: NEVER if lifetime is None else lifetime.total_seconds() for layer, lifetime in lifetimes.items()
    }
    if memory.working_memory_ttl is None:
        document["memory"]["working_memory_ttl"] = NEVER
    if document["memory"]["embedding"] is None:
        document["memory"]["embedding"] = {"provider": "builtin"}
    values = dict(_leaves(document))
    origins = {name: settings.origin(name) for name in values}
    if memory.path != settings.config.memory.path:  # it follows from the folder
        origins["memory.path"] = origins["memory.provider"] = settings.origin("data_dir")
    origins["memory.working_storage"] = "the command line: each command is a process of its own"
    return values, origins


def path(session: Session) -> None:
    """Show which files are read, and where memories are kept."""
    from lamina.settings import redacted

    settings, memory = session.settings, session.settings.memory()
    facts: dict[str, Any] = {
        "project_file": None if settings.project_file is None else str(settings.project_file),
        "user_file": str(settings.user_file),
        "user_file_exists": settings.user_file in settings.files,
        "data_dir": str(settings.data_dir()),
        "database": redacted(memory.url or memory.path),
    }
    from lamina.cli.output import print_facts, print_json

    if session.as_json:
        print_json(facts)
    else:
        print_facts(facts)


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [leaf for key, each in value.items() for leaf in _leaves(each, f"{path}.{key}" if path else key)]
