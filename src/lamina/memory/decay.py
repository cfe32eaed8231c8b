"""How relevance fades: pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.domain.validation import check_unit_interval
from lamina.errors import InvalidInput

__all__ = ["DecayReport", "check_decay", "decayed"]


@dataclass(slots=True)
class DecayReport:
    """What one cycle did: memories old enough, those among them that lost relevance, those now at the floor."""

    scanned: int = 0
    decayed: int = 0
    floored: int = 0


def check_decay(factor: float, floor: float) -> None:
    """Refuse a factor outside (0, 1] and a floor outside [0, 1]."""
    check_unit_interval("factor", factor)
    if factor == 0:
        raise InvalidInput("factor", "must be greater than 0", "Give 1 for no decay.")
    check_unit_interval("min_relevance", floor)


def decayed(relevance: float, factor: float, floor: float) -> float:
    """The relevance after one cycle; one that is below the floor already stays where it is."""
    return relevance if relevance <= floor else max(floor, relevance * factor)
