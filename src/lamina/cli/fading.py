"""Commands that go over the whole store: decay, reembed."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from lamina.cli.command import command
from lamina.cli.session import Session
from lamina.cli.values import read_duration

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "decay", examples=["lamina decay", "lamina decay --factor 0.9 --older-than 7d -u mira"])(decay)
    command(app, "reembed", examples=["lamina reembed", "lamina reembed --missing"])(reembed)


async def decay(
    session: Session,
    *,
    factor: Annotated[float, typer.Option("--factor", help="What relevance is multiplied by.")] = 0.95,
    min_relevance: Annotated[float, typer.Option("--min-relevance", help="The floor.")] = 0.1,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only memories not changed for so long: 24h, 7d.")
    ] = "24h",
) -> None:
    """Let old memories fade: one cycle, down to a floor. Calling it twice fades twice."""
    age = read_duration(older_than)
    if age is None:
        raise typer.BadParameter(f"{older_than!r} is no duration such as 24h or 7d", param_hint="--older-than")
    from lamina.cli import output

    async with session.engine() as engine:
        with output.progress_bar("Fading"):
            report = await engine.decay(
                factor=factor,
                min_relevance=min_relevance,
                older_than=age,
                owner=session.reader,
                namespace=session.namespace,
            )
    if session.as_json:
        output.print_json(dataclasses.asdict(report))
    else:
        typer.echo(f"{report.decayed} of {report.scanned} old memories faded; {report.floored} are at the floor.")


async def reembed(
    session: Session,
    *,
    missing: Annotated[bool, typer.Option("--missing", help="Only memories that have no vector.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Make every vector anew, whoever made it.")] = False,
) -> None:
    """Make the vectors of the whole tenant with the configured embedder.

    Needed after the embedder was changed. May be interrupted and called again.
    """
    from lamina.cli import output

    async with session.engine() as engine:
        with output.progress_bar("Embedding") as progress:
            if missing:
                report = await engine.reembed_missing(progress=progress)
            else:
                report = await engine.reembed(force=force, progress=progress)
    if session.as_json:
        output.print_json(dataclasses.asdict(report))
    else:
        typer.echo(f"{report.embedded} memories embedded, {report.skipped} had their vector, {report.failed} failed.")
    if report.failed:
        raise typer.Exit(1)
