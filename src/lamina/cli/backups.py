"""Commands that copy the whole store and put it back: backup, restore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina.cli.command import command
from lamina.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["register"]

BackupFile = Annotated[Path, typer.Argument(help="The backup, a file.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "backup", examples=["lamina backup /backups/lamina.db", "lamina backup lamina.bak --force --json"],
            scoped=False)(backup)  # fmt: skip
    command(app, "restore", examples=["lamina restore /backups/lamina.db", "lamina restore lamina.bak --force"],
            scoped=False)(restore)  # fmt: skip


async def backup(
    session: Session,
    path: BackupFile,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Copy the whole database, of all tenants, while others go on, and restore the copy once to see that it can be.

    Memories, threads, documents, packs and tokens. It is done only when the copy, restored into a temporary folder
    beside it, passed SQLite's checks and holds the same rows, table by table.
    """
    from lamina.kernel.backups import back_up_store

    done = await back_up_store(session.kept_config(creates=False), path, force=force)
    _tell(session, {"path": str(done.path), "bytes": done.bytes, "rows": done.total, "tables": dict(done.rows)},
          f"{done.total:,} rows in {done.bytes:,} bytes, restored once and found the same: {done.path}")  # fmt: skip


async def restore(
    session: Session,
    path: BackupFile,
    *,
    force: Annotated[bool, typer.Option("--force", help="Put it in the place of a database that is there.")] = False,
) -> None:
    """Put a backup in place, after it was looked over; the database that was there is kept beside it.

    Nothing may have that open. A backup of a newer Lamina, or a damaged one, is refused, and nothing is changed.
    """
    from lamina.kernel.backups import restore_store

    done = await restore_store(session.kept_config(creates=True), path, force=force)
    former = None if done.former is None else str(done.former)
    facts = {"path": str(done.path), "former": former, "rows": done.total, "tables": dict(done.rows)}
    kept = "" if former is None else f" The former file is {former}."
    _tell(session, facts, f"{done.total:,} rows are in place: {done.path}.{kept}")


def _tell(session: Session, facts: Mapping[str, Any], line: str) -> None:
    from lamina.cli.output import print_json

    if session.as_json:
        print_json(dict(facts))
    else:
        typer.echo(line)
