"""Where the answers to requests with an `Idempotency-Key` are kept."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from datetime import datetime
from typing import Final, Protocol

from lamina.domain.idempotency import Beginning, KeptRequest, KeptResponse, RequestState

__all__ = ["Requests", "RequestsInProcess"]

_MOST: Final = 10_000
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Of the answers that are kept, without what Python takes beside."""


class Requests(Protocol):
    """The part of `lamina.ports.server_store.ServerStore` that this needs."""

    async def begin(
        self, tenant: str, caller: str, key: str, fingerprint: str, *, now: datetime, lease_until: datetime
    ) -> Beginning:
        """Whether it is to be done now."""

    async def finish(self, tenant: str, caller: str, key: str, claim: str, *, response: KeptResponse) -> bool:
        """Keep the answer."""

    async def abandon(self, tenant: str, caller: str, key: str, claim: str) -> bool:
        """Forget it."""

    async def purge(self, before: datetime) -> int:
        """Forget the old ones."""


class RequestsInProcess:
    """For an app without a server store: the last 10,000 requests, until the process ends.

    Fewer where their answers together have more than `most_bytes`.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, ...], tuple[KeptRequest, str, datetime]] = OrderedDict()

    async def begin(
        self, tenant: str, caller: str, key: str, fingerprint: str, *, now: datetime, lease_until: datetime
    ) -> Beginning:
        """As `ServerStore.begin`."""
        place = (tenant, caller, key)
        if place in self._kept:
            request = self._kept[place][0]
            state = request.meets(fingerprint, now)
            if state is not RequestState.NEW:
                return Beginning(state, response=request.response if state is RequestState.FINISHED else None)
        claim = uuid.uuid4().hex
        self._drop(place)
        self._kept[place] = (KeptRequest(fingerprint, lease_until, None), claim, now)
        if len(self._kept) > _MOST:
            self._drop(next(iter(self._kept)))
        return Beginning(RequestState.NEW, claim)

    async def finish(self, tenant: str, caller: str, key: str, claim: str, *, response: KeptResponse) -> bool:
        """As `ServerStore.finish`."""
        place = (tenant, caller, key)
        if not self._holds(place, claim):
            return False
        request, _, begun = self._kept[place]
        self._kept[place] = (KeptRequest(request.fingerprint, request.lease_until, response), claim, begun)
        self._bytes += len(response.body)
        while self._bytes > self._most_bytes:  # those that are being done have no answer, and stay
            self._drop(next(each for each, (kept, _, _) in self._kept.items() if kept.response is not None))
        return True

    async def abandon(self, tenant: str, caller: str, key: str, claim: str) -> bool:
        """As `ServerStore.abandon`."""
        place = (tenant, caller, key)
        if not self._holds(place, claim):
            return False
        self._drop(place)
        return True

    async def purge(self, before: datetime) -> int:
        """As `ServerStore.purge`."""
        old = [
            place
            for place, (request, _, begun) in self._kept.items()
            if begun < before and (request.response is not None or request.lease_until <= before)
        ]
        for place in old:
            self._drop(place)
        return len(old)

    def _drop(self, place: tuple[str, ...]) -> None:
        dropped = self._kept.pop(place, None)
        if dropped is not None and dropped[0].response is not None:
            self._bytes -= len(dropped[0].response.body)

    def _holds(self, place: tuple[str, ...], claim: str) -> bool:
        found = self._kept.get(place)
        return found is not None and found[0].response is None and found[1] == claim
