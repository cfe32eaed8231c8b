"""What a list of threads or documents may be asked for, the same on every backend."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from lamina.domain.storable import check_kind, check_paging
from lamina.domain.text import check_name
from lamina.domain.thread import ThreadKind, ThreadStatus
from lamina.domain.validation import check_instant, check_whole_number
from lamina.errors import InvalidType

__all__ = ["check_document_listing", "check_thread_listing"]

_INT64: Final = 2**63 - 1
_KEYS_OF_A_PLACE: Final = 2


def check_thread_listing(
    tenant: str,
    kind: ThreadKind,
    *,
    owner: str | None,
    status: ThreadStatus | None,
    limit: int,
    offset: int,
    after: tuple[datetime, str] | None,
) -> None:
    """Refuse to list threads of what can be no tenant, kind, owner or status, or no page."""
    check_kind("kind", kind, ThreadKind)
    if after is not None:
        at, id = _place(after)
        check_instant("after", at)
        check_name("after", id)
    if status is not None:
        check_kind("status", status, ThreadStatus)
    _check_listing(tenant, owner, check_whole_number("limit", limit, 0, _INT64), offset)


def check_document_listing(
    tenant: str,
    *,
    source: str | None,
    owner: str | None,
    limit: int | None,
    offset: int,
    after: tuple[str, str] | None,
) -> None:
    """Refuse to list documents of what can be no tenant, source or owner, or no page."""
    _check_listing(tenant, owner, limit, offset)
    if source is not None:
        check_name("source", source)
    if after is not None:
        for name in _place(after):
            check_name("after", name)


def _check_listing(tenant: str, owner: str | None, limit: int | None, offset: int) -> None:
    check_name("tenant", tenant)
    if owner is not None:
        check_name("owner", owner)
    check_paging(limit, offset)


def _place(after: object) -> tuple[Any, ...]:
    if not isinstance(after, tuple) or len(after) != _KEYS_OF_A_PLACE:
        raise InvalidType("after", "must be a pair", "Give the sort key and the id of the last one before.")
    return after
