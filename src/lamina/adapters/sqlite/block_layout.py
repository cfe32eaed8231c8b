"""Where the parts of a block of codes begin: what `codes` writes and reads, and `vectors` clears in place."""

from __future__ import annotations

from typing import Final

__all__ = ["BLOCK", "CODES", "DIFFERENCES", "STEPS"]

BLOCK: Final = 64
"""Slots in a block."""

STEPS: Final = 4 * BLOCK
DIFFERENCES: Final = 8 * BLOCK
CODES: Final = 12 * BLOCK
"""In bytes; the counts are at 0."""
