"""Marks of what was erased: keyed hashes without content, so that an older export does not bring it back.

The key is random, and kept beside the marks: they tell nothing to whoever has not the file, and to whoever has it
only whether a name that he guesses is among them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Literal, TypeAlias

from lamina.domain.context import ENTRY_ID
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import Conflict
from lamina.ports.memory_adapter import MemoryAdapter

__all__ = ["Tombstones"]

_KEY: Final = "erasure-key"
_PREFIX: Final = "erased-"
_LIFTED: Final = "lifted"
_BYTES: Final = 32

Kind: TypeAlias = Literal["owner", "memory"]


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

    async def put_memories(self, ids: Sequence[str], now: datetime) -> None:
        """Mark that these memories are gone for good, in one write where the store has that."""
        if ids:
            marks = [await self._mark("memory", id, now) for id in ids]
            await self._adapter.save_meta_many(self._scope, marks, now.isoformat(), now)

    async def lift_memories(self, ids: Sequence[str], now: datetime) -> None:
        """Take the marks of these memories back, which are there still."""
        if ids:
            marks = [await self._mark("memory", id, now) for id in ids]
            await self._adapter.save_meta_many(self._scope, marks, _LIFTED, now)

    async def erased(self, entries: Collection[MemoryEntry]) -> set[str]:
        """The ids of those that were stored before they, or what they copy, or all of their owner's, was deleted."""
        if not await self._has_key():
            return set()
        asked = {entry.id: _names(entry) for entry in entries}
        names = list({name for each in asked.values() for name in each})
        marks = dict(zip(names, await asyncio.gather(*(self.erased_at(*name) for name in names)), strict=True))
        return {
            entry.id
            for entry in entries
            if any((at := marks[name]) is not None and entry.created_at <= at for name in asked[entry.id])
        }

    async def erased_at(self, kind: Kind, name: str) -> datetime | None:
        """When it was marked last; None if it never was."""
        if not await self._has_key():
            return None
        value = await self._adapter.load_meta(self._scope, await self._mark(kind, name, None))
        return None if value is None or value == _LIFTED else datetime.fromisoformat(value)

    async def _mark(self, kind: Kind, name: str, now: datetime | None) -> str:
        digest = hmac.new(await self._read_key(now), f"{kind}\0{name}".encode(), hashlib.sha256)
        return f"{_PREFIX}{digest.hexdigest()}"

    async def _read_key(self, now: datetime | None) -> bytes:
        if not await self._has_key():
            assert now is not None  # noqa: S101 - only what writes a mark comes here before there is a key
            with suppress(Conflict):  # another process was faster
                await self._adapter.save_meta(self._scope, _KEY, secrets.token_hex(_BYTES), now, expected=None)
            await self._has_key()
        assert self._key is not None  # noqa: S101 - it was written just now
        return self._key

    async def _has_key(self) -> bool:
        """Whether anything was ever erased here; the key is read once."""
        if self._key is None:
            kept = await self._adapter.load_meta(self._scope, _KEY)
            self._key = None if kept is None else bytes.fromhex(kept)
        return self._key is not None


def _names(entry: MemoryEntry) -> list[tuple[Kind, str]]:
    """What a mark may stand for that keeps the entry out."""
    copied = entry.metadata.get(ENTRY_ID)  # of what a pack took a copy of
    ids = [entry.id, copied] if isinstance(copied, str) else [entry.id]
    return [("owner", entry.owner), *(("memory", id) for id in ids)]
