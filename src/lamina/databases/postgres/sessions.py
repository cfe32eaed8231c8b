"""A session with the server, opened and checked, and its transactions, each set to what the stores count on.

Nothing is expected of a session beyond the end of a transaction, since a pooler may give the next one to
another connection: settings are local to a transaction, and statements are prepared only where the session is with
the server itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from lamina.databases.postgres.address import Address
from lamina.databases.postgres.failures import BACKEND
from lamina.errors import AdapterError, ConfigError

__all__ = ["Connection", "Limits", "begin", "connect", "finish", "together"]

T = TypeVar("T")

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

OLDEST: Final = 14
MAX_CONNECTIONS: Final = 1000
MAX_SECONDS: Final = 86400

_SETTINGS: Final[Mapping[str, str]] = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "extra_float_digits": "1",
    "synchronous_commit": "on",
    "plan_cache_mode": "force_custom_plan",  # a plan for any tenant and any number of results would suit none
}
_SET: Final = """
SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)
WHERE name <> 'synchronous_commit' OR current_setting(name) = 'off'
"""
"""What is committed is on disk; where the server promises more than that, it stays so."""

_PREPARED_FROM: Final = 5
"""The how many-eth time a statement is prepared that a session has executed before."""

_WRITING: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_READING: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


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
    """A session without a transaction.

    Raises:
        AdapterError: the server is older than version 14, or the database's encoding is not UTF-8.
        psycopg.Error: it cannot be reached, or it refuses.
    """
    patience: Mapping[str, Any] = {"connect_timeout": max(1, round(limits.connect_timeout))}  # whole seconds
    connection: Connection = psycopg.connect(
        **{**patience, **address.parameters}, autocommit=True, prepare_threshold=None
    )
    try:
        _check_server(connection, address)
        if _is_direct(connection):
            connection.prepare_threshold = _PREPARED_FROM
    except BaseException:
        connection.close()
        raise
    return connection


def begin(connection: Connection, limits: Limits, *, reads: bool, settings: Mapping[str, str]) -> None:
    """Begin a transaction, in one round trip: with these settings, and those that the stores count on.

    One that only reads sees one state of the database throughout.
    """
    timeout = f"{max(1, round(limits.statement_timeout * 1000))}ms"
    # A session whose client is gone must not hold its locks for ever.
    wanted = {**_SETTINGS, "statement_timeout": timeout, "idle_in_transaction_session_timeout": timeout, **settings}
    with together(connection):
        connection.execute(_READING if reads else _WRITING)
        connection.execute(_SET, (list(wanted), list(wanted.values())))


def together(connection: Connection) -> AbstractContextManager[object]:
    """Within, statements are sent one after the other without waiting for what they give, in one round trip.

    What they give is there at the end, where the first that failed raises; none behind it was done. No COPY within.
    """
    return connection.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()


def finish(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Do the work in the transaction that was begun, and commit; if it fails, nothing of it is kept."""
    try:
        outcome = work(connection)
        _check_sound(connection)
        connection.execute(b"COMMIT")
    except BaseException:
        with suppress(psycopg.Error):
            connection.rollback()
        raise
    return outcome


def _check_sound(connection: Connection) -> None:
    """Refuse to commit what the server would only roll back."""
    if connection.info.transaction_status != TransactionStatus.INTRANS:
        problem = "a statement of a transaction failed unseen, so that nothing of it was written"
        raise AdapterError(BACKEND, problem, "Please report it.")


def _check_server(connection: Connection, address: Address) -> None:
    version = connection.info.parameter_status("server_version") or "of an unknown version"
    if connection.info.server_version // 10000 < OLDEST:
        remedy = f"Use version {OLDEST} or newer."
        raise AdapterError(BACKEND, f"the server at {address} is PostgreSQL {version}", remedy)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        remedy = "Use a database that was made with ENCODING 'UTF8'."
        raise AdapterError(BACKEND, f"the database {address} has the encoding {encoding}", remedy)


def _is_direct(connection: Connection) -> bool:
    """Whether no pooler stands between, which would give each transaction to whatever session is free.

    A pooler says a number of its own for the server's process, by which it knows whom to cancel.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row == (connection.info.backend_pid,)


def _check_number(setting: str, value: object, kind: Any, greatest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value <= greatest:
        raise ConfigError(setting, f"must be a number above 0, not {value!r:.50}", f"Give one up to {greatest}.")
