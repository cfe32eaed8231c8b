"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from lamina._version import __version__
from lamina.cli import (
    asking,
    backups,
    configuration,
    copying,
    documents,
    erasing,
    evaluations,
    fading,
    health,
    mcp_serving,
    memories,
    packs,
    quarantine,
    serving,
    showing,
    threads,
    tokens,
    transfer,
)
from lamina.cli.command import show_help_alone

__all__ = ["app"]

app = typer.Typer(
    name="lamina",
    help="Remember things for agents and people, and find them again.\n\nKeeps everything in one file on this "
    "machine, unless you say otherwise; `lamina config show` tells what is in force and why.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    show_help_alone(context)


for group in (
    memories,
    asking,
    threads,
    documents,
    packs,
    fading,
    quarantine,
    transfer,
    copying,
    health,
    backups,
    erasing,
    configuration,
    showing,
    evaluations,
    serving,
    tokens,
    mcp_serving,
):
    group.register(app)
