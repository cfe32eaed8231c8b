"""Where a server is and how it is talked to: checked, and named without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from redis.connection import parse_url

from lamina.adapters._shared.options import check_seconds, checked_table
from lamina.errors import ConfigError, InvalidType

__all__ = ["Options", "read_options"]

_SCHEMES: Final = ("redis://", "rediss://", "unix://")
_URL_REMEDY: Final = (
    "Give redis://user:password@host:port/0, rediss://... or unix:///path?db=0; special characters of the user and "
    "the password are percent-encoded, such as %40 for an @."
)
_PREFIX: Final = re.compile("[A-Za-z0-9_.:/-]{0,200}")
_DATABASE: Final = re.compile("/?[0-9]*")
_IN_URL: Final = re.compile("host|port|db|username|password|path|connection_class|client_name|ssl_.*")
"""What a URL may say; the rest are arguments of the adapter."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the adapter was told."""

    address: Mapping[str, Any] = field(repr=False)
    place: str
    """`host:port/db`, without user and password: for errors and logs."""
    prefix: str
    """What every key begins with: the prefix and the table."""
    timeout: float
    connect_timeout: float
    index_timeout: float
    threads: int
    accept_eviction: bool
    query_engine: bool | None


def read_options(url: str, *, prefix: object, table: object, **others: Any) -> Options:
    """Check what the adapter was told.

    Raises:
        ConfigError: an option has a value that cannot be used. A URL is never repeated in it.
    """
    address, place = _read_url(url)
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        remedy = "Use at most 200 ASCII letters, digits and any of _ . : / -"
        raise ConfigError("prefix", f"cannot be {prefix!r}", remedy)
    check_seconds(**{name: others[name] for name in ("timeout", "connect_timeout", "index_timeout")})
    _check_kind("accept_eviction", others["accept_eviction"], bool)
    _check_kind("query_engine", others["query_engine"], bool | None)
    return Options(address=address, place=place, prefix=f"{prefix}{checked_table(table)}:", **others)


def _read_url(url: str) -> tuple[Mapping[str, Any], str]:
    if not isinstance(url, str):
        raise InvalidType("url", f"must be text, not {type(url).__name__}", _URL_REMEDY)
    if not url.startswith(_SCHEMES):
        raise ConfigError("url", "does not begin with redis://, rediss:// or unix://", _URL_REMEDY)
    is_socket = url.startswith("unix://")
    try:
        address = dict(parse_url(url))
        url.encode()
    except (ValueError, UnicodeError):
        raise ConfigError("url", "cannot be read as a URL of Redis", _URL_REMEDY) from None
    if not all(map(_IN_URL.fullmatch, address)):
        problem = "has a parameter that the adapter takes as an argument, or not at all"
        raise ConfigError("url", problem, _URL_REMEDY)
    host = str(address.get("host") or address.get("path") or "localhost")
    path = urlsplit(url).path
    # An unescaped @ or / of a password moves a part of it into the host or the path, and so into every message.
    if "@" in host or is_socket != ("path" in address) or not (is_socket or _DATABASE.fullmatch(path)):
        raise ConfigError("url", "cannot be read as a URL of Redis", _URL_REMEDY)
    port = "" if is_socket else f":{address.get('port', 6379)}"
    return address, f"{host}{port}/{address.get('db', 0)}"


def _check_kind(name: str, value: object, kind: Any) -> None:
    if not isinstance(value, kind):
        raise ConfigError(name, f"cannot be {value!r}", "Give True or False.")
