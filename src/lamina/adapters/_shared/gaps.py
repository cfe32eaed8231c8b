"""Conditions on metadata that a backend cannot evaluate, said in a sentence for users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lamina.domain.conditions import And, Compare, Filter, Not, Operator, Or

__all__ = ["first_gap", "gap_of_tokens"]

_ORDERS: Final = {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE}


def first_gap(where: Filter, gap_of: Callable[[Compare], str | None]) -> str | None:
    """The first comparison's gap, wherever it stands in the condition; None if there is none."""
    if isinstance(where, Not):
        return first_gap(where.part, gap_of)
    if isinstance(where, And | Or):
        return next((gap for part in where.parts if (gap := first_gap(part, gap_of)) is not None), None)
    return gap_of(where)


def gap_of_tokens(where: Filter, backend: str) -> str | None:
    """What the tokens of `leaves` alone do not answer: order, and parts of texts."""

    def gap_of(compare: Compare) -> str | None:
        if compare.operator in _ORDERS:
            return f"{backend} does not compare the values of metadata by order exactly: not gt, gte, lt and lte."
        if compare.operator is Operator.CONTAINS and isinstance(compare.operand, str):
            return f"{backend} does not look for any part of a text: not contains with a text."
        return None

    return first_gap(where, gap_of)
