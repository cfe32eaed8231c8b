"""Instants as whole microseconds since 1970 in UTC: exact, sortable, and free of time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from lamina.errors import InvalidInput

__all__ = ["from_micros", "to_micros"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """The instant as microseconds since the epoch; any instant of `datetime` fits in 64 bits."""
    if instant.tzinfo is None:
        raise InvalidInput("instant", "has no time zone", "Give a timezone-aware datetime, such as datetime.now(UTC).")
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The instant in UTC."""
    return _EPOCH + timedelta(microseconds=micros)
