"""Cosines of one vector with many: one rule for searches that compare entries one by one."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.memory import Vector

__all__ = ["cosines", "cosines_of_parts"]


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


def cosines_of_parts(query: Vector, vectors: Sequence[Vector], lengths: Sequence[int]) -> list[tuple[float, ...]]:
    """For each vector the cosine of each of its parts with the same part of the query.

    A vector is the vectors of several models, one behind the other; `lengths` are theirs.
    """
    columns, start = [], 0
    for length in lengths:
        part = slice(start, start + length)
        columns.append(cosines(query[part], [vector[part] for vector in vectors]))
        start += length
    return list(zip(*columns, strict=True))
