"""Where a MongoDB is and how it is asked: the options, checked before anything is connected."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from pymongo.errors import ConfigurationError, InvalidURI
from pymongo.uri_parser import parse_uri

from lamina.adapters._shared.options import check_count, check_seconds, checked_table
from lamina.errors import ConfigError, InvalidType

__all__ = ["Options", "checked_options"]

_SRV: Final = "mongodb+srv://"
_DATABASE: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_SRV_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_MOST_CONNECTIONS: Final = 1_000
_DEFAULT_DATABASE: Final = "lamina"
_REMEDY: Final = (
    "Give mongodb://user:password@host:port/database or mongodb+srv://...; special characters of the user and the "
    "password are percent-encoded, such as %40 for an @."
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the client is told, and what of it may be shown."""

    url: str = field(repr=False)
    place: str
    """`host:port/database/collection`, without user and password: for errors and logs."""
    database: str
    table: str
    vector_index: str | None
    timeout: float
    client: dict[str, Any] = field(repr=False)
    """Keyword arguments of `MongoClient`."""


def checked_options(
    url: str,
    *,
    database: str | None,
    table: str,
    collection: str | None,
    vector_index: str | None,
    timeout: float,
    connect_timeout: float,
    connections: int,
) -> Options:
    """The options, if they can be right.

    Raises:
        ConfigError: one is wrong. The message repeats nothing of the URL, which may hold a password anywhere.
        InvalidType: the URL is no text.
    """
    hosts, named = _parse_url(url)
    name = database or named or _DEFAULT_DATABASE
    if not _DATABASE.fullmatch(name):
        raise ConfigError("database", "cannot name a database", "Use ASCII letters, digits, _ and -, at most 63.")
    table = checked_table(table, letter_first=True, collection=collection)
    if vector_index is not None and not vector_index.strip():
        raise ConfigError("vector_index", "is blank", "Give the name of a vector search index, or None.")
    check_seconds(timeout=timeout, connect_timeout=connect_timeout)
    check_count("connections", connections, _MOST_CONNECTIONS)
    client = {
        "appname": "lamina",
        "maxPoolSize": connections,
        "timeoutMS": int(timeout * 1_000),
        "connectTimeoutMS": int(connect_timeout * 1_000),
        "serverSelectionTimeoutMS": int(connect_timeout * 1_000),
        "tz_aware": True,
    }
    return Options(url, f"{hosts}/{name}/{table}", name, table, vector_index, timeout, client)


def _parse_url(url: str) -> tuple[str, str | None]:
    """The hosts, as they may be shown, and the database that the URL names."""
    if not isinstance(url, str):
        raise InvalidType("url", f"must be text, not {type(url).__name__}", _REMEDY)
    if url.startswith(_SRV):  # parsed by the client when it connects, since that asks the name server
        return _parse_srv(url)
    if not url.startswith("mongodb://"):
        raise ConfigError("url", "does not begin with mongodb:// or mongodb+srv://", _REMEDY)
    try:
        parsed = parse_uri(url, warn=False)
    except (ConfigurationError, InvalidURI, ValueError, TypeError, UnicodeError):
        raise ConfigError("url", "cannot be read as a URL of MongoDB", _REMEDY) from None
    hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in parsed["nodelist"])
    return hosts, parsed["database"]


def _parse_srv(url: str) -> tuple[str, str | None]:
    authority, _, rest = url.removeprefix(_SRV).partition("/")
    authority = authority.partition("?")[0]
    host = authority.rpartition("@")[2]
    database = rest.partition("?")[0]
    # An unescaped @, / or ? of a password moves a part of it into what would be shown.
    if not _SRV_HOST.fullmatch(host) or authority.count("@") > 1 or "@" in rest.partition("?")[0]:
        raise ConfigError("url", "cannot be read as a URL of MongoDB", _REMEDY)
    return host, unquote(database) or None
