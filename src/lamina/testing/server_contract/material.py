"""What the contract's tests put into a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lamina.domain.api_token import ApiToken, TokenScope, token_digest
from lamina.domain.idempotency import Beginning, KeptResponse
from lamina.ports.server_store import ServerStore

__all__ = ["ANSWER", "LOOKALIKES", "NOW", "PLACE", "REFUSED_NAMES", "at", "begin", "token"]

NOW: Final = datetime(2026, 8, 2, 12, 0, 0, 123456, tzinfo=UTC)
PLACE: Final = ("acme", "token-1", "key-1")
LOOKALIKES: Final = ["a", "a_", "a%", "A", "a:1", "a:10", "\uff41", "\u00e9", "e\u0301", "a ", "a'--", "*"]
REFUSED_NAMES: Final = ["", " ", "\x00", "a\ud800", "x" * 513]
ANSWER: Final = KeptResponse(
    201, (("content-type", "application/json"), ("x-note", "gr\u00fc\u00df Gott"), ("x-note", "twice")), b"\x00\xff{}"
)


def at(seconds: float) -> datetime:
    """So long after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def token(id: str = "t1", **changes: Any) -> ApiToken:
    """A token whose secret is its id."""
    made = ApiToken(
        id=id,
        tenant="acme",
        owner="mira",
        scopes=frozenset({TokenScope.READ, TokenScope.WRITE}),
        digest=token_digest(id),
        label="the laptop",
        created_at=NOW,
    )
    return made.replace(**changes)


async def begin(
    store: ServerStore,
    tenant: str = PLACE[0],
    caller: str = PLACE[1],
    key: str = PLACE[2],
    *,
    fingerprint: str = "f",
    now: float = 0,
    lease: float = 60,
) -> Beginning:
    """Begin the request of the place with a lease of so many seconds from now."""
    return await store.begin(tenant, caller, key, fingerprint, now=at(now), lease_until=at(now + lease))
