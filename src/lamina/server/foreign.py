"""What belongs to another owner is answered as what is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lamina.errors import LaminaError, ScopeError

__all__ = ["foreign_as"]


@contextmanager
def foreign_as(told: LaminaError) -> Iterator[None]:
    """Within: a thing of another owner is this error, the same as for one that there is not.

    Whether the token may act for the owner at all is asked before: `Caller.owner` tells that plainly.
    """
    try:
        yield
    except ScopeError as error:
        raise told from error
