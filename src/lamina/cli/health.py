"""Commands on the state of the store: stats, doctor, check, vacuum."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina._version import __version__
from lamina.cli.command import command
from lamina.cli.session import Session
from lamina.errors import LaminaError, Unsupported

if TYPE_CHECKING:
    from lamina.kernel.checks import Finding
    from lamina.memory.statistics import EngineStats
    from lamina.settings import LaminaConfig

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "stats", examples=["lamina stats", "lamina stats --tenant acme --json"], scoped=False)(stats)
    command(app, "doctor", examples=["lamina doctor", "lamina doctor --db notes.db --json"], scoped=False, tells=True)(
        doctor
    )
    command(app, "check", examples=["lamina check", "lamina check --repair --json"], scoped=False, tells=True)(check)
    command(app, "vacuum", examples=["lamina vacuum", "lamina vacuum --db notes.db --json"], scoped=False)(vacuum)


async def stats(session: Session) -> None:
    """Count the tenant's memories, and tell the state of their vectors."""
    async with session.engine() as engine:
        found = await engine.stats()
    facts = _stats_facts(found)
    if not session.as_json:
        facts["by_layer"] = [f"{layer} {count}" for layer, count in found.by_layer.items()]
    _print(session, facts)


async def doctor(session: Session) -> None:
    """Check settings, database, models, threads, documents and packs, and tell what is wrong; exits with 1 if so.

    Contacts no model: it says which ones would be used, and why. Warnings alone do not make it fail.
    """
    from lamina.kernel.checks import Status, examine

    facts, findings = await _facts(session), await examine(lambda: _config(session))
    wrong = [each for each in findings if each.status is Status.ERROR]
    if session.as_json:
        told = {key: value for key, value in facts.items() if value is not None}
        problems = [f"{each.found.rstrip('.')}. {each.remedy}" for each in wrong]
        _print(session, told | {"problems": problems, "checks": [dataclasses.asdict(each) for each in findings]})
    else:
        _print(session, {name: value for name, value in facts.items() if name != "by_layer"})
        _tell(findings)
    if wrong:
        raise typer.Exit(1)


async def check(
    session: Session,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="First make anew what the rows tell; nothing that can be read is dropped.")
    ] = False,
) -> None:
    """Read everything that is kept and compare it: rows, indexes, vectors, counts, links; exits with 1 if it is wrong.

    Memories, documents, threads and packs, in SQLite of all tenants. With --repair the text index, the blocks and
    counts of vectors, the counts of threads and the rows of packs are made anew where they are wrong, and it says so.
    """
    async with session.kernel() as kernel:
        report = await kernel.check_integrity(repair=repair)
    if session.as_json:
        _print(session, dataclasses.asdict(report) | {"is_sound": report.is_sound})
    else:
        for each in report.repaired:
            typer.echo(f"Mended in {each.part}: {each.found}.")
        for each in report.problems:
            typer.echo(f"Problem in {each.part}: {each.found}.")
        if report.unchecked:
            typer.echo(f"Not looked at, for its backend has no check: {', '.join(report.unchecked)}.")
        typer.echo("Nothing contradicts itself." if report.is_sound else "Something is wrong.")
    if not report.is_sound:
        raise typer.Exit(1)


async def vacuum(session: Session) -> None:
    """Give back the room that deletions have left in the database file, and merge its text indexes.

    For SQLite alone. The whole file is written anew, with all tenants, threads, packs and documents; other processes
    wait meanwhile. While one of them writes, or reads on, it is refused, and nothing is changed.
    """
    from lamina.cli.output import print_json

    async with session.engine() as engine:
        work = getattr(engine.adapter, "vacuum", None)
        if work is None:
            remedy = "It gives up room by upkeep of its own, such as PostgreSQL by VACUUM."
            raise Unsupported(f"The {engine.adapter.name} backend", "`lamina vacuum`", remedy)
        done = await work()
    if session.as_json:
        print_json({"bytes_before": done.before, "bytes_after": done.after})
    else:
        typer.echo(f"{done.before:,} bytes before, {done.after:,} after.")


async def _facts(session: Session) -> dict[str, Any]:
    """Versions, settings and counts, as far as they can be told; what is in the way is among the findings."""
    import platform
    import sqlite3

    facts: dict[str, Any] = {
        "lamina": __version__,
        "python": f"{platform.python_version()} on {platform.system()}",
        "sqlite": sqlite3.sqlite_version,
    }
    with contextlib.suppress(LaminaError):
        facts |= _settings_facts(session)
        database = session.memory.path
        if database is not None and str(database) != ":memory:" and not database.exists():
            facts["memories"] = "none yet: the database is made by the first `lamina remember`"
        else:
            async with session.engine() as engine:
                facts |= _stats_facts(await engine.stats())
    return facts


def _config(session: Session) -> LaminaConfig:
    """The settings as a command that keeps its data takes them."""
    kept = {"memory": session.memory, "data_dir": session.settings.data_dir(), "ephemeral": False}
    return session.settings.config.model_copy(update=kept)


def _tell(findings: Sequence[Finding]) -> None:
    """What is wrong and what is doubtful, one a line, and how many checks found nothing."""
    from lamina.cli.output import console, printable
    from lamina.kernel.checks import Status

    words = {Status.ERROR: "Problem", Status.WARNING: "Warning"}
    counts = {status: sum(each.status is status for each in findings) for status in Status}
    for status, word in words.items():
        for each in findings:
            if each.status is status:
                line = f"{word}: {' '.join(each.found.split()).rstrip('.')}. {each.remedy} ({each.id})"
                console().print(printable(line), soft_wrap=True)
    typer.echo(f"Checks: {counts[Status.OK]} of {len(findings)} found nothing.")
    if counts[Status.ERROR]:
        typer.echo("Something is wrong.")
    else:
        typer.echo("Nothing is broken; see the warnings." if counts[Status.WARNING] else "All is well.")


def _settings_facts(session: Session) -> dict[str, Any]:
    from lamina.settings import redacted

    settings, memory = session.settings, session.memory
    facts: dict[str, Any] = {
        "settings": [str(file) for file in settings.files] or "no file",
        "tenant": memory.tenant,
        "database": redacted(memory.url or memory.path) or memory.adapter_name(),
        "embedding": _embedder_choice(session),
    }
    if memory.path is not None and memory.path.exists():
        facts["database_file"] = _file_facts(memory.path)
    return facts


def _embedder_choice(session: Session) -> str:
    embedding = session.settings.config.memory.embedding
    if embedding is None or (embedding.provider is None and embedding.model is None):
        return "builtin, the default: it runs on this machine"
    why = session.settings.origin("memory.embedding.provider" if embedding.provider else "memory.embedding.model")
    named = embedding.spec() if embedding.provider else f"builtin:{embedding.model}"
    return f"{named}, as said by {why}"


def _file_facts(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size / 1024:,.0f} KiB, mode {status.st_mode & 0o777:o}"


def _stats_facts(found: EngineStats) -> dict[str, Any]:
    facts = dataclasses.asdict(found)
    facts["capabilities"] = list(found.capabilities)
    facts["fingerprint"] = None if found.fingerprint is None else str(found.fingerprint)
    return facts


def _print(session: Session, facts: dict[str, Any]) -> None:
    from lamina.cli.output import print_facts, print_json

    if session.as_json:
        print_json(facts)
    else:
        print_facts(facts)
