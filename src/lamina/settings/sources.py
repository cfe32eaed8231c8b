"""Where settings come from, each source as nested mappings: flags, environment, project file, user file."""

from __future__ import annotations

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
_PATHS: Final = (("data_dir",), ("memory", "path"))


@dataclass(frozen=True, slots=True)
class Source:
    """Settings from one place. `names` says for a dotted path what the user wrote, if that differs from `label`."""

    label: str
    values: Mapping[str, Any]
    names: Mapping[str, str]

    def origin(self, path: str) -> str:
        """Where the value of this dotted path was written, perhaps as part of a text that stands for its table."""
        while path and path not in self.names:
            path = path.rpartition(".")[0]
        return self.names.get(path, self.label)


def place_of(location: str) -> dict[str, Any]:
    """A database location, a path or a url, as memory settings that say the whole place."""
    scheme, separator, rest = location.partition("://")
    if separator and scheme.lower() == "sqlite":
        return {"provider": "sqlite", "path": _absolute(rest, Path.cwd())}
    if separator:
        return {"provider": None, "url": location}
    return {"provider": "sqlite", "path": _absolute(location, Path.cwd())}


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
            for key, value in place_of(text).items():
                _set(values, ("memory", key), value, label)
                names[f"memory.{key}"] = label
            continue
        path = _SHORT_NAMES.get(variable) or tuple(variable[len(ENVIRONMENT_PREFIX) :].lower().split("__"))
        _set(values, path, _absolute(text, Path.cwd()) if path in _PATHS else text, label)
        names[".".join(path)] = label
    return Source("the environment", values, names)


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
        ConfigError: it cannot be read, or is no TOML.
    """
    try:
        values = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(file), f"is no valid TOML: {error}", "Correct the file.") from error
    if file.name == "pyproject.toml":
        values = values.get("tool", {}).get("lamina", {})
    for path in _PATHS:
        table = values if len(path) == 1 else values.get(path[0])
        if isinstance(table, dict) and isinstance(table.get(path[-1]), str):
            table[path[-1]] = _absolute(table[path[-1]], file.parent)
    return Source(f"the file {file}", values, {})


def _speaks_of_lamina(file: Path) -> bool:
    text = _text(file)
    if "tool.lamina" not in text:
        return False
    try:
        return "lamina" in tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(file), f"is no valid TOML: {error}", "Correct the file.") from error


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


def _absolute(path: str, base: Path) -> Path:
    if path == ":memory:":
        return Path(path)
    return base / Path(path).expanduser()


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
