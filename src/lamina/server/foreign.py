"""What belongs to another owner is answered as what is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lamina.errors import LaminaError, ScopeError

__all__ = ["foreign_as", "unless_foreign"]

T = TypeVar("T")


@contextmanager
def foreign_as(told: LaminaError) -> Iterator[None]:
    """Within: a thing of another owner is this error, the same as for one that there is not.

    Whether the token may act for the owner at all is asked before: `Caller.owner` tells that plainly.
    """
    try:
        yield
    except ScopeError as error:
        raise told from error


async def unless_foreign(call: Awaitable[T], missing: T) -> T:
    """What the call gives; for a thing of another owner what it gives of one that there is not."""
    try:
        return await call
    except ScopeError:
        return missing
