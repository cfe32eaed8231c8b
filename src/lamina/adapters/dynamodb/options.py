"""What the adapter is told: checked, and shown without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from lamina.adapters._shared.options import check_count, check_seconds
from lamina.errors import ConfigError

__all__ = ["Options"]

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
    timeout: float
    retries: int
    threads: int

    def __post_init__(self) -> None:
        for name in ("region", "access_key_id", "secret_access_key", "session_token"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigError(name, f"must be text, not {type(value).__name__}", "Give a str, or leave it out.")
        if self.region is not None and not _REGION.fullmatch(self.region):
            raise ConfigError("region", "is none of Amazon's regions", "Give one such as eu-central-1.")
        if self.url is not None:
            _check_url(self.url)
        self._check_credentials()
        check_seconds(connect_timeout=self.connect_timeout, timeout=self.timeout)
        check_count("retries", self.retries, 20, least=0)

    def _check_credentials(self) -> None:
        keys = (self.access_key_id, self.secret_access_key)
        if any(keys) != all(keys) or (self.session_token and not all(keys)):
            problem = "is only a part of the credentials"
            raise ConfigError("secret_access_key", problem, "Give access_key_id and secret_access_key, or neither.")

    @property
    def place(self) -> str:
        """Where it is, for errors and logs: no more of the address than host and port."""
        where = self.region or "the default region" if self.url is None else urlsplit(self.url).netloc
        return f"{self.table} in {where}"


def _check_url(url: str) -> None:
    remedy = "Give http://host:port or https://host:port, or leave it out for Amazon's own."
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except (ValueError, AttributeError, TypeError):
        raise ConfigError("url", "cannot be read as an address", remedy) from None
    if not fine or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError("url", "is not a plain address of a server", remedy)
