"""Commands on the state of the store: stats, doctor."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lamina._version import __version__
from lamina.cli.command import command
from lamina.cli.session import Session
from lamina.cli.values import counted
from lamina.errors import LaminaError

if TYPE_CHECKING:
    from lamina.memory.engine import MemoryEngine
    from lamina.memory.statistics import EngineStats

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "stats", examples=["lamina stats", "lamina stats --tenant acme --json"], scoped=False)(stats)
    command(app, "doctor", examples=["lamina doctor", "lamina doctor --db notes.db --json"], scoped=False, tells=True)(
        doctor
    )


async def stats(session: Session) -> None:
    """Count the tenant's memories, and tell the state of their vectors."""
    async with session.engine() as engine:
        found = await engine.stats()
    facts = _stats_facts(found)
    if not session.as_json:
        facts["by_layer"] = [f"{layer} {count}" for layer, count in found.by_layer.items()]
    _print(session, facts)


async def doctor(session: Session) -> None:
    """Check settings, database and vectors, and tell what is wrong; exits with 1 if something is.

    Contacts no embedder: it says which one would be used, and why.
    """
    import platform
    import sqlite3

    facts: dict[str, Any] = {
        "lamina": __version__,
        "python": f"{platform.python_version()} on {platform.system()}",
        "sqlite": sqlite3.sqlite_version,
    }
    problems: list[str] = []
    try:
        facts |= _settings_facts(session)
        database = session.memory.path
        if database is not None and str(database) != ":memory:" and not database.exists():
            facts["memories"] = "none yet: the database is made by the first `lamina remember`"
        else:
            problems += _access_problems(database)
            async with session.engine() as engine:
                problems += await _check_store(engine)
                found = await engine.stats()
                facts |= _stats_facts(found)
                problems += _vector_problems(found)
    except LaminaError as error:
        problems.append(str(error))
    facts["problems"] = problems
    if session.as_json:
        _print(session, facts)
    else:
        told = {name: value for name, value in facts.items() if name not in {"problems", "by_layer"}}
        _print(session, told)
        for problem in problems:
            typer.echo(f"Problem: {' '.join(problem.split())}")
        typer.echo("Something is wrong." if problems else "All is well.")
    if problems:
        raise typer.Exit(1)


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


def _access_problems(path: Path | None) -> list[str]:
    """Whether others than its owner may read or change the database."""
    if os.name == "nt" or path is None or not path.exists() or not path.stat().st_mode & 0o077:
        return []
    mode = path.stat().st_mode & 0o777
    return [f"Others on this machine may reach the database (mode {mode:o}): run `chmod 600 {path}`."]


async def _check_store(engine: MemoryEngine) -> list[str]:
    """What the adapter itself finds wrong, if it can look."""
    check = getattr(engine.adapter, "check", None)
    return [] if check is None else list(await check())


def _vector_problems(found: EngineStats) -> list[str]:
    if found.reembed_needed:
        made, configured = found.fingerprint, found.embedder
        return [f"The vectors are of {made}, not of {configured}: run `lamina reembed`, or configure the former."]
    if found.embedder is not None and found.without_embedding:
        return [f"{counted(found.without_embedding)} without a vector: run `lamina reembed --missing`."]
    return []


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
