"""What Context Packs hold: named, typed containers of memories that fade when nobody needs them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

from lamina.domain.memory import Vector
from lamina.domain.pack_decay import Decay, Tier, next_step

__all__ = [
    "DEFAULT_DECAYS",
    "OWNED_TYPES",
    "SUPERSEDES",
    "MemoryType",
    "Pack",
    "PackConfidence",
    "PackHit",
    "PackMatch",
    "PackMemory",
    "PackMetadata",
    "PackOrder",
    "PackSource",
    "PackStatus",
    "PackSummary",
    "PackType",
    "PackUse",
    "Relationship",
]

SUPERSEDES: Final = "supersedes"
"""The type of the relationship whose other side is the `superseded_by` of its target."""

PackOrder = Literal["oldest", "last_accessed"]
"""By the order of adding; or the newest access first, then the newest memory, those never read last."""


class PackType(StrEnum):
    """What a pack is about, and so how fast it fades."""

    SESSION = "session"
    """One conversation, in high detail; days."""
    USER = "user"
    """What is known of a user, and what the user prefers; months."""
    DOMAIN = "domain"
    """Facts, rules and relations of a field; years."""
    PROJECT = "project"
    """Decisions, conventions and constraints; months."""
    AGENT = "agent"
    """What one agent has learned; months."""


OWNED_TYPES: Final = frozenset({PackType.SESSION, PackType.USER})
"""Types of packs that belong to one owner; one of another type may, or is shared in the tenant."""

_MONTHS: Final = Decay(timedelta(days=30))

DEFAULT_DECAYS: Final = {
    PackType.SESSION: Decay(timedelta(hours=12)),
    PackType.USER: _MONTHS,
    PackType.DOMAIN: Decay(timedelta(days=365)),
    PackType.PROJECT: _MONTHS,
    PackType.AGENT: _MONTHS,
}
"""How the memories of packs fade that say nothing of their own."""


class PackStatus(StrEnum):
    """Whether a pack is found. Only an active one takes new memories."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"
    """As good as gone, and its name is free; `delete(permanent=True)` removes it for good."""


class MemoryType(StrEnum):
    """What kind of knowledge a pack memory is."""

    FACT = "fact"
    """About an entity or a system."""
    EXPERIENCE = "experience"
    """Behaviour that was learned."""
    OBSERVATION = "observation"
    """A pattern or an anomaly that was seen."""
    INSTRUCTION = "instruction"
    PREFERENCE = "preference"
    SUMMARY = "summary"
    """A session in short."""
    GLOSSARY = "glossary"
    """What a term of the business means."""
    ONTOLOGY = "ontology"
    """A classification, or the values that a thing may take."""
    TEXTUAL_PATTERN = "textual_pattern"
    """The shape of data that are text."""
    KPI = "kpi"
    """How a measure is defined."""
    EXEMPLAR = "exemplar"
    """A worked example."""
    JOIN = "join"
    """How two tables relate."""
    NUMERIC_PATTERN = "numeric_pattern"
    """The shape of data that are numbers."""
    POLICY = "policy"


class PackSource(StrEnum):
    """What a pack memory was learned from."""

    CONVERSATION = "conversation"
    DOCUMENT = "document"
    AGENT_MESSAGE = "agent_message"


@dataclass(frozen=True, slots=True)
class Relationship:
    """That a memory relates to another one of its tenant; any type is allowed, such as `related_to`."""

    type: str
    target_id: str


@dataclass(slots=True)
class Pack:
    """A pack itself, without its memories. Treat it as a value.

    `name` is unique among the packs of its tenant and owner that are not deleted. `revision` grows with each
    change of the pack, not with those of its memories; `updated_at` tells of both.
    """

    id: str
    tenant: str
    name: str
    type: PackType
    created_at: datetime
    updated_at: datetime
    owner: str | None = None
    """None: shared in the tenant."""
    description: str = ""
    tags: list[str] = field(default_factory=list)
    status: PackStatus = PackStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)
    decay: Decay | None = None
    """None: that of its type."""
    revision: int = 1
    embedding: Vector | None = None
    """Of name, description and tags; made by the model of `fingerprint`."""
    fingerprint: str | None = None

    @property
    def current_decay(self) -> Decay:
        """How its memories fade: its own way, or that of its type."""
        return self.decay or DEFAULT_DECAYS[self.type]

    def replace(self, **changes: Any) -> Pack:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class PackFace:
    """What a pack is found by, and nothing else of it."""

    id: str
    name: str
    description: str
    tags: list[str]
    embedding: Vector | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class PackSummary:
    """The first layer of disclosure: all that finding a pack takes."""

    id: str
    name: str
    type: PackType
    description: str
    tags: list[str]
    owner: str | None
    status: PackStatus
    created_at: datetime
    updated_at: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class PackMatch:
    """A pack that was found, and how well it matches, in [0, 1]."""

    pack: PackSummary
    score: float


@dataclass(frozen=True, slots=True)
class PackConfidence:
    """Of the memories of a pack; None where there is none."""

    min: float | None
    mean: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class PackUse:
    """How the memories of a pack were read."""

    total: int
    last_accessed: datetime | None
    most_used: list[str]
    """Ids, the most often read first; at most 5, and only such as were read at all."""


@dataclass(frozen=True, slots=True)
class PackMetadata:
    """The second layer: what a pack holds, counted over its memories that are not superseded."""

    memory_count: int
    type_distribution: dict[MemoryType, int]
    tier_distribution: dict[Tier, int]
    confidence: PackConfidence
    access: PackUse


@dataclass(slots=True)
class PackMemory:
    """A memory of a pack: the third layer. Treat it as a value.

    `content` is the original as it was added, unless the memory was read without touching it: then it is what
    the tier has left of it. `revision` grows with each change, and with each step down or up; reading a full
    one does not change it.
    """

    id: str
    tenant: str
    pack_id: str
    content: str
    created_at: datetime
    updated_at: datetime
    memory_type: MemoryType = MemoryType.FACT
    name: str | None = None
    """For direct retrieval: unique in its pack among those that are neither superseded nor deleted."""
    source: PackSource = PackSource.CONVERSATION
    confidence: float = 1.0
    provenance: str | None = None
    """Where it was learned, in the caller's words."""
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    relationships: list[Relationship] = field(default_factory=list)
    last_accessed: datetime | None = None
    access_count: int = 0
    superseded_by: str | None = None
    tier: Tier = Tier.FULL
    tier_since: datetime | None = None
    pinned_at: datetime | None = None
    """Since when it is pinned; a pinned memory never fades."""
    expires_at: datetime | None = None
    """When it is archived, pinned or not."""
    is_deleted: bool = False
    revision: int = 1
    embedding: Vector | None = None
    """Only where it was asked for."""

    @property
    def idle_since(self) -> datetime:
        """What its fading is counted from."""
        return self.last_accessed or self.created_at

    def due_at(self, decay: Decay) -> datetime | None:
        """When it leaves its tier if nobody reads it: fades, unless it is pinned, or expires; None if never."""
        if self.is_deleted or self.tier is Tier.ARCHIVED:
            return None
        step = next_step(idle_since=self.idle_since, tier=self.tier, decay=decay) if self.pinned_at is None else None
        return min((each for each in (step, self.expires_at) if each is not None), default=None)

    def replace(self, **changes: Any) -> PackMemory:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class PackHit:
    """A memory that was retrieved. `score` is in [0, 1]; None where nothing was searched for.

    With a query it is similarity x confidence x the factor of the tier that the memory was found in.
    """

    memory: PackMemory
    score: float | None
    found_in: Tier
