"""Memories of packs on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lamina.domain.pack import MemoryType, PackHit, PackMemory, PackSource
from lamina.domain.pack_decay import Tier
from lamina.domain.recall import SearchMode
from lamina.server.wire.strict import BY_VALUE, Flag, JsonObject, Limit, Moment, Name, StrictBody, Tag, Text, Unit

__all__ = ["MemoryChanges", "NewPackMemories", "NewPackMemory", "PackMemoryShown", "Retrieve", "Supersede"]

AMemoryType = Annotated[MemoryType, BY_VALUE]
Provenance = Annotated[str, StringConstraints(max_length=16_000, pattern="^[^\x00]*$")]
Tags = Annotated[list[Tag], Field(max_length=100)]


class Relation(StrictBody):
    """That a memory relates to another one: `supersedes`, `related_to`, or whatever else."""

    type: Name = Field(examples=["related_to"])
    target_id: Name


class MemoryFacts(BaseModel):
    """What is known about a memory; `custom` is what clients say about it."""

    source: PackSource
    confidence: float
    created_at: datetime
    last_accessed: datetime | None
    access_count: int
    superseded_by: str | None
    provenance: str | None
    custom: dict[str, Any]


class PackMemoryShown(BaseModel):
    """A memory of a pack.

    `content` is the whole text, unless the memory was not to be touched: then it is what its tier has left. `embedding`
    is there where it was asked for, null if it has none; `score`, from 0 to 1, where something was searched for, and
    `found_in`, the tier that a search found it in before it was read.
    """

    id: str
    content: str
    memory_type: MemoryType
    name: str | None
    metadata: MemoryFacts
    embedding: list[float] | None = None
    relationships: list[Relation]
    degradation_tier: Tier
    tier_since: datetime | None
    tags: list[str]
    pinned: bool
    pinned_at: datetime | None
    expires_at: datetime | None
    updated_at: datetime
    revision: int
    pack_id: str
    score: float | None = None
    found_in: Tier | None = None

    @classmethod
    def of(cls, memory: PackMemory, *, has_embedding: bool = False, hit: PackHit | None = None) -> Self:
        """The memory without what is only ours. What is not asked for stays unset, and so off the wire."""
        asked: dict[str, Any] = {}
        if has_embedding:
            asked["embedding"] = None if memory.embedding is None else list(memory.embedding)
        if hit is not None:
            asked["found_in"] = hit.found_in
            if hit.score is not None:
                asked["score"] = hit.score
        facts = {name: getattr(memory, name) for name in MemoryFacts.model_fields if name != "custom"}
        return cls(
            id=memory.id,
            content=memory.content,
            memory_type=memory.memory_type,
            name=memory.name,
            metadata=MemoryFacts(**facts, custom=memory.metadata),
            relationships=[Relation(type=each.type, target_id=each.target_id) for each in memory.relationships],
            degradation_tier=memory.tier,
            tier_since=memory.tier_since,
            tags=memory.tags,
            pinned=memory.pinned_at is not None,
            pinned_at=memory.pinned_at,
            expires_at=memory.expires_at,
            updated_at=memory.updated_at,
            revision=memory.revision,
            pack_id=memory.pack_id,
            **asked,
        )


class GivenFacts(StrictBody):
    """What a client says about a memory."""

    source: Annotated[PackSource, BY_VALUE] | None = None
    confidence: Unit | None = None
    provenance: Provenance | None = None
    custom: JsonObject | None = None


class NewPackMemory(StrictBody):
    """A memory to add. Its text should be understood by itself.

    One of the pack that has its `name` is superseded by it, as is the target of a relationship `supersedes`.
    """

    content: Text = Field(examples=["Wafer yield drops when the clean room is above 22 degrees."])
    memory_type: AMemoryType = MemoryType.FACT
    name: Name | None = None
    metadata: GivenFacts = Field(default_factory=GivenFacts)
    relationships: Annotated[list[Relation], Field(max_length=1000)] = Field(default_factory=list)
    tags: Tags = Field(default_factory=list)
    expires_at: Moment | None = None

    def given(self) -> dict[str, Any]:
        """As the packs take it: what is null here is what is left out there."""
        return {name: value for name, value in _given(self).items() if value is not None}


class NewPackMemories(StrictBody):
    """Memories to add, all or none."""

    memories: Annotated[list[NewPackMemory], Field(min_length=1, max_length=1000)]


class MemoryChanges(StrictBody):
    """What to change; at least one of them, in `metadata` too, whose other parts stay.

    A new `content` is in the full tier. An `expires_at`, `name` or `provenance` of null is none.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    content: Text | None = None
    memory_type: AMemoryType | None = None
    name: Name | None = None
    metadata: GivenFacts | None = None
    relationships: Annotated[list[Relation], Field(max_length=1000)] | None = None
    tags: Tags | None = None
    expires_at: Moment | None = None

    def given(self) -> dict[str, Any]:
        """As the packs take it."""
        return _given(self)


class Supersede(StrictBody):
    """By which memory."""

    by: Name


class Retrieve(StrictBody):
    """What is searched for in which packs; without a `query` the newest access comes first."""

    pack_ids: Annotated[list[Name], Field(min_length=1, max_length=20)]
    query: Text | None = Field(default=None, examples=["When does yield drop?"])
    memory_type: AMemoryType | None = None
    name: Name | None = None
    tags: Tags = Field(default_factory=list)
    min_confidence: Unit = 0.0
    min_score: Unit | None = None
    """None: what the server's embedder counts as a match."""
    include_superseded: Flag = False
    mode: Annotated[SearchMode, BY_VALUE] | None = None
    limit: Limit = 10
    touch: Flag = True
    owner: Name | None = None

    def arguments(self) -> dict[str, Any]:
        """As the packs take them, without the packs, the limit and the owner."""
        return self.model_dump(exclude={"pack_ids", "limit", "owner"})


def _given(body: NewPackMemory | MemoryChanges) -> dict[str, Any]:
    given = body.model_dump(exclude_unset=True)
    facts = given.pop("metadata", None) or {}
    if "custom" in facts:
        facts["metadata"] = facts.pop("custom")
    return {**given, **facts}
