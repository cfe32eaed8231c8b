"""Dates as data sets write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = ["read_date"]

_FORMATS: Final = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%I:%M %p on %d %B, %Y",
    "%B-%d-%Y",
    "%B %d, %Y",
    "%d %B %Y",
    "%d %B, %Y",
    "%Y年%m月%d日",
)


def read_date(text: object) -> datetime | None:
    """The instant that the whole text names in one of the formats known here; None for anything else.

    One without a zone is taken as UTC, one without a time as midnight.
    """
    if not isinstance(text, str):
        return None
    for format in _FORMATS:
        try:
            read = datetime.strptime(text.strip(), format)  # noqa: DTZ007 - the zone is looked at below
        except ValueError:
            continue
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read
    return None
