"""Where settings come from, each source as nested mappings: flags, environment, project file, user file."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lamina.errors import ConfigError
from lamina.settings.shorthand import SHORTHAND

__all__ = [
    "ENVIRONMENT_PREFIX",
    "TRUST_PROJECT",
    "Source",
    "environment_source",
    "file_source",
    "find_project_file",
    "place_of",
]

ENVIRONMENT_PREFIX: Final = "LAMINA_"
TRUST_PROJECT: Final = "LAMINA_TRUST_PROJECT"
"""A variable that is no setting: see `lamina.settings.consent`."""
_SHORT_NAMES: Final = {
    "LAMINA_DATA_DIR": ("data_dir",),
    "LAMINA_TENANT": ("memory", "tenant"),
    "LAMINA_OWNER": ("memory", "default_owner"),
    "LAMINA_EMBEDDER": ("memory", "embedding"),
    "LAMINA_DEBUG": ("memory", "debug"),
}
_PATHS: Final = (
    ("data_dir",),
    ("memory", "path"),
    ("memory", "v1_path"),
    ("server", "uds"),
    ("server", "jwt", "jwks_file"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """Settings from one place. `names` says for a dotted path what the user wrote, if that differs from `label`."""

    label: str
    values: Mapping[str, Any]
    names: Mapping[str, str]

    def origin(self, path: str) -> str:
        """Where the value of this dotted path was written, perhaps as part of a text that stands for its table."""
        below = next((each for name, each in self.names.items() if name.startswith(f"{path}.")), self.label)
        while path and path not in self.names:
            path = path.rpartition(".")[0]
        return self.names.get(path, below)


def place_of(location: str, label: str) -> dict[str, Any]:
    """A database location, a path or a url, as memory settings that say the whole place; `label` says who named it.

    Raises:
        ConfigError: it is a path that cannot be.
    """
    scheme, separator, rest = location.partition("://")
    if separator and scheme.lower() != "sqlite":
        return {"provider": None, "url": location}
    return {"provider": "sqlite", "path": _absolute(rest if separator else location, Path.cwd(), "memory.path", label)}


def environment_source(environ: Mapping[str, str]) -> Source:
    """Settings from `LAMINA_` variables; `__` goes one level down. A variable that is set but empty is not set."""
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    # Short names first, so that a long one refines what a short one gave.
    for variable in sorted(environ, key=lambda name: (name not in _SHORT_NAMES and name != "LAMINA_DB", name)):
        text = environ[variable]
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text or variable == TRUST_PROJECT:
            continue
        label = f"the environment variable {variable}"
        if variable == "LAMINA_DB":
            for key, value in place_of(text, label).items():
                _set(values, ("memory", key), value, label)
                names[f"memory.{key}"] = label
            continue
        path = _SHORT_NAMES.get(variable) or tuple(variable[len(ENVIRONMENT_PREFIX) :].lower().split("__"))
        if variable not in _SHORT_NAMES and len(path) == 1:
            _check_short_name(variable)
        dotted = ".".join(path)
        _set(values, path, _absolute(text, Path.cwd(), dotted, label) if path in _PATHS else text, label)
        names[dotted] = label
    return Source("the environment", values, names)


def _check_short_name(variable: str) -> None:
    """Refuse what looks much like a short name, with that as the remedy; the rest is checked as a setting."""
    known = [*_SHORT_NAMES, "LAMINA_DB", TRUST_PROJECT]
    close = difflib.get_close_matches(variable, known, n=1, cutoff=0.85)
    if close and variable not in {"LAMINA_NAME", "LAMINA_MODEL", "LAMINA_MEMORY"}:
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        raise ConfigError(name, f"is unknown (from the environment variable {variable})", f"Did you mean {close[0]}?")


def find_project_file(start: Path) -> Path | None:
    """The nearest `lamina.toml`, or `pyproject.toml` with a `[tool.lamina]` table, in this folder or above.

    Raises:
        ConfigError: a `pyproject.toml` that speaks of lamina cannot be read, or the file is another user's.
    """
    for folder in (start, *start.parents):
        own = folder / "lamina.toml"
        if own.is_file():
            return _of_no_stranger(own)
        shared = folder / "pyproject.toml"
        if shared.is_file() and _speaks_of_lamina(shared):
            return _of_no_stranger(shared)
    return None


def file_source(file: Path) -> Source:
    """Settings from a TOML file. Relative paths in it are relative to its folder.

    Raises:
        ConfigError: it cannot be read, is no TOML, or has a plain value where our table should be.
    """
    values = _parsed(file, _text(file))
    if file.name == "pyproject.toml":
        values = _table(_table(values, "tool", file, "tool"), "lamina", file, "tool.lamina")
    label = f"the file {file}"
    for path in _PATHS:
        table: Any = values
        for key in path[:-1]:
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(table.get(path[-1]), str):
            table[path[-1]] = _absolute(table[path[-1]], file.parent, ".".join(path), label)
    return Source(label, values, {})


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(str(file), "is nested too deeply", "Correct the file.") from error
    except ValueError as error:  # no TOML, or a number of more digits than Python reads
        raise ConfigError(str(file), f"is no valid TOML: {error}", "Correct the file.") from error


def _table(values: dict[str, Any], key: str, file: Path, path: str) -> dict[str, Any]:
    table = values.get(key, {})
    if not isinstance(table, dict):
        problem = f"must be a table, not {type(table).__name__} (from the file {file})"
        raise ConfigError(path, problem, f"Write it as [{path}].")
    return table


def _speaks_of_lamina(file: Path) -> bool:
    text = _text(file)
    return "lamina" in text and "lamina" in _table(_parsed(file, text), "tool", file, "tool")


def _of_no_stranger(file: Path) -> Path:
    """The file, unless another user put it above this one's folder, to send memories where they should not go."""
    if hasattr(os, "geteuid") and os.geteuid() not in {0, file.stat().st_uid} and file.stat().st_uid != 0:
        raise ConfigError(str(file), "belongs to another user", "Work in another folder, or own the file.")
    return file


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), f"cannot be read: {error}", "Make it a readable file in UTF-8.") from error


def _absolute(path: str, base: Path, field: str, label: str) -> Path:
    if path == ":memory:":
        return Path(path)
    try:
        return base / Path(path).expanduser()
    except (RuntimeError, ValueError) as error:  # `~name` of nobody here; a NUL
        raise ConfigError(
            field, f"{path!r} names no file (from {label}): {str(error).rstrip('.')}", "Write it out."
        ) from error


def _set(values: dict[str, Any], path: tuple[str, ...], value: Any, label: str) -> None:
    table = values
    for part in path[:-1]:
        current = table.setdefault(part, {})
        if isinstance(current, str) and part in SHORTHAND:
            current = table[part] = SHORTHAND[part](current)
        if not isinstance(current, dict):
            raise ConfigError(".".join(path), f"stands below a plain value (from {label})", "Unset one of the two.")
        table = current
    table[path[-1]] = value
