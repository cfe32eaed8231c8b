"""Spans of whole days around a moment, in its own time zone: pure arithmetic. The second instant is not within."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeAlias

__all__ = [
    "AROUND",
    "Span",
    "ago",
    "beside",
    "date_of",
    "days_from",
    "month_beside",
    "month_of",
    "today_of",
    "weekday_beside",
    "year_of",
]

Span: TypeAlias = tuple[datetime, datetime]

AROUND: Final = {"day": 0, "week": 3, "month": 15, "year": 182}
"""How many days before and after it count too, when something was so many units ago."""


def _at(now: datetime, year: int, month: int = 1, day: int = 1) -> datetime:
    return now.replace(year=year, month=month, day=day, hour=0, minute=0, second=0, microsecond=0)


def today_of(now: datetime) -> datetime:
    """When its day begins."""
    return _at(now, now.year, now.month, now.day)


def days_from(start: datetime, count: int = 1) -> Span:
    """So many days from a start on."""
    return start, start + timedelta(days=count)


def month_of(now: datetime, year: int, month: int) -> Span:
    """A month; counting on beyond 12, and back below 1, leads into other years."""
    years, month = divmod(month - 1, 12)
    start = _at(now, year + years, month + 1)
    return start, _at(now, start.year + start.month // 12, start.month % 12 + 1)


def year_of(now: datetime, year: int) -> Span:
    """A year."""
    return _at(now, year), _at(now, year + 1)


def date_of(now: datetime, year: str | None, month: int, day: str | None) -> Span:
    """A day or a month; without a year the last one that has begun.

    Raises:
        ValueError: there is no such day.
    """
    if year is not None:
        return month_of(now, int(year), month) if day is None else days_from(_at(now, int(year), month, int(day)))
    for candidate in range(now.year, now.year - 9, -1):  # 29 February may be far
        try:
            start = _at(now, candidate, month, int(day or 1))
        except ValueError:
            continue
        if start <= now:
            return month_of(now, candidate, month) if day is None else days_from(start)
    raise ValueError


def ago(now: datetime, count: int, unit: str) -> Span:
    """The day that was so many units ago, and as many days around it as `AROUND` says."""
    today = today_of(now)
    if unit in ("day", "week"):
        middle = today - timedelta(days=count * (7 if unit == "week" else 1))
    else:
        start, end = month_of(now, now.year, now.month - count * (12 if unit == "year" else 1))
        middle = min(start + timedelta(days=now.day - 1), end - timedelta(days=1))
    return days_from(middle - timedelta(days=AROUND[unit]), 2 * AROUND[unit] + 1)


def beside(now: datetime, side: int, unit: str) -> Span | None:
    """The week, weekend, month or year before this one (-1), this one (0), or the next (1)."""
    monday = today_of(now) - timedelta(days=now.weekday())
    if unit == "week":
        return days_from(monday + timedelta(days=7 * side), 7)
    if unit == "weekend":  # "last weekend", said on a Sunday, is the one before
        return days_from(monday + timedelta(days=7 * side + 5), 2)
    if unit == "month":
        return month_of(now, now.year, now.month + side)
    return year_of(now, now.year + side) if unit == "year" else None


def month_beside(now: datetime, side: int, month: int) -> Span:
    """The last such month before this one (-1), that of this year (0), or the next one after this (1)."""
    year = now.year + side * (month >= now.month if side < 0 else month <= now.month)
    return month_of(now, year, month)


def weekday_beside(now: datetime, side: int, weekday: int) -> Span:
    """The last such day before today (-1), that of this week (0), or the next one after today (1)."""
    distance = weekday - now.weekday()
    if side < 0:
        distance -= 7 * (distance >= 0)
    elif side > 0:
        distance += 7 * (distance <= 0)
    return days_from(today_of(now) + timedelta(days=distance))
