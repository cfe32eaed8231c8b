"""Vectors in eight bits per number, 64 to a block: what a search reads first.

A vector is scaled to length 1 and each number written as a whole multiple, from -127 to 127, of the
vector's own step. How far that is off, as the length of the difference, is kept beside it: the
product with a query of length 1 is then off by no more, so a search knows which vectors can still
be among the best and rescores just those (see `nearest`).

A block is one blob: 64 counts (which memory of the partition, 0 for an empty slot; uint32), 64 steps
and 64 differences (float32), then the numbers of slot 0, of slot 1 and so on (int8).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lamina.adapters.sqlite.block_layout import BLOCK, CODES

__all__ = ["as_rows", "cosines", "decode", "encode", "unit"]

GREATEST: Final = 127


def decode(blocks: Sequence[bytes]) -> NDArray[np.void]:
    """The blocks, all of one tenant, as an array with the fields `counts`, `steps`, `differences` and `codes`."""
    dimensions = (len(blocks[0]) - CODES) // BLOCK
    layout = [
        ("counts", "<u4", (BLOCK,)),
        ("steps", "<f4", (BLOCK,)),
        ("differences", "<f4", (BLOCK,)),
        ("codes", "i1", (BLOCK, dimensions)),
    ]
    return np.frombuffer(b"".join(blocks), layout)


def encode(counts: list[int], vectors: list[bytes]) -> bytes:
    """A block of these memories, at most 64, with their packed vectors."""
    rows = unit(as_rows(vectors))
    steps = (np.abs(rows).max(axis=1) / GREATEST).astype("<f4")
    safe = np.where(steps > 0, steps, 1).astype(np.float64)[:, None]
    codes = np.clip(np.rint(rows / safe), -GREATEST, GREATEST)
    differences = np.linalg.norm(rows - codes * steps.astype(np.float64)[:, None], axis=1)
    parts: list[NDArray[np.generic]] = [
        np.array(counts, "<u4"),
        steps,
        np.nextafter(differences.astype("<f4"), np.float32(np.inf)),  # rounded up, so that it stays a bound
        codes.astype(np.int8),
    ]
    missing = BLOCK - len(counts)
    return b"".join(np.pad(part, [(0, missing)] + [(0, 0)] * (part.ndim - 1)).tobytes() for part in parts)


def as_rows(vectors: list[bytes]) -> NDArray[np.float64]:
    """Packed vectors as the rows of a matrix."""
    return np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1).astype(np.float64)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows with length 1; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = rows / np.where(lengths > 0, lengths, 1)
    return scaled


def cosines(rows: NDArray[np.float64], query: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosine of each row with the query, summed row by row: equal rows give equal numbers wherever they stand."""
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    products = (rows * query).sum(axis=1)
    clipped: NDArray[np.float64] = np.clip(products / np.where(lengths > 0, lengths, 1), -1.0, 1.0)
    return clipped
