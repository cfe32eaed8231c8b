"""Telling MCP clients of this server: `lamina mcp install` and `uninstall`."""

from __future__ import annotations

import re
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lamina.cli.session import Session
from lamina.errors import InvalidInput

if TYPE_CHECKING:
    from lamina.mcp.installing import Change, Client, Entry

__all__ = ["install", "uninstall"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ClientName(StrEnum):
    """The clients whose settings are known."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    CODEX = "codex"
    VSCODE = "vscode"


AClient = Annotated[ClientName, typer.Option("--client", help="The client.", show_default=False)]
AName = Annotated[str, typer.Option("--name", help="What the client calls the server.")]
Project = Annotated[bool, typer.Option("--project", help="The settings of this folder, not those of the user.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be changed.")]
Shown = Annotated[bool, typer.Option("--print", help="Print what belongs into the settings, and change nothing.")]
Profile = Annotated[str | None, typer.Option("--profile", help="Which tools: see docs/mcp.md.", show_default=False)]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")]
Uvx = Annotated[bool, typer.Option("--uvx", help="Let the client start it by uvx, from a package index.")]


def install(
    session: Session,
    *,
    client: AClient,
    name: AName = "lamina",
    profile: Profile = None,
    read_only: ReadOnly = False,
    project: Project = False,
    uvx: Uvx = False,
    dry_run: DryRun = False,
    print_: Shown = False,
) -> None:
    """Tell a client of this server, in its own settings, with what is said here about owner and database.

    What else is in the settings stays; a copy of the file as it was is left beside it. Doing it twice changes
    nothing the second time.
    """
    from lamina.mcp.installing import files
    from lamina.mcp.server import PROFILES

    _check_name(name)
    if profile is not None and profile not in PROFILES:
        raise typer.BadParameter(f"{profile!r} is none of {', '.join(PROFILES)}", param_hint="--profile")
    known = _client(client)
    entry = _entry(session, profile=profile, read_only=read_only, project=project, uvx=uvx)
    if print_:
        typer.echo(files.shown(known, name, entry), nl=False)
        return
    file = known.file(project=Path.cwd() if project else None)
    _report(session, known, files.install(known, file, name, entry, dry_run=dry_run), dry_run=dry_run)


def uninstall(
    session: Session,
    *,
    client: AClient,
    name: AName = "lamina",
    project: Project = False,
    dry_run: DryRun = False,
) -> None:
    """Take this server out of a client's settings; a copy of the file as it was is left beside it."""
    from lamina.mcp.installing import files

    _check_name(name)
    known = _client(client)
    file = known.file(project=Path.cwd() if project else None)
    _report(session, known, files.uninstall(known, file, name, dry_run=dry_run), dry_run=dry_run)


def _client(name: ClientName) -> Client:
    from lamina.mcp.installing import CLIENTS

    return CLIENTS[name]


def _entry(session: Session, *, profile: str | None, read_only: bool, project: bool, uvx: bool) -> Entry:
    """How the client starts the server. Desktop clients know no PATH of a shell, so the program is named in full."""
    from lamina.mcp.installing import Entry

    arguments = ["mcp"]
    folder = None if session.data_dir is None else str(session.data_dir.expanduser().absolute())
    options = {"--owner": session.owner, "--namespace": session.namespace, "--tenant": session.tenant}
    options |= {"--db": _absolute(session.db), "--data-dir": folder, "--profile": profile}
    for option, value in options.items():
        # `--owner=-x` and not `--owner -x`: the value may look like an option.
        arguments += [] if value is None else [f"{option}={value}"]
    arguments += ["--read-only"] if read_only else []
    if uvx:
        return Entry("uvx", ("--from", "lamina[mcp]", "lamina", *arguments))
    if project:
        return Entry("lamina", tuple(arguments))  # settings of a project are shared: no path of this machine
    return Entry(_program(), tuple(arguments))


def _program() -> str:
    beside = Path(sys.executable).with_name("lamina.exe" if sys.platform == "win32" else "lamina")
    return str(beside) if beside.exists() else shutil.which("lamina") or "lamina"


def _absolute(db: str | None) -> str | None:
    """A path is written out, since clients start programs wherever they please; a URL stays as it is."""
    if db is None or "://" in db or db.startswith(":"):
        return db
    return str(Path(db).expanduser().absolute())


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidInput("--name", f"{name!r} cannot be one", "Use letters, digits, - and _.")


def _report(session: Session, client: Client, change: Change, *, dry_run: bool) -> None:
    if session.as_json:
        from lamina.cli.output import print_json

        backup = None if change.backup is None else str(change.backup)
        told = {"client": client.name, "file": str(change.file), "changed": change.changed, "dry_run": dry_run}
        print_json(told | {"backup": backup})
    elif not change.changed:
        typer.echo(f"{change.file} is as it should be; nothing was changed.")
    elif dry_run:
        typer.echo(f"{change.file} would be changed, for {client.title}.")
    else:
        kept = "" if change.backup is None else f" As it was: {change.backup}."
        typer.echo(f"{change.file} is changed. Restart {client.title} for it to notice.{kept}")
