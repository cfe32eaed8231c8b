"""What a project's file may not decide alone: where on the network memories go, and who may ask the server for them.

A project's file comes with a folder that may be somebody else's. Merely running a command in there must not send
memories to an address in it, so the user has to name that address too, or trust the project's file as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lamina.errors import ConfigError
from lamina.settings.redaction import redacted_url
from lamina.settings.sources import ENVIRONMENT_PREFIX, TRUST_PROJECT, Source

__all__ = ["check_project_addresses", "trusts_project"]

ADDRESSES: Final = (
    "memory.embedding.base_url",
    "memory.url",
    "model.base_url",
    "server.cors_origins",
    "server.jwt.jwks_file",
    "server.jwt.jwks_url",
    "state_url",
)
OPTIONS: Final = "memory.options."
_LOOPBACK: Final = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"", "0", "false", "no", "off"})


def trusts_project(environ: Mapping[str, str]) -> bool:
    """Whether the environment says that the project's file may send memories where it likes.

    Raises:
        ConfigError: the variable is neither yes nor no.
    """
    answer = environ.get(TRUST_PROJECT, "").lower()
    if answer not in _YES | _NO:
        raise ConfigError(TRUST_PROJECT, f"must be 1 or 0, not {answer!r}", "Correct the environment variable.")
    return answer in _YES


def check_project_addresses(
    values: Mapping[str, Any],
    origins: Mapping[str, str],
    *,
    project: Source,
    user_values: Mapping[str, Any],
    user_file: Path,
) -> None:
    """Refuse an address beyond this machine that is in force and that only the project's file names.

    Raises:
        ConfigError: there is one; the message names the file, the key and how to consent.
    """
    # An option of a backend says as an address does where memories go: a key names an account.
    options = [f"{OPTIONS}{name}" for name in _at(values, OPTIONS.rstrip(".")) or {}]
    for path in (*ADDRESSES, *options):
        address = _text(_at(values, path))
        if not isinstance(address, str) or origins.get(path) != project.origin(path) or _stays_here(address):
            continue
        if _text(_at(user_values, path)) == address:
            continue
        variable = ENVIRONMENT_PREFIX + path.upper().replace(".", "__")
        shown = "its value" if path.startswith(OPTIONS) else redacted_url(address)  # it may be a key
        problem = f"{shown} is named by the project's {project.label}, and memories would go there"
        remedy = (
            f"If you want that, name the same address in your own file {user_file} or in {variable}, "
            f"or set {TRUST_PROJECT}=1."
        )
        raise ConfigError(path, problem, remedy)


def _at(values: Mapping[str, Any], path: str) -> Any:
    value: Any = values
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _stays_here(address: str) -> bool:
    """Whether the address is plainly of this machine; a query may name another host, so one with a query is not."""
    if address == ":memory:" or address.lower().startswith("sqlite://"):
        return True
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return _LOOPBACK.fullmatch(parts.netloc) is not None and not (parts.query or parts.fragment)
