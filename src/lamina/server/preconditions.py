"""Edits that lose nothing silently: `ETag` says which revision was read, `If-Match` which one is to be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Header, Response

from lamina.errors import Conflict
from lamina.server.problems import Problem

__all__ = ["OptionalPrecondition", "Precondition", "etag", "set_etag"]

_TAG: Final = r'(?:W/)?"[!#-~]{0,128}"'
_IF_MATCH: Final = r'^(\*|(W/)?"[!#-~]{0,128}"([ \t]*,[ \t]*(W/)?"[!#-~]{0,128}"){0,15})$'
_OURS: Final = re.compile(r'"([0-9]{1,19})"')

IfMatch = Annotated[
    str | None,
    Header(
        pattern=_IF_MATCH,
        description="The `ETag` of what is to be changed, or `*` for whatever there is.",
        examples=['"1"'],
    ),
]


def etag(revision: int) -> str:
    """The strong tag of a revision."""
    return f'"{revision}"'


def set_etag(response: Response, revision: int) -> None:
    """Say in the answer which revision it shows."""
    response.headers["ETag"] = etag(revision)


@dataclass(frozen=True, slots=True)
class _Precondition:
    """What the client believes to change. `revisions` is None where it said `*`: any."""

    revisions: frozenset[int] | None

    @property
    def is_any(self) -> bool:
        """Whether whatever there is may be changed."""
        return self.revisions is None

    def check(self, revision: int) -> int | None:
        """Hold it against the revision that there is; returns `expected_revision` for the change itself.

        None under `*`: whatever is there by then is changed.

        Raises:
            Problem: 412, the client has seen another one.
        """
        if self.revisions is None:
            return None
        if revision not in self.revisions:
            raise _changed()
        return revision

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within: that somebody else was faster, after the check, is the same 412.

        Raises:
            Problem: 412.
        """
        try:
            yield
        except Conflict as error:
            if self.revisions is None or type(error) is not Conflict:
                raise
            raise _changed() from error


async def _optional(if_match: IfMatch = None) -> _Precondition:
    if if_match is None or if_match == "*":
        return _Precondition(None)
    return _Precondition(frozenset(map(int, _strong(if_match))))


async def _required(if_match: IfMatch = None) -> _Precondition:
    if if_match is None:
        detail = "Send If-Match with the ETag of what you have read, or * to change whatever there is."
        raise Problem(428, "precondition_required", "The request must say what it changes", detail)
    return await _optional(if_match)


Precondition = Annotated[_Precondition, Depends(_required)]
"""For edits: a request without `If-Match` is a 428."""
OptionalPrecondition = Annotated[_Precondition, Depends(_optional)]
"""For deletes: without `If-Match` as with `*`."""


def _strong(tags: str) -> list[str]:
    """Revisions that the tags name; weak and foreign ones match nothing."""
    return [found[1] for each in re.findall(_TAG, tags) if (found := _OURS.fullmatch(each))]


def _changed() -> Problem:
    detail = "Somebody changed it since. Read it again, and repeat the change on what you find."
    return Problem(412, "precondition_failed", "It is not what it was", detail)
