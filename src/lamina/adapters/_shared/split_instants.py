"""Instants for backends whose numbers are 64-bit floats: two of them, which are exact."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lamina.domain.instants import to_micros

__all__ = ["instant"]

NEVER: Final = 10**12
"""The second at which expires what does not expire: after the year 9999."""


def instant(name: str, value: datetime | None) -> dict[str, int]:
    """The two fields of an instant, its seconds and the microseconds beside them; None lies after all others."""
    seconds, micros = (NEVER, 0) if value is None else divmod(to_micros(value), 1_000_000)
    return {f"{name}_s": seconds, f"{name}_us": micros}
