"""Which packs and which of their memories are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lamina.domain.pack import MemoryType, PackStatus, PackType
from lamina.domain.pack_decay import Tier

__all__ = ["FOUND_TIERS", "DuePlace", "PackMemoryQuery", "PackQuery"]

FOUND_TIERS: Final = frozenset(Tier) - {Tier.ARCHIVED}
"""Tiers that retrieval sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackQuery:
    """Which packs: the shared ones of a tenant and those of `owner`; of `any_owner`, all of them."""

    tenant: str
    owner: str | None = None
    any_owner: bool = False
    type: PackType | None = None
    tag: str | None = None
    statuses: frozenset[PackStatus] = frozenset({PackStatus.ACTIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class PackMemoryQuery:
    """Which memories of these packs; none that are deleted. `tags` must all be there."""

    tenant: str
    pack_ids: tuple[str, ...]
    memory_type: MemoryType | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    min_confidence: float = 0.0
    tiers: frozenset[Tier] = FOUND_TIERS
    include_superseded: bool = False


@dataclass(frozen=True, slots=True)
class DuePlace:
    """Where a walk over the memories that are due stands: behind this instant and id."""

    due_at: datetime
    id: str
