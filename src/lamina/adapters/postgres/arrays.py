"""Arrays as PostgreSQL sends and receives them in binary: exact, and without a text for each number."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from lamina.adapters._shared.entry_text import pack, unpack
from lamina.domain.memory import Vector

__all__ = ["Bigints", "Reals", "Texts", "bigints_of", "reals_of", "texts_of", "vector_of"]

_HEADER: Final = struct.Struct("!5i")
_LENGTH: Final = struct.Struct("!i")
_BIGINT, _TEXT, _REAL = 20, 25, 700


class Array:
    """What is to be sent."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Bigints(Array):
    """A value for a `bigint[]`."""


class Texts(Array):
    """A value for a `text[]`."""


class Reals(Array):
    """A value for a `real[]`."""


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.data


class _BigintsDumper(_Dumper):
    oid = 1016


class _TextsDumper(_Dumper):
    oid = 1009


class _RealsDumper(_Dumper):
    oid = 1021


for _kind, _dumper in ((Bigints, _BigintsDumper), (Texts, _TextsDumper), (Reals, _RealsDumper)):
    psycopg.adapters.register_dumper(_kind, _dumper)


def bigints_of(numbers: Sequence[int]) -> Bigints:
    """The numbers as a value for a `bigint[]`."""
    body = struct.pack("!" + "iq" * len(numbers), *(part for number in numbers for part in (8, number)))
    return Bigints(_header(_BIGINT, len(numbers)) + body)


def texts_of(texts: Sequence[str]) -> Texts:
    """The texts as a value for a `text[]`."""
    encoded = [text.encode() for text in texts]
    return Texts(_header(_TEXT, len(texts)) + b"".join(_LENGTH.pack(len(each)) + each for each in encoded))


def reals_of(vector: Vector) -> Reals:
    """The vector, which passed `check_vector`, as a value for a `real[]`."""
    import numpy as np  # not before the first vector: it takes long

    numbers = np.frombuffer(pack(vector), "<f4")
    body = np.empty((len(numbers), 2), ">u4")
    body[:, 0] = 4  # the length of each
    body[:, 1] = numbers.astype(">f4").view(">u4")
    return Reals(_header(_REAL, len(numbers)) + body.tobytes())


def vector_of(data: bytes) -> array[float]:
    """The vector in what `array_send` makes of a `real[]`.

    Raises:
        ValueError, struct.error: it is none.
    """
    import numpy as np

    _, _, kind, length, _ = _HEADER.unpack_from(data)
    body = np.frombuffer(data, ">u4", offset=_HEADER.size)
    if kind != _REAL or len(body) != 2 * length:
        raise ValueError("no vector")
    return unpack(body[1::2].astype("<u4").tobytes())


def _header(kind: int, length: int) -> bytes:
    return _HEADER.pack(1, 0, kind, length, 1) if length else struct.pack("!3i", 0, 0, kind)
