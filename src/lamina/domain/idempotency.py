"""Requests that may be repeated: which are under way, and what was answered to those that are done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["Beginning", "KeptRequest", "KeptResponse", "RequestState"]


class RequestState(StrEnum):
    """What there is of a request when it comes in."""

    NEW = "new"
    """Nothing, or what a process that is gone left of it: it is to be done now."""
    IN_PROGRESS = "in_progress"
    """Somebody is doing it."""
    FINISHED = "finished"
    """It was done, and its answer is kept."""
    MISMATCH = "mismatch"
    """Its key was used for another request."""


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """What was answered."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a request begins. A new one has a claim, to finish or abandon it with; a finished one has its answer."""

    state: RequestState
    claim: str | None = None
    response: KeptResponse | None = None


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """What a store keeps of a request."""

    fingerprint: str
    lease_until: datetime
    response: KeptResponse | None

    def meets(self, fingerprint: str, now: datetime) -> RequestState:
        """What it is to a request that comes in now under the same key."""
        if fingerprint != self.fingerprint:
            return RequestState.MISMATCH
        if self.response is not None:
            return RequestState.FINISHED
        return RequestState.IN_PROGRESS if now < self.lease_until else RequestState.NEW
