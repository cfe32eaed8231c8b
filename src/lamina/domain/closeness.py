"""Cosines of one vector with many: one rule for searches that compare entries one by one."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.memory import Vector

__all__ = ["cosines", "cosines_by_parts"]


def cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """The cosine of the query with each vector, in [-1, 1]; 0 where either is zero.

    Equal vectors have equal cosines to the last bit, wherever they stand, so that ties can go by id.
    """
    import numpy as np  # not before the first vector: it costs more than the rest of the import

    if not vectors:
        return []
    matrix = np.asarray(vectors, dtype=np.float64)
    direction = np.asarray(query, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(direction)
    products = (matrix * direction).sum(axis=1)  # row by row: a matrix product rounds by where a row stands
    closeness = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return [float(each) for each in np.clip(closeness, -1.0, 1.0)]


def cosines_by_parts(query: Vector, vectors: Sequence[Vector], parts: Sequence[tuple[int, float]]) -> list[float]:
    """The cosine of each part of the query with the same part of each vector, times the part's share, summed up.

    A vector is the vectors of several models, one behind the other; `parts` are their lengths and shares.
    """
    totals = [0.0] * len(vectors)
    start = 0
    for length, share in parts:
        part = slice(start, start + length)
        for place, value in enumerate(cosines(query[part], [vector[part] for vector in vectors])):
            totals[place] += share * value
        start += length
    return totals
