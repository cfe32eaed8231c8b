"""Where a server is: the URL taken apart, checked, and named without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lamina.errors import ConfigError, InvalidType

__all__ = ["Address", "parse_url"]

_SCHEMES: Final = ("postgresql://", "postgres://")
_PORTS: Final = re.compile(r"[0-9]*(,[0-9]*)*")
_REMEDY: Final = (
    "Give postgresql://user:password@host:port/database; special characters of the user and the password are "
    "percent-encoded, such as %40 for an @."
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "application_name": "lamina",
    # A connection that was cut without a word is noticed within a minute while it waits.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


@dataclass(frozen=True, slots=True)
class Address:
    """What libpq is told, and what of it may be shown."""

    parameters: Mapping[str, Any] = field(repr=False)
    place: str
    """`host:port/database`, without user and password: for errors and logs."""

    def __str__(self) -> str:
        return self.place


def parse_url(url: str) -> Address:
    """Take a URL apart. What it does not say comes from libpq's environment variables and defaults.

    Raises:
        ConfigError: it is no URL of PostgreSQL. The message repeats nothing of it, because what cannot be
            parsed may hold the password anywhere.
    """
    if not isinstance(url, str):
        raise InvalidType("url", f"must be text, not {type(url).__name__}", _REMEDY)
    if not url.startswith(_SCHEMES):
        raise ConfigError("url", "does not begin with postgresql:// or postgres://", _REMEDY)
    try:
        given = conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError, ValueError):
        raise ConfigError("url", "cannot be read as a URL of PostgreSQL", _REMEDY) from None
    host, database = str(given.get("host") or given.get("hostaddr") or ""), str(given.get("dbname") or "")
    port = str(given.get("port") or "")
    # An unescaped @, / or : of a password moves a part of it into one of these, and so into every message.
    if "@" in host or "@" in database or not _PORTS.fullmatch(port):
        raise ConfigError("url", "cannot be read as a URL of PostgreSQL", _REMEDY)
    place = f"{host or 'the local server'}{f':{port}' if port else ''}/{database}"
    return Address({**_DEFAULTS, **given, "client_encoding": "utf8"}, place)
