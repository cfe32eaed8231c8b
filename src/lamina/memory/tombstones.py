"""Marks of what was erased: keyed hashes without content, so that an older export does not bring it back.

The key is random, and kept beside the marks: they tell nothing to whoever has not the file, and to whoever has it
only whether a name that he guesses is among them.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import datetime
from typing import Final, Literal

from lamina.domain.scope import Scope
from lamina.errors import Conflict
from lamina.ports.memory_adapter import MemoryAdapter

__all__ = ["Tombstones"]

_KEY: Final = "erasure-key"
_PREFIX: Final = "erased-"
_BYTES: Final = 32

Kind = Literal["owner", "memory"]


class Tombstones:
    """The marks of one tenant, among the meta values of its store."""

    def __init__(self, adapter: MemoryAdapter, tenant: str) -> None:
        self._adapter = adapter
        self._scope = Scope(tenant)
        self._key: bytes | None = None

    async def put(self, kind: Kind, name: str, now: datetime) -> str:
        """Mark that what the owner had until now, or the memory, is gone for good; the mark."""
        mark = await self._mark(kind, name, now)
        await self._adapter.save_meta(self._scope, mark, now.isoformat(), now)
        return mark

    async def erased_at(self, kind: Kind, name: str) -> datetime | None:
        """When it was marked last; None if it never was."""
        if self._key is None and await self._adapter.load_meta(self._scope, _KEY) is None:
            return None  # nothing was ever erased here
        value = await self._adapter.load_meta(self._scope, await self._mark(kind, name, None))
        return None if value is None else datetime.fromisoformat(value)

    async def _mark(self, kind: Kind, name: str, now: datetime | None) -> str:
        digest = hmac.new(await self._read_key(now), f"{kind}\0{name}".encode(), hashlib.sha256)
        return f"{_PREFIX}{digest.hexdigest()}"

    async def _read_key(self, now: datetime | None) -> bytes:
        if self._key is None:
            kept = await self._adapter.load_meta(self._scope, _KEY)
            if kept is None:
                assert now is not None  # noqa: S101 - only what writes a mark comes here before there is a key
                with suppress(Conflict):  # another process was faster
                    await self._adapter.save_meta(self._scope, _KEY, secrets.token_hex(_BYTES), now, expected=None)
                kept = await self._adapter.load_meta(self._scope, _KEY)
            assert kept is not None  # noqa: S101 - it was written just now
            self._key = bytes.fromhex(kept)
        return self._key
