"""Lists in numbered pages, and the envelope of everything under `/utils`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, Self, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel

from lamina.domain.recall import Degraded
from lamina.errors import InvalidInput
from lamina.server.wire.memories import Weakness
from lamina.server.wire.strict import MAX_LIMIT

__all__ = ["Found", "Listed", "Many", "NumberedPage", "Pagination", "Single", "checked_alias"]

_DEFAULT_SIZE: Final = 20
_LAST_PAGE: Final = 1_000_000_000

T = TypeVar("T")


class Pagination(BaseModel):
    """Where a page stands in its list. `limit` is how many items a page holds; the last one may hold fewer."""

    page: int
    limit: int
    total_items: int
    total_pages: int
    next_page: int | None
    prev_page: int | None

    @classmethod
    def of(cls, page: int, limit: int, total: int) -> Self:
        """Of the page of this number. Beyond the last one, the one before is the last that there is."""
        pages = -(-total // limit)
        before = min(page - 1, pages)
        return cls(
            page=page,
            limit=limit,
            total_items=total,
            total_pages=pages,
            next_page=page + 1 if page < pages else None,
            prev_page=before or None,
        )


class Single(BaseModel, Generic[T]):
    """One thing."""

    data: T


class Many(BaseModel, Generic[T]):
    """Several things, none of which is on another page."""

    data: list[T]


class Listed(BaseModel, Generic[T]):
    """A page of a list."""

    data: list[T]
    pagination: Pagination


class Found(Listed[T], Generic[T]):
    """The best of what was searched, best first. `degraded` is empty where every leg of the search answered.

    A list without a search in it has no `degraded`.
    """

    degraded: list[Weakness] = []

    @classmethod
    def best(cls, found: Sequence[T], limit: int, degraded: Sequence[Degraded]) -> Self:
        """All that was found, where at most `limit` was asked for: the only page."""
        return cls(
            data=list(found),
            pagination=Pagination.of(1, limit, len(found)),
            degraded=[Weakness.of(each) for each in degraded],
        )


@dataclass(frozen=True, slots=True)
class _NumberedPage:
    """The page that a request asks for."""

    page: int
    limit: int

    @property
    def offset(self) -> int:
        """How many items are on the pages before."""
        return (self.page - 1) * self.limit

    def at_most(self, limit: int) -> _NumberedPage:
        """The page with no more items than that."""
        return _NumberedPage(self.page, min(self.limit, limit))

    def of(self, total: int) -> Pagination:
        """Where this page stands in a list of so many."""
        return Pagination.of(self.page, self.limit, total)


async def _numbered_page(
    request: Request,
    page: Annotated[int, Query(ge=1, le=_LAST_PAGE, description="From 1 on.")] = 1,
    page_size: Annotated[
        int | None, Query(ge=1, le=MAX_LIMIT, description=f"How many on a page; {_DEFAULT_SIZE} if nothing is said.")
    ] = None,
    limit: Annotated[int | None, Query(ge=1, le=MAX_LIMIT, description="Another name of `page_size`.")] = None,
) -> _NumberedPage:
    size = checked_alias("limit", limit, "page_size", page_size) or _DEFAULT_SIZE
    return _NumberedPage(page, min(size, request.app.state.settings.max_results))


NumberedPage = Annotated[_NumberedPage, Depends(_numbered_page)]
"""The page a route is asked for; at most as many items as the server's settings allow."""


def checked_alias(alias: str, by_alias: T | None, name: str, by_name: T | None) -> T | None:
    """What was given by either of two names.

    Raises:
        InvalidInput: both say something, and not the same.
    """
    if by_alias is not None and by_name is not None and by_alias != by_name:
        raise InvalidInput(alias, f"says something else than {name}", "Give one of them: they mean the same.")
    return by_name if by_alias is None else by_alias
