"""Cosines as a service reckons them that compares a vector with every other, by numpy: thousands of them take no time.

The stand-ins have this of their own, so that they do not share a mistake with what they are there to test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def cosines(asked: np.ndarray, vectors: Sequence[np.ndarray], lengths: type[np.floating] = np.float64) -> list[float]:
    """In 64 bits, which the vectors have too; 0 where either is zero. Equal vectors have equal ones.

    Squares of lengths are rounded to `lengths`, in which they may overflow: the cosine is then 0.
    """
    if not vectors:
        return []
    matrix = np.stack(vectors)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix).astype(lengths)
        square = np.einsum("i,i->", asked, asked).astype(lengths)
    products = np.einsum("ij,j->i", matrix, asked)  # row by row: a matrix product would round by where a row stands
    scale = np.sqrt(squares.astype(np.float64)) * np.sqrt(square.astype(np.float64))
    return [float(each) for each in np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)]
