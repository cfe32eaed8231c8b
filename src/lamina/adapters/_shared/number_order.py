"""Numbers as ten bytes that sort as the numbers do, for backends whose own numbers are not ours.

Whole numbers of 64 bits and floats compare exactly, also with each other: each becomes the greatest
float that is not above it, and what is left.
"""

from __future__ import annotations

import math
import struct
from typing import Final

__all__ = ["number_key"]

_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1


def number_key(number: float) -> bytes:
    """The key of a whole number of 64 bits or a finite float; equal numbers have equal keys, 1 and 1.0 too."""
    below = float(number)
    if isinstance(number, int) and int(below) > number:  # it was rounded up
        below = math.nextafter(below, -math.inf)
    rest = number - int(below) if isinstance(number, int) else 0
    [bits] = struct.unpack(">Q", struct.pack(">d", below + 0.0))  # which makes -0.0 the 0.0 that it equals
    ordered = bits ^ _ALL if bits & _SIGN else bits | _SIGN
    return struct.pack(">QH", ordered, rest)
