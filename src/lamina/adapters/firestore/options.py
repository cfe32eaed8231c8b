"""What the adapter is told: checked, and shown without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from lamina.adapters._shared.options import check_seconds
from lamina.errors import ConfigError

__all__ = ["Options"]

_PROJECT: Final = re.compile(r"[a-z0-9.:-]{1,100}")
_DATABASE: Final = re.compile(r"\(default\)|[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the collection is, and how long to wait for it."""

    table: str
    project: str | None
    database: str
    url: str | None
    credentials: Any = field(repr=False)
    timeout: float
    retry_timeout: float
    threads: int

    def __post_init__(self) -> None:
        if self.table.startswith("__") and self.table.endswith("__"):
            raise ConfigError("table", "has the form __x__, which Firestore keeps for itself", "Choose another name.")
        patterns = {
            "project_id": (_PROJECT, "Give the id of a project, such as notes-4711, not its title."),
            "database": (_DATABASE, "Give the id of a database, or leave it out for the default one."),
        }
        for name, (pattern, remedy) in patterns.items():
            value = self.project if name == "project_id" else getattr(self, name)
            if value is not None and not (isinstance(value, str) and pattern.fullmatch(value)):
                raise ConfigError(name, "cannot be the name of one", remedy)
        if self.url is not None:
            self.emulator  # noqa: B018 - which refuses what is none
        check_seconds(timeout=self.timeout)
        check_seconds(least=0, retry_timeout=self.retry_timeout)

    @property
    def emulator(self) -> str:
        """The emulator's `host:port`; empty for the service."""
        if self.url is None:
            return ""
        remedy = "Give host:port of an emulator, or leave it out for the service."
        try:
            parts = urlsplit(self.url if "://" in self.url else f"http://{self.url}")
            fine = parts.scheme == "http" and bool(parts.hostname) and bool(parts.port)
        except (ValueError, TypeError):
            raise ConfigError("url", "cannot be read as an address", remedy) from None
        if not fine or "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
            raise ConfigError("url", "is not the plain address of an emulator", remedy)
        return parts.netloc

    @property
    def place(self) -> str:
        """Where it is, for errors and logs."""
        where = self.emulator or f"the project {self.project or 'of the environment'}"
        return f"{self.table} in {where}"
