"""Tokens that `lamina token create` made."""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict
from typing import Final

from lamina.domain.api_token import ApiToken, token_digest
from lamina.errors import LaminaError
from lamina.ports.clock import Clock, utc_now
from lamina.ports.server_store import ServerStore
from lamina.server.principal import Access, Principal

__all__ = ["REMEMBERED_SECONDS", "StoredTokens"]

REMEMBERED_SECONDS: Final = 2.0
"""How long a token is taken without looking it up again: a revoked one is good for at most so long."""
_MOST: Final = 10_000

log = logging.getLogger(__name__)


class StoredTokens:
    """Looks tokens up by the digest of their secret. Safe beside any other process over the same store."""

    def __init__(self, store: ServerStore, *, clock: Clock = utc_now, remembered: float = REMEMBERED_SECONDS) -> None:
        """`remembered` in seconds; 0 looks up every time."""
        self._store = store
        self._clock = clock
        self._remembered = remembered
        self._known: OrderedDict[str, tuple[float, ApiToken, Principal]] = OrderedDict()

    async def __call__(self, secret: str) -> Principal | None:
        """Whom the secret stands for; None if it is unknown, expired or revoked.

        Raises:
            AdapterError: the store failed.
        """
        digest = token_digest(secret)
        token, principal = self._recalled(digest) or await self._found(digest)
        return principal if token is not None and token.is_valid_at(self._clock()) else None

    def _recalled(self, digest: str) -> tuple[ApiToken, Principal] | None:
        known = self._known.get(digest)
        if known is None or time.monotonic() - known[0] >= self._remembered:
            return None
        return known[1:]

    async def _found(self, digest: str) -> tuple[ApiToken, Principal] | tuple[None, None]:
        asked = time.monotonic()
        token = await self._store.find_token(digest)
        self._known.pop(digest, None)
        # The look-up found it by equality; this comparison takes the same time however much of it is right.
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None, None
        principal = _principal_of(token)
        self._known[digest] = (asked, token, principal)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        await self._note_use(token)
        return token, principal

    async def _note_use(self, token: ApiToken) -> None:
        now = self._clock()
        if not token.is_valid_at(now) or token.is_use_noted_at(now):
            return
        try:
            await self._store.note_use(token.id, now=now)
        except LaminaError as error:  # when it was last used is worth less than the call
            log.warning("The use of a token could not be noted: %s", type(error).__name__)


def _principal_of(token: ApiToken) -> Principal:
    access = frozenset(Access(each) for each in token.scopes)
    return Principal(tenant=token.tenant, owner=token.owner, access=access, id=token.id)
