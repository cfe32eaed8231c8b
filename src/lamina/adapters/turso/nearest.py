"""The statements that find the closest vectors."""

from __future__ import annotations

from typing import Final

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import pack
from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso.tables import Tables
from lamina.domain.memory import Vector

__all__ = ["INDEXED_FROM", "exact", "from_index", "more_than"]

INDEXED_FROM: Final = 10_000
"""From so many vectors in reach on, the index is asked, if there is one: below, comparing all is as fast, and exact."""

CANDIDATES: Final = 200
TIMES: Final = 8
"""How many the index gives: so many, or so many times the limit. What the filter leaves of them must fill the limit."""

ROUNDING: Final = 1e-5
"""More than what a distance in 32-bit numbers is off by."""
TIED: Final = 500
"""How many that are as close as the last one are compared exactly."""


def more_than(tables: Tables, number: int, condition: Sql) -> Sql:
    """Whether so many are in reach: one row if they are."""
    return tables.sql(
        "SELECT 1 FROM {memories} AS m WHERE {condition} LIMIT 1 OFFSET ?",
        *condition.parameters,
        number,
        condition=condition.text,
    )


def exact(tables: Tables, embedding: Vector, condition: Sql, limit: int) -> Sql:
    """All that meet the condition are compared; the closest, and those that are as close, with `{columns}` of `m`."""
    towards = direction(embedding)
    asked = () if towards is None else (pack(towards),)
    distance = "CASE WHEN v.seq IS NULL THEN 1.0 ELSE vector_distance_cos(v.direction, ?) END" if asked else "1.0"
    return tables.sql(
        "WITH near AS MATERIALIZED (SELECT m.seq, {distance} AS distance FROM {memories} AS m "
        "LEFT JOIN {vectors} AS v ON v.seq = m.seq WHERE {condition} AND m.dimensions = ?) "
        "SELECT {{columns}} FROM near CROSS JOIN {memories} AS m ON m.seq = near.seq WHERE near.distance <= "
        "coalesce((SELECT distance FROM near ORDER BY distance LIMIT 1 OFFSET ?), 2.0) + ? "
        "ORDER BY near.distance, m.id LIMIT ?",
        *asked,
        *condition.parameters,
        len(embedding),
        limit - 1,
        ROUNDING,
        limit + TIED,
        distance=distance,
        vectors=tables.vectors(len(embedding)),
        condition=condition.text,
    )


def from_index(tables: Tables, embedding: Vector, condition: Sql, limit: int) -> Sql | None:
    """The index's candidates that meet the condition; None for a zero vector, of which it knows nothing."""
    towards = direction(embedding)
    if towards is None:
        return None
    return tables.sql(
        "SELECT {{columns}} FROM vector_top_k(?, ?, ?) AS near CROSS JOIN {memories} AS m ON m.seq = near.id "
        "WHERE {condition}",
        tables.vector_index(len(embedding)),
        pack(towards),
        max(CANDIDATES, TIMES * limit),
        *condition.parameters,
        condition=condition.text,
    )
