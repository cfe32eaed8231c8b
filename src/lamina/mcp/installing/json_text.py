"""One server's entry put into, or taken out of, the text of JSON settings."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from lamina.errors import InvalidInput

__all__ = ["with_entry", "without_entry"]

_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_MARK: Final = "\ufeff"


def with_entry(text: str, section: str, name: str, table: dict[str, Any]) -> str:
    """The settings with the entry; keys of it that are not ours stay.

    Raises:
        InvalidInput: the text is not plain JSON, or something stands where the servers should.
    """
    settings = _read(text)
    servers = _servers(settings, section)
    before = servers.get(name, {})
    if not isinstance(before, dict):
        raise InvalidInput(f"{section}.{name}", "is no object", "Correct the file by hand.")
    servers[name] = {**before, **table}
    return _written(text, {**settings, section: servers})


def without_entry(text: str, section: str, name: str) -> str:
    """The settings without the entry. Raises as `with_entry`."""
    settings = _read(text)
    servers = _servers(settings, section)
    if name not in servers:
        return text
    del servers[name]
    return _written(text, {**settings, section: servers})


def _read(text: str) -> dict[str, Any]:
    if not text.strip(f"{_MARK} \t\r\n"):
        return {}
    try:
        settings = json.loads(text.removeprefix(_MARK), object_pairs_hook=_unambiguous, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else f" ({error})"
        remedy = "Nothing was changed. Correct it, or add by hand what --print shows, as where it has comments."
        raise InvalidInput("settings", f"the file is not plain JSON{where}", remedy) from error
    if not isinstance(settings, dict):
        raise InvalidInput("settings", "the file is JSON, but no object", "Nothing was changed. Correct it first.")
    return settings


def _servers(settings: dict[str, Any], section: str) -> dict[str, Any]:
    servers = settings.get(section, {})
    if not isinstance(servers, dict):
        raise InvalidInput(section, "is no object", "Nothing was changed. Correct the file by hand.")
    return dict(servers)


def _written(before: str, settings: dict[str, Any]) -> str:
    """The settings as text, in the manner of the text before: its indent, line ends and mark."""
    if before.strip(f"{_MARK} \t\r\n") and _read(before) == settings:
        return before
    found = _INDENT.search(before)
    text = json.dumps(settings, indent=found[1] if found else 2, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = json.dumps(settings, indent=found[1] if found else 2)
    if before.endswith("\n") or not before.strip():
        text += "\n"
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    return (_MARK if before.startswith(_MARK) else "") + text


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return read


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
