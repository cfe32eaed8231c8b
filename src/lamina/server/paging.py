"""Lists in pages: a cursor says where the last page ended, by the sort key of its last item and no content."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, StringConstraints

from lamina.domain.instants import from_micros, to_micros
from lamina.server.authentication import authenticated
from lamina.server.principal import Principal
from lamina.server.problems import Problem
from lamina.server.strict_json import MalformedJson, read_json, wrong_values
from lamina.server.wire.strict import MAX_INTEGER, MAX_LIMIT

__all__ = ["Page", "Paging", "Position"]

Position: TypeAlias = tuple[str | int | float | None, ...]
"""Where a page ends: an offset, or the sort key of its last item. Times, numbers, names and ids, never content."""

_VERSION: Final = 1
_DIGEST_BYTES: Final = 12
_MAX_CURSOR: Final = 16_384
"""Room for two names, however they are written."""
_FIRST: Final = to_micros(datetime.min.replace(tzinfo=UTC))
_LAST: Final = to_micros(datetime.max.replace(tzinfo=UTC))
_DEFAULT_LIMIT: Final = 20
_NO_PART_OF_THE_LIST: Final = frozenset({"cursor", "limit"})

T = TypeVar("T")
Row = TypeVar("Row")


class Page(BaseModel, Generic[T]):
    """A part of a list. The next begins after its last item; there is none where `next_cursor` is null."""

    data: list[T]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class _Paging:
    """The page that a request asks for: at most `limit` items after the position `after`."""

    limit: int
    after: Position | None
    binding: bytes

    @property
    def number(self) -> int:
        """What the page begins behind, in a list that is sorted by a number from 1 on, or counted; 0 at its begin.

        Raises:
            Problem: 422, the cursor is of another list.
        """
        match self.after:
            case None:
                return 0
            case (int(number),) if 0 <= number <= MAX_INTEGER:
                return number
            case _:
                raise _foreign()

    @property
    def instant(self) -> tuple[datetime, str] | None:
        """What the page begins behind, in a list that is sorted by an instant, in microseconds, and an id.

        Raises:
            Problem: 422, the cursor is of another list.
        """
        match self.after:
            case None:
                return None
            case (int(micros), str(id)) if _FIRST <= micros <= _LAST:
                return from_micros(micros), id
            case _:
                raise _foreign()

    @property
    def name(self) -> tuple[str, str] | None:
        """What the page begins behind, in a list that is sorted by a name and an id.

        Raises:
            Problem: 422, the cursor is of another list.
        """
        match self.after:
            case None:
                return None
            case (str(name), str(id)):
                return name, id
            case _:
                raise _foreign()

    def behind(self, ids: Sequence[str]) -> int:
        """How many of these come before the page, in a list that is read whole and whose cursors hold an id.

        Raises:
            Problem: 422, the cursor is of another list, or of what this list was before.
        """
        match self.after:
            case None:
                return 0
            case (str(id),) if id in ids:
                return ids.index(id) + 1
            case _:
                raise _foreign()

    def counted(self, rows: Sequence[Row], show: Callable[[Row], T]) -> Page[T]:
        """The page of a list whose rows never change place, of which the first `number` were left out.

        With one row more than `limit`, if there is one.
        """
        following = (self.number + self.limit,)
        return self._page(rows, show, lambda _: following)

    def sorted(self, rows: Sequence[Row], show: Callable[[Row], T], key: Callable[[Row], Position]) -> Page[T]:
        """The page of a list that was read after the key `after`, with one row more than `limit` if there is one."""
        return self._page(rows, show, key)

    def _page(self, rows: Sequence[Row], show: Callable[[Row], T], key: Callable[[Row], Position]) -> Page[T]:
        kept = rows[: self.limit]
        more = _encoded(key(kept[-1]), self.binding) if len(rows) > self.limit else None
        return Page(data=[show(each) for each in kept], next_cursor=more)


async def _paging(
    request: Request,
    principal: Annotated[Principal, Depends(authenticated)],
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="At most so many.")] = _DEFAULT_LIMIT,
    cursor: Annotated[
        str | None,
        StringConstraints(min_length=1, max_length=_MAX_CURSOR, pattern="^[A-Za-z0-9_-]+$"),
        Query(description="The `next_cursor` of the page before."),
    ] = None,
) -> _Paging:
    binding = _binding(request, principal)
    after = None if cursor is None else _decoded(cursor, binding)
    return _Paging(min(limit, request.app.state.settings.max_results), after, binding)


Paging = Annotated[_Paging, Depends(_paging)]
"""The page a route is asked for: read one row more than `limit`, and give the rows to `counted` or `sorted`."""


def _binding(request: Request, principal: Principal) -> bytes:
    """What makes this list another than others: a cursor goes on with the same list only."""
    asked = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in _NO_PART_OF_THE_LIST)
    return json.dumps([request.scope["path"], principal.tenant, principal.owner, asked]).encode()


def _encoded(position: Position, binding: bytes) -> str:
    payload = json.dumps(position, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(bytes([_VERSION]) + _digest(payload, binding) + payload).decode().rstrip("=")


def _decoded(cursor: str, binding: bytes) -> Position:
    try:
        read = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    digest, payload = read[1 : 1 + _DIGEST_BYTES], read[1 + _DIGEST_BYTES :]
    is_ours = read[:1] == bytes([_VERSION]) and digest == _digest(payload, binding)
    if not is_ours or base64.urlsafe_b64encode(read).decode().rstrip("=") != cursor:
        raise _foreign()
    return _read(payload)


def _read(payload: bytes) -> Position:
    """The position, which is a caller's word like any other: the digest is none that only we could make."""
    try:
        position = read_json(payload)
    except MalformedJson:
        raise _foreign() from None
    if not isinstance(position, list) or any(isinstance(each, dict | list) for each in position):
        raise _foreign()
    if any(wrong_values("cursor", position)):
        raise _foreign()
    return tuple(position)


def _digest(payload: bytes, binding: bytes) -> bytes:
    """Against mistakes and mixing lists up. It is no secret: a position reaches nothing that its token does not."""
    return hashlib.sha256(bytes([_VERSION]) + len(binding).to_bytes(8, "big") + binding + payload).digest()[
        :_DIGEST_BYTES
    ]


def _foreign() -> Problem:
    problem = "is none of this list"
    remedy = "Give the next_cursor of the page before, with the same parameters, or leave it out."
    error = {"field": "cursor", "problem": problem, "remedy": remedy}
    return Problem(422, "invalid_cursor", "The cursor cannot be taken", f"cursor: {problem}. {remedy}", (error,))
