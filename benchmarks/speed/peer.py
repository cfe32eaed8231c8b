"""A peer (see `benchmarks/peers`) behind the face that all systems have here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from peers import Row, peer_class

from speed.dataset import DIMENSIONS, Item, Query
from speed.systems import BEST, MODES, System

_THEIR_NAMES: Final = {"vector": "vector", "text": "keyword", "hybrid": "hybrid"}


class Peer(System):
    """Its calls block; nobody else waits for them here."""

    fills_at_once = True

    def __init__(self, name: str) -> None:
        kind = peer_class(name)
        self._peer: Any = kind()
        self.persistent = kind.persistent
        self.durability = kind.durability
        self.modes = tuple(mode for mode in MODES if _THEIR_NAMES[mode] in kind.modes)
        self.scopes = tuple(scoped for scoped in (True, False) if (kind.scoped if scoped else kind.unscoped))

    async def open(self, folder: Path) -> None:
        self._peer.open(folder, DIMENSIONS)

    async def fill(self, items: Sequence[Item]) -> None:
        self._peer.fill([Row(item.id, item.owner, item.text, item.vector) for item in items])

    async def add(self, item: Item) -> None:
        self._peer.add(Row(item.id, item.owner, item.text, item.vector))

    async def search(self, query: Query, mode: str, *, scoped: bool) -> list[str]:
        owner = query.owner if scoped else None
        found: list[str] = self._peer.search(query.vector, query.text, owner=owner, limit=BEST, mode=_THEIR_NAMES[mode])
        return found

    async def close(self) -> None:
        self._peer.close()
