"""Where a database is: what the options say, checked."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lamina.errors import ConfigError

__all__ = ["Address", "address_of"]

_SCHEMES: Final = {"libsql": "https", "https": "https", "http": "http"}
_URL: Final = "Write libsql://name.turso.io, https://host or http://host:port; or give the path of a file."


@dataclass(frozen=True, slots=True)
class Address:
    """A remote database by its `url`, or a local file by its `path`; with both, the file is the url's replica."""

    url: str | None
    path: Path | None
    place: str
    """For messages: the host or the file, without anything secret."""


def address_of(
    url: str | None, path: str | PathLike[str] | None, replica_path: str | PathLike[str] | None, token: str | None
) -> Address:
    """What the options name.

    Raises:
        ConfigError: they name nothing, or two things, or are malformed.
    """
    if (url is None) == (path is None):
        problem = "is missing" if url is None else "is given beside path"
        raise ConfigError("url", problem, "Give either the url of a database or the path of a file.")
    file = _file_of(url) if url is not None else path
    if file is not None:
        if token is not None or replica_path is not None:
            field = "auth_token" if token is not None else "replica_path"
            raise ConfigError(field, "goes with the url of a remote database only", "Leave it out for a local file.")
        return _local("url" if path is None else "path", file)
    if token is not None and (not token.strip() or not token.isascii() or not token.isprintable()):
        raise ConfigError("auth_token", "is no token", "Give the token as the service shows it, or None.")
    address, host = _remote(url or "")
    return Address(address, None if replica_path is None else _local("replica_path", replica_path).path, host)


def _file_of(url: object) -> str | None:
    """The path if this is one, or a `file:` URL; None for a URL with another scheme."""
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise ConfigError("url", "is empty or no text", _URL)
    if url.startswith("file:"):
        return url.removeprefix("file:").removeprefix("//")
    return None if "://" in url else url


def _local(field: str, path: str | PathLike[str]) -> Address:
    text = fspath(path)
    if not text or text.startswith(":memory:") or "\0" in text or "?" in text:
        remedy = "Give the path of a file; to keep memories in no file, use the adapter `memory`."
        raise ConfigError(field, "names no file", remedy)
    if Path(text).is_dir():
        raise ConfigError(field, "is a folder", "Give the path of a file in it.")
    return Address(None, Path(text), text)


def _remote(url: str) -> tuple[str, str]:
    """The address for HTTP, and the host."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("url", "is malformed", _URL) from None
    if parts.scheme not in _SCHEMES:
        raise ConfigError("url", f"has the scheme {parts.scheme!r}", _URL)
    if not parts.hostname:
        raise ConfigError("url", "names no host", _URL)
    if parts.username is not None or parts.password is not None:
        raise ConfigError("url", "holds a user or a password", "Give auth_token for the token, and no user.")
    if parts.fragment or (parts.query and parts.query != "tls=0"):
        raise ConfigError("url", "has more than a host, a port and a path", "Give auth_token and so on as options.")
    scheme = "http" if parts.query else _SCHEMES[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if port is None else f"{host}:{port}"
    return f"{scheme}://{place}{parts.path.rstrip('/')}", place
