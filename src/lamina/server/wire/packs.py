"""Context Packs on the wire."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lamina.domain.pack import (
    OWNED_TYPES,
    MemoryType,
    Pack,
    PackMatch,
    PackMetadata,
    PackStatus,
    PackSummary,
    PackType,
)
from lamina.domain.pack_decay import Decay, Tier
from lamina.packs.fading import FadingStep
from lamina.server.wire.strict import BY_VALUE, JsonObject, Limit, Name, StrictBody, Tag, Text, Unit

__all__ = [
    "Discover",
    "NewPack",
    "PackChanges",
    "PackContents",
    "PackFound",
    "PackName",
    "PackShown",
    "PackWhole",
    "Step",
]

PackName = Annotated[str, StringConstraints(pattern="^[a-z0-9][a-z0-9_-]{0,62}$")]
"""1 to 63 of a-z, 0-9, underscore and hyphen."""
AType = Annotated[PackType, BY_VALUE]
Description = Annotated[str, StringConstraints(max_length=16_000, pattern="^[^\x00]*$")]
Tags = Annotated[list[Tag], Field(max_length=100)]
_LONGEST_UNIT: Final = 100 * 365 * 24 * 3600
_OWNED_OR_NOT: Final[dict[str, Any]] = {
    "anyOf": [
        {"properties": {"type": {"enum": sorted(each.value for each in PackType if each not in OWNED_TYPES)}}},
        {"properties": {"owner": {"type": "string"}}, "required": ["owner"]},
    ]
}
"""Who has a token that is bound to an owner may leave it out all the same."""


class Decaying(StrictBody):
    """How the memories of a pack fade: after 1, 2, 4 and 8 `unit`s without being read, or after other `steps`."""

    unit: Annotated[float, Field(gt=0, le=_LONGEST_UNIT, description="In seconds.")]
    steps: Annotated[list[Annotated[float, Field(gt=0, le=10_000)]], Field(min_length=4, max_length=4)] | None = None

    @classmethod
    def of(cls, decay: Decay) -> Self:
        """The decay on the wire."""
        return cls(unit=decay.unit / timedelta(seconds=1), steps=list(decay.steps))

    def given(self) -> dict[str, Any]:
        """As the packs take it."""
        return self.model_dump(exclude_none=True)


class PackShown(BaseModel):
    """The summary layer of a pack. `owner` is null where it is shared in the tenant."""

    id: str
    name: str
    type: PackType
    description: str
    tags: list[str]
    status: PackStatus
    owner: str | None
    created_at: datetime
    updated_at: datetime
    revision: int

    @classmethod
    def of(cls, pack: Pack | PackSummary) -> Self:
        """The pack without its vector, and without what is only ours."""
        return cls(**{name: getattr(pack, name) for name in PackShown.model_fields})


class Confidence(BaseModel):
    """Of the memories of a pack; null where there is none."""

    min: float | None
    mean: float | None
    max: float | None


class Use(BaseModel):
    """How the memories of a pack were read; `most_used` are ids, the most often read first."""

    total: int
    last_accessed: datetime | None
    most_used: list[str]


class PackContents(BaseModel):
    """The metadata layer: what a pack holds, counted. Superseded memories do not count."""

    memory_count: int
    type_distribution: dict[MemoryType, int]
    tier_distribution: dict[Tier, int]
    confidence: Confidence
    access: Use
    custom: dict[str, Any] = Field(description="What the pack's clients say about it.")


class PackWhole(PackShown):
    """A pack with its metadata layer. `decay` is how its memories fade, by its own or by its type's way."""

    decay: Decaying
    metadata: PackContents

    @classmethod
    def told(cls, pack: Pack, contents: PackMetadata) -> Self:
        """Both layers of the pack."""
        return cls(
            **PackShown.of(pack).model_dump(),
            decay=Decaying.of(pack.current_decay),
            metadata=PackContents(**asdict(contents), custom=pack.metadata),
        )


class NewPack(StrictBody):
    """A pack to make. One of type `session` or `user` belongs to an owner; others without an `owner` are shared."""

    model_config = ConfigDict(json_schema_extra=_OWNED_OR_NOT)

    name: PackName = Field(examples=["chip_domain"])
    type: AType = Field(examples=["domain"])
    description: Description = ""
    tags: Tags = Field(default_factory=list)
    owner: Name | None = None
    metadata: JsonObject = Field(default_factory=dict)
    decay: Decaying | None = None

    def given(self) -> dict[str, Any]:
        """As the packs take it, without its owner."""
        return _given(self)


class PackChanges(StrictBody):
    """What to change; at least one of them. A `decay` of null is that of the type."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    name: PackName | None = None
    type: AType | None = None
    description: Description | None = None
    tags: Tags | None = None
    status: Literal["active", "archived"] | None = None
    metadata: JsonObject | None = None
    decay: Decaying | None = None

    def given(self) -> dict[str, Any]:
        """As the packs take it."""
        changes = _given(self)
        return {("new_name" if name == "name" else name): value for name, value in changes.items()}


class Discover(StrictBody):
    """What packs are looked for. `tags` must all be there."""

    query: Text = Field(examples=["What does wafer yield depend on?"])
    type: AType | None = None
    tags: Tags = Field(default_factory=list)
    limit: Limit = 5
    min_score: Unit | Literal["auto"] = 0.0
    owner: Name | None = None


class PackFound(PackShown):
    """A pack that was found, and how well it matches, from 0 to 1."""

    score: float

    @classmethod
    def matched(cls, match: PackMatch) -> Self:
        """The match on the wire."""
        return cls(**PackShown.of(match.pack).model_dump(), score=match.score)


class Step(BaseModel):
    """What a memory will lose next if nobody reads it before; `at` in the past is what the next sweep does."""

    id: str
    pack_id: str
    name: str | None
    degradation_tier: Tier
    next_tier: Tier
    at: datetime

    @classmethod
    def of(cls, step: FadingStep) -> Self:
        """The step on the wire."""
        return cls(
            id=step.id,
            pack_id=step.pack_id,
            name=step.name,
            degradation_tier=step.tier,
            next_tier=step.next_tier,
            at=step.at,
        )


def _given(body: NewPack | PackChanges) -> dict[str, Any]:
    given = body.model_dump(exclude_unset=True, exclude={"owner", "decay"})
    if "decay" in body.model_fields_set:
        given["decay"] = None if body.decay is None else body.decay.given()
    return given
