"""One source of settings laid over another.

Values that describe one thing together are not mixed from two sources: a place said higher up hides
the one below; a preset hides the weights below; an API key is used only for the provider and the
address that its own source, or a lower one, knew of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lamina.errors import ConfigError
from lamina.settings.sources import Source

__all__ = ["PLACE", "merge"]

PLACE: Final = ("provider", "adapter", "url", "path")
"""Fields of `memory` that say together where memories are kept."""


def merge(
    lower: dict[str, Any], higher: Mapping[str, Any], source: Source, origins: dict[str, str], *, path: str = ""
) -> None:
    """Lay the values of a higher source over the lower ones, in place, and keep the origins in step.

    `origins` maps the dotted path of each value to where it was written; `path` is that of the table, with a dot.

    Raises:
        ConfigError: a lower source has a plain value where the higher one has a table.
    """
    if "data_dir" in higher and not path:
        _hide_place(lower, origins)
    for key in _outdated(lower, higher, path) - higher.keys():
        if lower.pop(key, None) is not None:
            _forget(origins, f"{path}{key}")
    for key, value in higher.items():
        here = f"{path}{key}"
        if isinstance(value, Mapping):
            table = lower.get(key)
            if table is None:
                table = lower[key] = {}
            elif not isinstance(table, dict):
                problem = f"is a plain value (from {origins.get(here)}) and a table (from {source.label})"
                raise ConfigError(here, problem, "Write both as tables.")
            merge(table, value, source, origins, path=f"{here}.")
        else:
            lower[key] = value
            _forget(origins, here)
            origins[here] = source.origin(here)


def _forget(origins: dict[str, str], path: str) -> None:
    for known in [known for known in origins if known == path or known.startswith(f"{path}.")]:
        del origins[known]


def _hide_place(lower: Mapping[str, Any], origins: dict[str, str]) -> None:
    """Take away the place that a lower source names: the higher one's folder is the place."""
    memory = lower.get("memory")
    for key in (*PLACE, "options"):
        if isinstance(memory, dict) and memory.pop(key, None) is not None:
            _forget(origins, f"memory.{key}")


def _outdated(lower: Mapping[str, Any], higher: Mapping[str, Any], path: str) -> set[str]:
    """Keys of the lower table that lose their meaning beside the higher one."""
    match path:
        case "memory.":
            return _outdated_place(lower, higher)
        case "memory.embedding." | "model.":
            return _outdated_provider(lower, higher)
        case "memory.scoring." if "preset" in higher:
            return set(lower)
        case _:
            return set()


def _outdated_place(lower: Mapping[str, Any], higher: Mapping[str, Any]) -> set[str]:
    outdated: set[str] = set()
    named = [higher[key] for key in ("provider", "adapter") if key in higher]
    if named:
        outdated |= {"provider", "adapter"}
        theirs = lower.get("provider", lower.get("adapter"))
        if theirs is not None and theirs not in named:
            outdated |= {"url", "path", "options"}
    if "url" in higher or "path" in higher:
        outdated |= {"url", "path", "options"}  # a token in them is for the former place
    return outdated


def _outdated_provider(lower: Mapping[str, Any], higher: Mapping[str, Any]) -> set[str]:
    if "provider" in higher and higher["provider"] != lower.get("provider"):
        return set(lower)
    if "base_url" in higher and higher["base_url"] != lower.get("base_url"):
        return {"api_key"}
    return set()
