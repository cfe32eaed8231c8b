"""An answer on the terminal, piece by piece as it comes, and the remarks on it."""

from __future__ import annotations

import sys
from typing import Final

from lamina.cli.output import note, printable
from lamina.domain.intent import IntentResult

__all__ = ["Speaker", "tell_warnings"]

_DEGRADED: Final = "degraded"
_NO_EMBEDDER: Final = "no_embedder"


class Speaker:
    """Writes pieces of a text to stdout, harmless to a terminal wherever they were cut; `said` is all of it."""

    def __init__(self) -> None:
        self.said = ""
        self._held = ""

    def say(self, piece: str) -> None:
        """Write the piece. A carriage return at its end waits for what follows: it may be half of a line's end."""
        self.said += piece
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        sys.stdout.write(printable(text.removesuffix(self._held)).plain)
        sys.stdout.flush()

    def end(self) -> None:
        """End the line, if anything was said and has not ended it."""
        if self.said and not self.said.endswith("\n"):
            sys.stdout.write("\n")
            sys.stdout.flush()


def tell_warnings(result: IntentResult) -> None:
    """Remark on what went wrong beside the answer, each once.

    Searches that were degraded alike share a line; that there is no embedder, which somebody has chosen, is no news
    at each answer.
    """
    steps: dict[str, list[str]] = {}
    searches: set[str] = set()
    for warning in [] if result.context is None else result.context.warnings:
        if warning.code == _DEGRADED:
            searches.add(str(warning))
            if _NO_EMBEDDER not in warning.detail:
                steps.setdefault(warning.detail, []).append(warning.step)
    for detail, names in steps.items():
        note(f"The search was degraded: {detail} ({', '.join(names)})")
    for told in dict.fromkeys(result.warnings):
        if told not in searches:
            note(told)
