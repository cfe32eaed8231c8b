"""Requests that may be repeated, and leases, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from lamina.databases.sqlite.failures import damaged
from lamina.domain.idempotency import Beginning, KeptRequest, KeptResponse, RequestState
from lamina.domain.instants import from_micros, to_micros

__all__ = ["abandon", "acquire_lease", "begin", "finish", "purge", "release_lease", "request_of"]

REQUEST: Final = "fingerprint, lease_until, status, headers, body"
_THIS: Final = "tenant = ? AND caller = ? AND key = ?"
_OPEN: Final = f"{_THIS} AND claim = ? AND status IS NULL"


def request_of(row: Sequence[Any]) -> KeptRequest:
    """The request in a row of `REQUEST`."""
    fingerprint, lease_until, status, headers, body = row
    try:
        pairs = tuple((name, value) for name, value in json.loads(headers)) if headers is not None else ()
        response = None if status is None else KeptResponse(status, pairs, body)
        return KeptRequest(fingerprint, from_micros(lease_until), response)
    except (ValueError, TypeError, OverflowError):
        raise damaged("the row of a request cannot be read") from None


def begin(
    connection: sqlite3.Connection,
    place: tuple[str, str, str],
    fingerprint: str,
    *,
    now: datetime,
    lease_until: datetime,
) -> Beginning:
    """As `ServerStore.begin`, for the tenant, caller and key of the place."""
    query = f"SELECT {REQUEST} FROM lamina_server_requests WHERE {_THIS}"  # noqa: S608 - our own texts
    row = connection.execute(query, place).fetchone()
    if row is not None:
        kept = request_of(row)
        state = kept.meets(fingerprint, now)
        if state is not RequestState.NEW:
            return Beginning(state, response=kept.response if state is RequestState.FINISHED else None)
    claim = uuid.uuid4().hex
    insert = (
        "INSERT OR REPLACE INTO lamina_server_requests "
        "(tenant, caller, key, fingerprint, claim, begun_at, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    connection.execute(insert, (*place, fingerprint, claim, to_micros(now), to_micros(lease_until)))
    return Beginning(RequestState.NEW, claim)


def finish(connection: sqlite3.Connection, place: tuple[str, str, str], claim: str, response: KeptResponse) -> bool:
    """As `ServerStore.finish`, with an answer that passed `storable_response`."""
    update = f"UPDATE lamina_server_requests SET status = ?, headers = ?, body = ? WHERE {_OPEN}"  # noqa: S608
    values = (response.status, json.dumps(response.headers, ensure_ascii=False), response.body)
    return connection.execute(update, (*values, *place, claim)).rowcount > 0


def abandon(connection: sqlite3.Connection, place: tuple[str, str, str], claim: str) -> bool:
    """As `ServerStore.abandon`."""
    removal = f"DELETE FROM lamina_server_requests WHERE {_OPEN}"  # noqa: S608
    return connection.execute(removal, (*place, claim)).rowcount > 0


def purge(connection: sqlite3.Connection, before: datetime) -> int:
    """As `ServerStore.purge`."""
    removal = "DELETE FROM lamina_server_requests WHERE begun_at < ?1 AND (status IS NOT NULL OR lease_until <= ?1)"
    return connection.execute(removal, (to_micros(before),)).rowcount


def acquire_lease(connection: sqlite3.Connection, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
    """As `ServerStore.acquire_lease`."""
    insert = (
        "INSERT INTO lamina_server_leases (name, holder, until) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until "
        "WHERE lamina_server_leases.holder = excluded.holder OR lamina_server_leases.until <= ?"
    )
    return connection.execute(insert, (name, holder, to_micros(until), to_micros(now))).rowcount > 0


def release_lease(connection: sqlite3.Connection, name: str, holder: str) -> bool:
    """As `ServerStore.release_lease`."""
    removal = "DELETE FROM lamina_server_leases WHERE name = ? AND holder = ?"
    return connection.execute(removal, (name, holder)).rowcount > 0
