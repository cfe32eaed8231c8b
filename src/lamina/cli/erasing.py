"""The command that erases a person."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from lamina.cli.command import command
from lamina.cli.confirming import confirm_deletion
from lamina.cli.session import Session
from lamina.cli.values import UsageError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = ["lamina erase --owner mira", "lamina erase -u mira --yes --json > receipt.json"]
    command(app, "erase", examples=examples, namespaced=False)(erase)


async def erase(
    session: Session, *, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Erase everything of an owner for good, wherever it is kept, and print a receipt; exits with 1 if some is left.

    Memories with former versions and vectors, what was derived from them, threads, sessions, documents, packs, tokens
    and kept answers, in the files and their logs. An import of an older export does not bring them back, unless
    --revive asks for it. Run again, it goes on where it stopped.
    """
    from lamina.cli.output import print_json

    if session.owner is None:
        raise UsageError("Say whose: --owner NAME")
    confirm_deletion(f"everything of {session.owner!r}", yes=yes, look="")
    async with session.kernel() as kernel:
        receipt = await kernel.erase(session.owner)
    if session.as_json:
        told = dataclasses.asdict(receipt) | {"erased_at": receipt.erased_at.isoformat()}
        print_json(told | {"is_complete": receipt.is_complete})
    else:
        for kind, before in receipt.before.items():
            typer.echo(f"{kind.replace('_', ' ')}: {before} before, {receipt.after[kind]} after")
        typer.echo(f"derived memories of others: {receipt.derived}; kept vectors let go of: {receipt.cached_vectors}")
        if receipt.bytes_left is not None:
            typer.echo(f"texts looked for in the files: {receipt.looked_for}, found: {receipt.bytes_left}")
        for each in (*(f"pending: {one}" for one in receipt.pending), *(f"note: {one}" for one in receipt.notes)):
            typer.echo(each)
        typer.echo("Nothing is left." if receipt.is_complete else "Something is left: run it again.")
    if not receipt.is_complete:
        raise typer.Exit(1)
