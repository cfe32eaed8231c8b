"""What the parts of the client have in common: one server, and for whom they ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from lamina.client.failures import readable
from lamina.client.transport import Request, Transport
from lamina.domain.text import check_name
from lamina.errors import NotFound

__all__ = ["PAGE", "Resource", "if_match", "sendable"]

T = TypeVar("T")
N = TypeVar("N", bound=NotFound)

PAGE = 100
"""How many items are asked for at a time; what a server gives at most."""


class Resource:
    """A part of a client. An `owner` given to a call goes before the client's own."""

    def __init__(self, transport: Transport, owner: str | None) -> None:
        self._transport = transport
        self._owner = owner

    def _for(self, owner: str | None) -> str | None:
        return self._owner if owner is None else check_name("owner", owner)

    async def _ask(self, request: Request, read: Callable[[Any], T]) -> T:
        answer = await self._transport.ask(request)
        with readable():
            return read(answer)

    async def _pages(
        self, path: tuple[str, ...], query: Mapping[str, Any], read: Callable[[Any], T], *, limit: int | None = None
    ) -> AsyncIterator[T]:
        """The items of a list, page by page; at most `limit`."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            asked = Request(method="GET", path=path, query={**query, "limit": size, "cursor": cursor})
            items, cursor = await self._ask(asked, lambda page: ([read(each) for each in page["data"]], _cursor(page)))
            for item in items:
                yield item
            if left is not None:
                left -= len(items)
            if cursor is None:
                return


def sendable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that say nothing; times in ISO 8601."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in fields.items()
        if value is not None
    }


def if_match(expected_revision: int | None) -> str:
    """What an edit is of: this revision, or whatever there is."""
    return "*" if expected_revision is None else f'"{expected_revision}"'


def _cursor(page: Mapping[str, Any]) -> str | None:
    cursor = page["next_cursor"]
    return None if cursor is None else str(cursor)
