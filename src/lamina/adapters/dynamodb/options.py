"""What the adapter is told: checked, and shown without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from lamina.errors import ConfigError

__all__ = ["Options", "one_of"]

_TABLE: Final = re.compile(r"[A-Za-z0-9_]{3,63}")
_REGION: Final = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the table is, and how long to wait for it."""

    table: str
    region: str | None
    url: str | None
    access_key_id: str | None = field(repr=False)
    secret_access_key: str | None = field(repr=False)
    session_token: str | None = field(repr=False)
    connect_timeout: float
    read_timeout: float
    attempts: int
    threads: int

    def __post_init__(self) -> None:
        for name in ("table", "region", "access_key_id", "secret_access_key", "session_token"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigError(name, f"must be text, not {type(value).__name__}", "Give a str, or leave it out.")
        if not _TABLE.fullmatch(self.table):
            remedy = "Use 3 to 63 ASCII letters, digits and underscores."
            raise ConfigError("table", "cannot be the name of a table", remedy)
        if self.region is not None and not _REGION.fullmatch(self.region):
            raise ConfigError("region", "is none of Amazon's regions", "Give one such as eu-central-1.")
        if self.url is not None:
            _check_url(self.url)
        self._check_credentials()
        self._check_numbers()

    def _check_credentials(self) -> None:
        keys = (self.access_key_id, self.secret_access_key)
        if any(keys) != all(keys) or (self.session_token and not all(keys)):
            problem = "is only a part of the credentials"
            raise ConfigError("secret_access_key", problem, "Give access_key_id and secret_access_key, or neither.")

    def _check_numbers(self) -> None:
        for name in ("connect_timeout", "read_timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 900:  # noqa: PLR2004
                raise ConfigError(name, "must be more than 0 and at most 900 seconds", "Give such a number.")
        for name, most in (("attempts", 20), ("threads", 256)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ConfigError(name, f"must be a whole number from 1 to {most}", "Give such a number.")

    @property
    def place(self) -> str:
        """Where it is, for errors and logs: no more of the address than host and port."""
        where = self.region or "the default region" if self.url is None else urlsplit(self.url).netloc
        return f"{self.table} in {where}"


def one_of(name: str, value: Any, alias: str, other: Any) -> Any:
    """The option, which may be given under another name.

    Raises:
        ConfigError: it is given under both, and not alike.
    """
    if value is not None and other is not None and value != other:
        raise ConfigError(alias, f"contradicts {name}", f"Give one of them: {name} is the same thing.")
    return other if value is None else value


def _check_url(url: str) -> None:
    remedy = "Give http://host:port or https://host:port, or leave it out for Amazon's own."
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except (ValueError, AttributeError, TypeError):
        raise ConfigError("url", "cannot be read as an address", remedy) from None
    if not fine or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError("url", "is not a plain address of a server", remedy)
