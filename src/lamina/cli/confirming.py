"""Asking before something is gone."""

from __future__ import annotations

import sys

import typer

from lamina.cli.interrupts import interruptible
from lamina.cli.values import UsageError

__all__ = ["confirm_deletion"]


def confirm_deletion(what: str, *, yes: bool, look: str = ", or --dry-run to only look") -> None:
    """Ask whether this is to be deleted for good; where nobody can answer, only a `yes` of before counts.

    Raises:
        Abort: the answer was no.
        UsageError: nobody can answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"This would delete {what}: add --yes{look}")
    with interruptible():
        typer.confirm(f"Delete {what} for good?", abort=True, err=True)
