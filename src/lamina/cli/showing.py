"""Commands that show what Lamina does: demo, version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lamina._version import __version__
from lamina.cli.command import command
from lamina.cli.session import Session

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "demo", examples=["lamina demo", "lamina demo --keep demo.db"], scoped=False)(demo)
    command(app, "version", examples=["lamina version", "lamina version --json"], scoped=False)(version)


def demo(
    session: Session,
    *,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="A new file to keep the demo's database in.", show_default=False)
    ] = None,
) -> None:
    """Show in half a minute what a memory is good for, in a database of its own."""
    if session.as_json:
        raise typer.BadParameter("the demo is for people", param_hint="--json")
    from lamina.demo import run_demo

    raise typer.Exit(run_demo(path=keep))


def version(session: Session) -> None:
    """Print the versions of Lamina and of what it stands on."""
    import platform
    import sqlite3

    facts = {"lamina": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    if session.as_json:
        from lamina.cli.output import print_json

        print_json(facts)
    else:
        typer.echo(f"lamina {facts['lamina']} (Python {facts['python']}, SQLite {facts['sqlite']})")
