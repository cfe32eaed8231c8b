"""Requests that may be repeated, and leases."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

from lamina.databases.postgres.failures import damaged
from lamina.databases.postgres.schema import Session
from lamina.domain.idempotency import Beginning, KeptRequest, KeptResponse, RequestState

__all__ = ["FRAGMENTS", "abandon", "acquire_lease", "begin", "finish", "purge", "release_lease"]

FRAGMENTS: Final[dict[str, LiteralString]] = {
    "this_request": "tenant = %(tenant)s AND caller = %(caller)s AND key = %(key)s",
    "open_request": "{this_request} AND claim = %(claim)s AND status IS NULL",
    "now": "coalesce(%(now)s::timestamptz, statement_timestamp())",
}
"""Conditions on the request of a place, and on one that is held by a claim; and the instant that leases begin at."""


def begin(
    session: Session, place: tuple[str, str, str], fingerprint: str, *, now: datetime | None, lasts: timedelta
) -> Beginning:
    """As `ServerStore.begin`, for the tenant, caller and key of the place; without `now` it is the database's."""
    parameters = _naming(place) | {
        "fingerprint": fingerprint,
        "claim": uuid.uuid4().hex,
        "now": now,
        "lasts": lasts,
    }
    insert = (
        "INSERT INTO {schema}.server_requests (tenant, caller, key, fingerprint, claim, begun_at, lease_until)"
        " VALUES (%(tenant)s, %(caller)s, %(key)s, %(fingerprint)s, %(claim)s, {now}, {now} + %(lasts)s)"
        " ON CONFLICT DO NOTHING"
    )
    find = (
        "SELECT {now}, fingerprint, lease_until, status, headers, body FROM {schema}.server_requests"
        " WHERE {this_request} FOR UPDATE"
    )
    while not session.execute(insert, parameters).rowcount:
        row = session.execute(find, parameters).fetchone()
        if row is None:  # it was abandoned in between: begin it anew
            continue
        kept = _request_of(row[1:])
        state = kept.meets(fingerprint, row[0])
        if state is not RequestState.NEW:
            return Beginning(state, response=kept.response if state is RequestState.FINISHED else None)
        take_over = (
            "UPDATE {schema}.server_requests SET claim = %(claim)s, begun_at = {now}, lease_until = {now} + %(lasts)s"
            " WHERE {this_request}"
        )
        session.execute(take_over, parameters)
        break
    return Beginning(RequestState.NEW, str(parameters["claim"]))


def finish(session: Session, place: tuple[str, str, str], claim: str, response: KeptResponse) -> bool:
    """As `ServerStore.finish`, with an answer that passed `storable_response`."""
    change = (
        "UPDATE {schema}.server_requests SET status = %(status)s, headers = %(headers)s::json, body = %(body)s"
        " WHERE {open_request}"
    )
    headers = json.dumps(response.headers, ensure_ascii=False)
    parameters = {"claim": claim, "status": response.status, "headers": headers, "body": response.body}
    return session.execute(change, _naming(place) | parameters).rowcount > 0


def abandon(session: Session, place: tuple[str, str, str], claim: str) -> bool:
    """As `ServerStore.abandon`."""
    removal = "DELETE FROM {schema}.server_requests WHERE {open_request}"
    return session.execute(removal, _naming(place) | {"claim": claim}).rowcount > 0


def purge(session: Session, before: datetime) -> int:
    """As `ServerStore.purge`."""
    removal = (
        "DELETE FROM {schema}.server_requests"
        " WHERE begun_at < %(before)s AND (status IS NOT NULL OR lease_until <= %(before)s)"
    )
    return session.execute(removal, {"before": before}).rowcount


def acquire_lease(session: Session, name: str, holder: str, *, now: datetime | None, lasts: timedelta) -> bool:
    """As `ServerStore.acquire_lease`; without `now` it is the database's."""
    insert = (
        "INSERT INTO {schema}.server_leases AS lease (name, holder, until)"
        " VALUES (%(name)s, %(holder)s, {now} + %(lasts)s)"
        " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until"
        " WHERE lease.holder = excluded.holder OR lease.until <= {now}"
    )
    return session.execute(insert, {"name": name, "holder": holder, "lasts": lasts, "now": now}).rowcount > 0


def release_lease(session: Session, name: str, holder: str) -> bool:
    """As `ServerStore.release_lease`."""
    removal = "DELETE FROM {schema}.server_leases WHERE name = %s AND holder = %s"
    return session.execute(removal, (name, holder)).rowcount > 0


def _naming(place: tuple[str, str, str]) -> dict[str, Any]:
    return dict(zip(("tenant", "caller", "key"), place, strict=True))


def _request_of(row: Sequence[Any]) -> KeptRequest:
    fingerprint, lease_until, status, headers, body = row
    try:
        pairs = tuple((name, value) for name, value in headers) if headers is not None else ()
        response = None if status is None else KeptResponse(status, pairs, bytes(body))
        return KeptRequest(fingerprint, lease_until.astimezone(UTC), response)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise damaged("the row of a request cannot be read") from None
