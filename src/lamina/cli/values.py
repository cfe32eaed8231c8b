"""Arguments that are more than words: texts from stdin, durations, metadata, filters."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import typer

from lamina.cli.interrupts import interruptible

__all__ = [
    "UsageError",
    "check_lines",
    "counted",
    "read_age",
    "read_cutoff",
    "read_metadata",
    "read_text",
    "read_ttl",
    "read_where",
]

# Typer brings its own copy of the library that has this class, and exports only a special case of it.
UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_LONGEST: Final = 1e10
_DEEPEST: Final = 100


def read_text(text: str | None, *, what: str) -> str:
    """The argument; stdin if it is `-`, or if it is left out and stdin is no terminal."""
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise typer.BadParameter(f"give the {what}, or pipe it in", param_hint=what.upper())
    with interruptible():
        return sys.stdin.read().removesuffix("\n")


def check_lines(as_json: bool, *, nl: bool) -> None:
    """Refuse to print a document a line where none was asked for."""
    if nl and not as_json:
        raise typer.BadParameter("needs --json beside it", param_hint="--nl")


def counted(count: int, one: str = "memory", many: str = "memories") -> str:
    """So many memories, or whatever they are, in words."""
    return f"1 {one}" if count == 1 else f"{count} {many}"


def read_cutoff(text: str | None) -> Any:
    """A figure, or a word as it is: the engine knows which one there is."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def read_duration(text: str) -> timedelta | None:
    """`90s`, `15m`, `12h`, `30d`, `2w`; None for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    seconds = float(match[1]) * _UNITS[match[2]]
    return timedelta(seconds=seconds) if seconds <= _LONGEST else None


def read_ttl(text: str | None) -> Any:
    """A time to live: a duration, seconds, or `never`; left out, what the engine takes as left out."""
    from lamina.domain.memory import UNSET

    if text is None:
        return UNSET
    if text.lower() == "never":
        return None
    duration = read_duration(text)
    try:
        seconds = float(text) if duration is None else duration.total_seconds()
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no duration such as 12h or 30d", param_hint="--ttl") from None
    if not 0 < seconds <= _LONGEST:
        raise typer.BadParameter("must be more than 0 seconds; `never` is no end", param_hint="--ttl")
    return seconds


def read_age(text: str | None) -> timedelta | str | None:
    """A duration, or else the text as it is, which the engine reads as a date or a time."""
    duration = None if text is None else read_duration(text)
    if text is None or duration is not None:
        return duration
    try:
        datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is neither an age such as 12h or 90d nor a date such as 2026-01-31"
        raise typer.BadParameter(problem, param_hint="--older-than") from None
    return text


def read_metadata(pairs: Sequence[str]) -> dict[str, Any]:
    """`key=value` pairs; dots lead into objects, and a value that is JSON is taken as such.

    `n=3` is a number, `n="3"` (the quotes must reach us) and `n=abc` are texts.
    """
    metadata: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        path = key.split(".")
        if not separator or not all(path):
            raise typer.BadParameter(f"{pair!r} is not key=value", param_hint="--meta")
        table = metadata
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise typer.BadParameter(f"{key!r} goes into a plain value", param_hint="--meta")
        table[path[-1]] = _json_or_text(value)
    return metadata


def read_where(text: str | None) -> Mapping[str, Any] | None:
    """A filter on metadata, as JSON."""
    if text is None:
        return None
    try:
        where = json.loads(text)
    except (ValueError, RecursionError):
        where = None
    if not isinstance(where, dict) or _is_deeper(where, _DEEPEST):
        example = """such as '{"status": "open", "due": {"lte": 5}}'"""
        raise typer.BadParameter(f"give a JSON object, {example}", param_hint="--where")
    return where


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether it is nested beyond any use, without going down itself."""
    layer = [value]
    for _ in range(levels):
        layer = [
            below
            for each in layer
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(layer)


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return value


def _refuse(name: str) -> None:
    raise ValueError(name)
