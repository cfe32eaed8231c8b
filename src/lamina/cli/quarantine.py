"""Commands about everything that came from a source: quarantine, release, forget-source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina.cli.command import command
from lamina.cli.confirming import confirm_deletion
from lamina.cli.options import DryRun, Yes
from lamina.cli.session import Session
from lamina.cli.values import counted

if TYPE_CHECKING:
    from lamina.memory.quarantining import QuarantineReceipt

__all__ = ["register"]

FromSource = Annotated[
    str | None, typer.Option("--source", help="What came from exactly this source.", show_default=False)
]
FromPrefix = Annotated[
    str | None,
    typer.Option("--prefix", help="What came from sources that begin so; ends with : / or #.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "quarantine",
        examples=["lamina quarantine --source web:a.example/1", "lamina quarantine --prefix web:a.example/ -u mira"],
    )(quarantine)
    command(app, "release", examples=["lamina release mem_4f2c..."])(release)
    command(
        app,
        "forget-source",
        examples=[
            "lamina forget-source --prefix web:a.example/ --dry-run",
            "lamina forget-source --source mail:7 --yes",
        ],
    )(forget_source)


async def quarantine(session: Session, *, source: FromSource = None, prefix: FromPrefix = None) -> None:
    """Take what came from a source out of recall, with all that was made from it; without a source, list.

    Nothing is deleted: release, with the id that is printed, undoes it.
    """
    async with session.kernel() as kernel:
        if source is None and prefix is None:
            acts = await kernel.quarantined(owner=session.reader)
        else:
            acts = [await kernel.quarantine(source=source, prefix=prefix, owner=session.reader)]
    from lamina.cli import output

    if session.as_json:
        output.print_json([_fields(act) for act in acts])
        return
    for act in acts:  # the source is whatever somebody wrote
        made = f"{len(act.from_source)} from {output.printable(act.source).plain}, {len(act.derived)} made from that"
        if act.documents:
            made += f", {counted(len(act.documents), 'document', 'documents')}"
        typer.echo(f"{act.id}  {output.instant(act.at)}  {made}")
    if not acts:
        typer.echo("Nothing is in quarantine.")


async def release(session: Session, id: Annotated[str, typer.Argument(help="Of the quarantine.")]) -> None:
    """Undo a quarantine: what it took out is recalled again."""
    async with session.kernel() as kernel:
        ids = await kernel.release(id, owner=session.reader)
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"released": ids})
    else:
        typer.echo(f"{counted(len(ids))} released.")


async def forget_source(
    session: Session,
    *,
    source: FromSource = None,
    prefix: FromPrefix = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete what came from a source, with all that was made from it. Asks first, as forget does."""
    which: dict[str, Any] = {"source": source, "prefix": prefix, "owner": session.reader}
    async with session.kernel() as kernel:
        count = await kernel.forget_source(**which, dry_run=True)
        if count and not dry_run:
            confirm_deletion(counted(count), yes=yes)
            count = await kernel.forget_source(**which)
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"would_forget" if dry_run else "forgotten": count})
    else:
        typer.echo(f"{counted(count)} {'would be forgotten' if dry_run else 'forgotten'}.")


def _fields(act: QuarantineReceipt) -> dict[str, Any]:
    from lamina.cli.output import instant

    return {
        "id": act.id,
        "at": instant(act.at),
        "source": act.source,
        "from_source": act.from_source,
        "derived": act.derived,
        "documents": act.documents,
    }
