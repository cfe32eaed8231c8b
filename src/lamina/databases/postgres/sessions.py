"""A session with the server: opened, checked, and set to what the stores count on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg

from lamina.databases.postgres.address import Address
from lamina.databases.postgres.failures import BACKEND
from lamina.errors import AdapterError, ConfigError

__all__ = ["Connection", "Limits", "connect"]

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

OLDEST: Final = 14
MAX_CONNECTIONS: Final = 1000
MAX_SECONDS: Final = 86400

_SETTINGS: Final[Mapping[str, str]] = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
}
_SET: Final = """
SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)
WHERE name <> 'synchronous_commit' OR current_setting(name) = 'off'
"""
"""In one round trip. What is committed is on disk; where the server promises more than that, it stays so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections, and how long in seconds to wait for one and for a statement.

    Raises:
        ConfigError: one is no number, or out of its range.
    """

    connections: int
    connect_timeout: float
    statement_timeout: float

    def __post_init__(self) -> None:
        _check_number("connections", self.connections, int, MAX_CONNECTIONS)
        _check_number("connect_timeout", self.connect_timeout, int | float, MAX_SECONDS)
        _check_number("statement_timeout", self.statement_timeout, int | float, MAX_SECONDS)


def connect(address: Address, limits: Limits) -> Connection:
    """A session in which each statement is a transaction of its own until one is begun.

    Raises:
        AdapterError: the server is older than version 14, or the database's encoding is not UTF-8.
        psycopg.Error: it cannot be reached, or it refuses.
    """
    patience: Mapping[str, Any] = {"connect_timeout": max(1, round(limits.connect_timeout))}  # whole seconds
    connection: Connection = psycopg.connect(**{**patience, **address.parameters}, autocommit=True)
    try:
        _check_server(connection, address)
        timeout = f"{max(1, round(limits.statement_timeout * 1000))}ms"
        # A session whose client is gone must not hold its locks for ever.
        settings = {**_SETTINGS, "statement_timeout": timeout, "idle_in_transaction_session_timeout": timeout}
        connection.execute(_SET, (list(settings), list(settings.values())))
    except BaseException:
        connection.close()
        raise
    return connection


def _check_server(connection: Connection, address: Address) -> None:
    version = connection.info.parameter_status("server_version") or "of an unknown version"
    if connection.info.server_version // 10000 < OLDEST:
        remedy = f"Use version {OLDEST} or newer."
        raise AdapterError(BACKEND, f"the server at {address} is PostgreSQL {version}", remedy)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        remedy = "Use a database that was made with ENCODING 'UTF8'."
        raise AdapterError(BACKEND, f"the database {address} has the encoding {encoding}", remedy)


def _check_number(setting: str, value: object, kind: Any, greatest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value <= greatest:
        raise ConfigError(setting, f"must be a number above 0, not {value!r:.50}", f"Give one up to {greatest}.")
