"""Commands that show what Lamina does: demo, eval, version."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lamina._version import __version__
from lamina.cli.command import command, group
from lamina.cli.session import Session
from lamina.domain.recall import SearchMode

if TYPE_CHECKING:
    from lamina.evaluation.retrieval import Report

__all__ = ["register"]

_EVALUATED: Final = {"embedding", "scoring", "version", "default_relevance"}
"""The memory settings that an evaluation is about."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "demo", examples=["lamina demo", "lamina demo --keep demo.db"], scoped=False)(demo)
    command(app, "version", examples=["lamina version", "lamina version --json"], scoped=False)(version)
    evaluations = group("Measure how much of the evidence is recalled, on a labelled set.")
    command(
        evaluations,
        "locomo",
        examples=["lamina eval locomo path/to/locomo", "lamina eval locomo path/to/locomo --mode text --json"],
        scoped=False,
    )(locomo)
    app.add_typer(evaluations, name="eval")


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


_TRICKS = frozenset({"adversarial"})
"""Questions whose premise is false; published figures leave them out."""


async def locomo(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="The folder with corpus.jsonl, queries.jsonl and qrels.tsv.")],
    *,
    mode: Annotated[
        list[SearchMode] | None,
        typer.Option("--mode", "-m", help="Only this mode; may be repeated.", show_default=False),
    ] = None,
    baselines: Annotated[bool, typer.Option("--baselines", help="Also plain FTS5, and rank fusion with it.")] = False,
) -> None:
    """Measure recall on a labelled set of conversations, in a database of its own.

    The set's turns are stored, a namespace for each conversation; then each question is asked. What is shown is
    the share of its evidence among the first results, by category, over all questions, and over all but those
    that are meant to mislead.
    """
    import itertools
    import tempfile

    from lamina.cli import output
    from lamina.evaluation.dataset import load_dataset
    from lamina.evaluation.retrieval import evaluate
    from lamina.memory.factory import create_memory_engine

    dataset = load_dataset(folder)
    given = session.memory
    kept = {name: getattr(given, name) for name in given.model_fields_set & _EVALUATED}
    with tempfile.TemporaryDirectory(prefix="lamina-eval-") as database:
        # Ids that count up, because ties end with the id: the same figures at each run.
        numbered = map("mem_{:08}".format, itertools.count())
        async with await create_memory_engine(
            path=Path(database) / "eval.db", new_id=lambda: next(numbered), **kept
        ) as engine:
            with output.progress_bar("Evaluating") as progress:
                report = await evaluate(
                    dataset,
                    engine,
                    modes=tuple(mode or SearchMode),
                    baselines=baselines,
                    leave_out=_TRICKS,
                    progress=lambda _step, done, total: progress(done, total),
                )
    if session.as_json:
        output.print_json(dataclasses.asdict(report))
    else:
        _print_report(report)


def _print_report(report: Report) -> None:
    from rich.table import Table

    from lamina.cli.output import console

    depths = list(report.figures[0].recall) if report.figures else []
    title = f"{report.dataset}: {report.documents} documents, embedder {report.embedder or 'none'}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("category", "way", "queries", *(f"recall@{depth}" for depth in depths)):
        table.add_column(name)
    for row in report.figures:
        table.add_row(row.category, row.way, str(row.queries), *(f"{row.recall[depth]:.3f}" for depth in depths))
    console().print(table)
