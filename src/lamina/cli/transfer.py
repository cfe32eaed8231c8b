"""Commands that move memories: import, export, migrate-v1."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from lamina.cli.command import command
from lamina.cli.interrupts import interruptible
from lamina.cli.options import Layers
from lamina.cli.session import Session
from lamina.cli.values import counted

if TYPE_CHECKING:
    from lamina.importers.ndjson import ImportReport
    from lamina.memory.engine import MemoryEngine

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "import",
        examples=["lamina import memories.ndjson", "other-tool dump | lamina import - --no-embed"],
        scoped=False,
    )(import_)
    command(
        app,
        "export",
        examples=["lamina export memories.ndjson", "lamina export -u mira | gzip > mira.ndjson.gz"],
    )(export)
    command(
        app,
        "migrate-v1",
        examples=["lamina migrate-v1 old/memory.db", "lamina migrate-v1 old/memory.db --no-embed --json"],
        scoped=False,
    )(migrate_v1)


async def import_(
    session: Session,
    file: Annotated[
        str | None,
        typer.Argument(help="An NDJSON file; `-`, or left out in a pipe: stdin.", show_default=False),
    ] = None,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite memories whose id is there.")] = False,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Import the good lines all the same.")
    ] = False,
    no_embed: Annotated[bool, typer.Option("--no-embed", help="Leave what comes without a vector so.")] = False,
    revive: Annotated[bool, typer.Option("--revive", help="Take what was stored before its owner was erased.")] = False,
) -> None:
    """Import memories from NDJSON: what `lamina export` wrote, or one object with `content` a line.

    A file with a bad line is not imported at all; from stdin, up to the bad line. Importing twice changes nothing.
    Each line says whose memory it is.
    """
    if file is None and sys.stdin.isatty():
        raise typer.BadParameter("give a file, or pipe lines in", param_hint="FILE")
    from lamina.cli import output
    from lamina.importers.ndjson import import_ndjson

    source = _stdin() if file in {None, "-"} else file
    async with session.engine(creates=True) as engine:
        with output.progress_bar("Importing") as progress:
            report = await import_ndjson(
                engine, source, replace=replace, skip_bad_lines=skip_bad_lines, revive=revive, progress=progress
            )
        embedded = 0 if no_embed else await _embed(engine)
    if session.as_json:
        output.print_json(dataclasses.asdict(report) | {"embedded": embedded})
    else:
        _print_report(report, embedded)


async def export(
    session: Session,
    file: Annotated[str, typer.Argument(help="The file to write; `-`: stdout.")] = "-",
    *,
    layer: Layers = None,
    with_embeddings: Annotated[bool, typer.Option("--with-embeddings", help="Take the vectors along.")] = False,
    include_expired: Annotated[bool, typer.Option("--include-expired", help="Also what has expired.")] = False,
) -> None:
    """Export memories as NDJSON, one a line, everything about each.

    Without --owner all owners of the tenant are exported. A file is written whole or not at all; through a link, the
    file that it leads to.
    """
    from lamina.cli import output
    from lamina.importers.ndjson import export_ndjson

    with _target(file) as target:
        async with session.engine() as engine:
            with output.progress_bar("Exporting") as progress:
                count = await export_ndjson(
                    engine,
                    target,
                    with_embeddings=with_embeddings,
                    include_expired=include_expired,
                    progress=progress,
                    owner=session.reader,
                    namespace=session.namespace,
                    layers=layer or None,
                )
    if file == "-":
        return
    if session.as_json:
        output.print_json({"exported": count, "file": file})
    else:
        typer.echo(f"{counted(count)} exported to {file}.")


async def migrate_v1(
    session: Session,
    file: Annotated[
        str,
        typer.Argument(
            help="The SQLite file that version 1 wrote, or postgresql://… for its database.", show_default=False
        ),
    ],
    *,
    no_embed: Annotated[bool, typer.Option("--no-embed", help="Leave them without vectors.")] = False,
) -> None:
    """Copy the memories of version 1 from its SQLite file or PostgreSQL database, which is not changed.

    They keep their ids. Those that are there already are skipped, so doing it twice changes nothing. Rows that
    cannot be stored are told by their number.
    """
    from lamina.cli import output

    async with session.engine(creates=True) as engine:
        report = await engine.migrate_v1(file)
        embedded = 0 if no_embed else await _embed(engine)
    if session.as_json:
        output.print_json(dataclasses.asdict(report) | {"embedded": embedded})
        return
    there = f"{report.skipped} were there already"
    typer.echo(f"{counted(report.written)} migrated, {there}, {report.expired} had expired, {embedded} embedded.")
    for row in report.bad:
        output.note(f"row {row.number} of {row.table} was left out: {row.problem}")
    if report.bad_count > len(report.bad):
        output.note(f"and {report.bad_count - len(report.bad)} more rows.")


async def _embed(engine: MemoryEngine) -> int:
    """Embed what came without a vector, if there is something to embed it with."""
    if engine.embedder is None or (await engine.stats()).reembed_needed:
        return 0
    from lamina.cli.output import progress_bar

    with progress_bar("Embedding") as progress:
        return (await engine.reembed_missing(progress=progress)).embedded


def _print_report(report: ImportReport, embedded: int) -> None:
    from lamina.cli.output import note

    typer.echo(f"{counted(report.written)} imported, {report.skipped} were there already, {embedded} embedded.")
    if report.confirmed:
        typer.echo(f"{report.confirmed} said what is known under another id, which is fresh again.")
    if report.erased:
        note(f"{report.erased} were stored before their owner was erased and were left out; --revive takes them.")
    if report.without_vector:
        note(f"{report.without_vector} vectors were another model's and were left out.")
    for line in report.bad:
        note(f"line {line.number} was skipped: {line.problem}")


def _stdin() -> Iterator[str]:
    """Lines that only a line feed ends, with bytes that are no UTF-8 left for the importer to report."""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape", newline="\n")
    lines = iter(sys.stdin)
    while True:
        with interruptible():
            line = next(lines, None)
        if line is None:
            return
        yield line


@contextmanager
def _target(file: str) -> Iterator[TextIO]:
    """Stdout, or a new file that takes the old one's place only when all is written; only its owner may read it.

    A link stays a link: what it leads to is replaced. What is no regular file, such as a pipe, is written to.
    """
    if file == "-":
        yield sys.stdout
        return
    path = _checked_target(file)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as target:
            yield target
        return
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as target:
            yield target
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _checked_target(file: str) -> Path:
    """The file that is meant, past all links; refused before anything is read if it cannot be one."""
    if not file:
        raise typer.BadParameter("is empty: name a file, or - for stdout", param_hint="FILE")
    given = Path(file)
    if given.is_dir():
        raise typer.BadParameter(f"{file} is a folder: name a file in it", param_hint="FILE")
    path = given if given.exists() and not given.is_file() else Path(os.path.realpath(given))
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}: make it first", param_hint="FILE")
    return path
