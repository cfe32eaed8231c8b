"""One server's entry put into, or taken out of, the text of TOML settings; every other line stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

from lamina.errors import InvalidInput

__all__ = ["with_entry", "without_entry"]

_HEADER: Final = re.compile(r"\s*\[{1,2}\s*[A-Za-z0-9_\"'-]")
_BEGINS: Final = re.compile(r"\s*(?:[A-Za-z0-9_\"'.-]+\s*=|#|$)")


def with_entry(text: str, section: str, name: str, table: dict[str, Any]) -> str:
    """The settings with the entry; keys of it that are not ours stay, and so do comments.

    Raises:
        InvalidInput: the text is not TOML, or holds the servers in a way that cannot be edited safely.
    """
    settings = _read(text)
    before = _entry(settings, section, name)
    wanted = {**before, **table}
    if before == wanted and before:
        return text
    ours = [f"{key} = {_value(each)}" for key, each in table.items()]
    lines = _lines(text)
    start = _header(lines, section, name)
    if start is None:
        gap = [""] if lines and lines[-1].strip() else []
        lines += [*gap, f"[{section}.{name}]", *ours]
    else:
        end = _end(lines, start)
        lines[start + 1 : end] = [*ours, *_without_keys(lines[start + 1 : end], set(table))]
    servers = {**settings.get(section, {}), name: wanted}
    return _checked(text, lines, {**settings, section: servers})


def without_entry(text: str, section: str, name: str) -> str:
    """The settings without the entry and what is below it. Raises as `with_entry`."""
    settings = _read(text)
    if name not in settings.get(section, {}):
        return text
    lines = _lines(text)
    while (start := _header(lines, section, name, below=True)) is not None:
        del lines[start : _end(lines, start)]
    servers = {key: each for key, each in settings[section].items() if key != name}
    others = {key: each for key, each in settings.items() if key != section}
    return _checked(text, lines, {**others, section: servers} if servers else others)


def _lines(text: str) -> list[str]:
    """The lines as TOML has them: what else Python takes for the end of one may stand inside a text."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("settings", f"the file is not TOML ({error})", "Nothing was changed. Correct it.") from error


def _entry(settings: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    servers = settings.get(section, {})
    entry = servers.get(name, {}) if isinstance(servers, dict) else None
    if not isinstance(entry, dict):
        raise InvalidInput(section, "is no table of tables", "Nothing was changed. Correct the file by hand.")
    return entry


def _header(lines: list[str], section: str, name: str, *, below: bool = False) -> int | None:
    """The line on which the entry's table begins; with `below` also one of a table in it."""
    inside = r"(?:\s*\.[^\]]*)?" if below else ""
    key = rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"
    header = re.compile(rf"\s*\[{{1,2}}\s*{re.escape(section)}\s*\.\s*{key}{inside}\s*\]{{1,2}}\s*(?:#.*)?$")
    return next((number for number, line in enumerate(lines) if header.match(line)), None)


def _end(lines: list[str], start: int) -> int:
    """Where the table ends: the next one begins, with the comment that stands right before it."""
    end = next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines))
    if end < len(lines):
        while end > start + 1 and lines[end - 1].lstrip().startswith("#"):
            end -= 1
    return end


def _without_keys(lines: list[str], keys: set[str]) -> list[str]:
    """The lines without those of these keys, whose values may go over several lines."""
    names = "|".join(map(re.escape, sorted(keys)))
    ours = re.compile(rf"\s*(?:{names})\s*=")
    kept: list[str] = []
    inside = False
    for line in lines:
        if ours.match(line):
            inside = True
        elif not inside or _BEGINS.match(line):
            inside = False
            kept.append(line)
    return kept


def _checked(before: str, lines: list[str], wanted: dict[str, Any]) -> str:
    """The lines as text, if they say what they should, and nothing else."""
    end = "\r\n" if "\r\n" in before else "\n"
    text = end.join(lines) + end if lines else ""
    try:
        is_right = tomllib.loads(text) == wanted
    except ValueError:
        is_right = False
    if not is_right:
        remedy = "Nothing was changed. Edit it by hand: --print shows what belongs there."
        raise InvalidInput("settings", "the file is written in a way that cannot be edited safely", remedy)
    return text


def _value(value: Any) -> str:
    """Texts and lists of texts: what an entry is made of."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
