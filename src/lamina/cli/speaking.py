"""An answer on the terminal, piece by piece as it comes."""

from __future__ import annotations

import sys

from lamina.cli.output import printable

__all__ = ["Speaker"]


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
