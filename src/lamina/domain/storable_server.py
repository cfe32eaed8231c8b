"""Tokens, requests and leases as they can be stored: what one server store takes, every other takes too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from lamina.domain.api_token import ApiToken, TokenScope
from lamina.domain.idempotency import KeptResponse
from lamina.domain.storable import check_paging
from lamina.domain.text import check_name, is_clean
from lamina.domain.validation import check_instant, check_whole_number
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "MAX_LABEL_CHARS",
    "MAX_RESPONSE_BYTES",
    "check_digest",
    "check_interval",
    "check_names",
    "check_token_listing",
    "storable_response",
    "storable_token",
]

MAX_LABEL_CHARS: Final = 200
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""Of the body of an answer that is kept."""

MAX_HEADER_CHARS: Final = 64 * 1024
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MIN_STATUS: Final = 100
_MAX_STATUS: Final = 599


def storable_token(token: ApiToken) -> ApiToken:
    """The token with its times in UTC, if it can be kept."""
    if not isinstance(token, ApiToken):
        raise InvalidType("token", f"must be an ApiToken, not {type(token).__name__}", "Give an ApiToken.")
    check_name("id", token.id)
    check_name("tenant", token.tenant)
    if token.owner is not None:
        check_name("owner", token.owner)
    if not check_digest(token.digest):
        raise InvalidInput("digest", "is no SHA-256 in lower-case hex", "Use token_digest(secret).")
    if not isinstance(token.label, str):
        raise InvalidType("label", f"must be text, not {type(token.label).__name__}", "Give a str.")
    if len(token.label) > MAX_LABEL_CHARS or not is_clean(token.label):
        remedy = f"Use at most {MAX_LABEL_CHARS} characters, without NUL and lone surrogates."
        raise InvalidInput("label", "is too long, or cannot be kept as it is", remedy)
    created_at = check_instant("created_at", token.created_at)
    times = {
        name: None if value is None else check_instant(name, value)
        for name in ("expires_at", "revoked_at", "last_used_at")
        for value in [getattr(token, name)]
    }
    expires_at = times["expires_at"]
    if expires_at is not None and expires_at <= created_at:
        raise InvalidInput("expires_at", "is not after created_at", "Give a later instant, or None for no end.")
    return token.replace(scopes=_scopes(token.scopes), created_at=created_at, **times)


def check_digest(digest: object) -> bool:
    """Whether a token can have the digest.

    Raises:
        InvalidType: it is no text.
    """
    if not isinstance(digest, str):
        raise InvalidType("digest", f"must be text, not {type(digest).__name__}", "Use token_digest(secret).")
    return _DIGEST.fullmatch(digest) is not None


def check_names(**names: object) -> None:
    """Refuse what cannot identify something (`lamina.domain.text.check_name`)."""
    for field, name in names.items():
        check_name(field, name)


def check_token_listing(tenant: str | None, limit: int, offset: int) -> None:
    """Refuse to list for what can be no tenant, or no page."""
    if tenant is not None:
        check_name("tenant", tenant)
    check_paging(check_whole_number("limit", limit, 0, 2**63 - 1), offset)


def storable_response(response: KeptResponse) -> KeptResponse:
    """The answer, if it can be kept."""
    if not isinstance(response, KeptResponse):
        raise InvalidType("response", f"must be a KeptResponse, not {type(response).__name__}", "Give a KeptResponse.")
    check_whole_number("status", response.status, _MIN_STATUS, _MAX_STATUS)
    if not isinstance(response.body, bytes):
        raise InvalidType("body", f"must be bytes, not {type(response.body).__name__}", "Give bytes.")
    if len(response.body) > MAX_RESPONSE_BYTES:
        problem = f"has {len(response.body)} bytes"
        raise InvalidInput("body", problem, f"Keep no answer of more than {MAX_RESPONSE_BYTES}.")
    return KeptResponse(response.status, _headers(response.headers), response.body)


def check_interval(start: datetime, end: datetime, *, end_name: str) -> tuple[datetime, datetime]:
    """Both in UTC, if `now` comes before the end."""
    now, until = check_instant("now", start), check_instant(end_name, end)
    if until <= now:
        raise InvalidInput(end_name, "is not after now", "Give a later instant.")
    return now, until


def _scopes(scopes: Any) -> frozenset[TokenScope]:
    if isinstance(scopes, str) or not isinstance(scopes, Iterable):
        raise InvalidType("scopes", f"must be a set, not {type(scopes).__name__}", "Give a set of TokenScope.")
    try:
        read = frozenset(TokenScope(each) for each in scopes)
    except ValueError:
        raise InvalidInput("scopes", "holds an unknown one", f"Use some of: {', '.join(TokenScope)}.") from None
    if not read:
        raise InvalidInput("scopes", "is empty", f"Give at least one of: {', '.join(TokenScope)}.")
    return read


def _headers(headers: Any) -> tuple[tuple[str, str], ...]:
    read = []
    for pair in headers:
        name, value = pair
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidType("headers", "hold what is no text", "Give pairs of str.")
        if not is_clean(name) or not is_clean(value):
            raise InvalidInput("headers", "hold a NUL or a lone surrogate", "Remove it.")
        read.append((name, value))
    if sum(len(name) + len(value) for name, value in read) > MAX_HEADER_CHARS:
        raise InvalidInput("headers", "are too long", f"Keep at most {MAX_HEADER_CHARS} characters of them.")
    return tuple(read)
