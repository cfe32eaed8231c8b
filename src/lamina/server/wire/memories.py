"""Memories on the wire."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field
from pydantic_core import to_json

from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.recall import Degraded, RecallResult, Results, ScoreBreakdown, SearchMode, Source
from lamina.memory.quarantining import QuarantineReceipt
from lamina.server.wire.strict import (
    BY_VALUE,
    Flag,
    Integer,
    JsonObject,
    Limit,
    Moment,
    Name,
    Rerank,
    StrictBody,
    Tag,
    Text,
    Unit,
)

__all__ = [
    "AllQuarantined",
    "Counted",
    "Forget",
    "Memory",
    "MemoryChanges",
    "NewMemories",
    "NewMemory",
    "OfSource",
    "Quarantined",
    "Recall",
    "Recalled",
    "Released",
    "Selection",
    "SourceToForget",
    "Stored",
    "StoredMany",
    "Superseding",
    "ToRelease",
    "recalled_json",
]

ALayer = Annotated[Layer, BY_VALUE]
ATrust = Annotated[Trust, BY_VALUE]
Tags = Annotated[list[Tag], Field(max_length=100)]
Sources = Annotated[list[Name], Field(max_length=1000)]
Lifetime = Annotated[float, Field(gt=0, le=10_000_000_000, allow_inf_nan=False)]
"""In seconds."""


class Memory(BaseModel):
    """A memory. Times are in UTC; `revision` grows with each edit."""

    id: str
    content: str
    layer: Layer
    owner: str
    namespace: str
    tags: list[str]
    metadata: dict[str, Any]
    relevance: float
    confidence: float
    ttl: float | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime | None
    access_count: int
    revision: int
    occurred_at: datetime | None
    valid_until: datetime | None
    superseded_by: str | None
    source: str | None
    trust: Trust
    derived_from: list[str]

    @classmethod
    def of(cls, entry: MemoryEntry) -> Self:
        """The memory without what is only ours: tenant, vector, order."""
        return cls(**_picked(entry, _MEMORY))


class NewMemory(StrictBody):
    """A text to remember. What is left out takes the server's defaults; a `ttl` of null means never.

    `supersedes` are the ids of memories in whose place it holds: they are kept, and no longer recalled.
    """

    content: Text = Field(examples=["Ann prefers tea to coffee."])
    layer: ALayer | None = None
    owner: Name | None = None
    namespace: Name | None = None
    tags: Tags = Field(default_factory=list)
    metadata: JsonObject = Field(default_factory=dict)
    relevance: Unit | None = None
    confidence: Unit | None = None
    ttl: Lifetime | None = None
    id: Name | None = None
    occurred_at: Moment | None = None
    valid_until: Moment | None = None
    source: Name | None = None
    trust: ATrust | None = None
    derived_from: Sources = Field(default_factory=list)
    supersedes: Sources = Field(default_factory=list)
    supersede_reason: Text | None = Field(default=None, examples=["She told us so in May."])

    def given(self, owner: str | None) -> dict[str, Any]:
        """What was sent, and whose it is."""
        return {**self.model_dump(exclude_unset=True), "owner": owner}


class NewMemories(StrictBody):
    """Texts to remember together: all or none."""

    memories: Annotated[list[NewMemory], Field(min_length=1, max_length=1000)]


class MemoryChanges(StrictBody):
    """The fields to change; at least one. A `ttl` counts from now, and null means never."""

    content: Text | None = None
    layer: ALayer | None = None
    tags: Tags | None = None
    metadata: JsonObject | None = None
    relevance: Unit | None = None
    confidence: Unit | None = None
    ttl: Lifetime | None = None
    occurred_at: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: Name | None = None
    source: Name | None = None
    trust: ATrust | None = None
    derived_from: Sources | None = None


class Superseding(StrictBody):
    """By which memory, and why."""

    by: Name
    reason: Text | None = None


class Selection(StrictBody):
    """Which memories: all conditions must hold. `tags` must all be there, `tags_any` at least one.

    `where` is a condition on metadata, such as `{"topic": "tea"}` or `{"rating": {"gte": 4}}`.
    """

    layers: Annotated[list[ALayer], Field(min_length=1, max_length=5)] | None = None
    owner: Name | None = None
    namespace: Name | None = None
    tags: Tags = Field(default_factory=list)
    tags_any: Tags = Field(default_factory=list)
    where: JsonObject | None = None

    def conditions(self, owner: str | None) -> dict[str, Any]:
        """As the engine takes them."""
        return {**_picked(self, _SELECTION), "owner": owner}


class Recall(Selection):
    """A question to the memories. `explain` tells why each result has its score, and what was dropped.

    What is superseded or no longer valid is left out, unless `include_superseded` is true. `rerank` overrides the
    server's settings: `cross-encoder` has the best candidates read again, together with the question; `none` has not.
    """

    query: Text = Field(examples=["What does Ann like to drink?"])
    limit: Limit = 10
    offset: Annotated[int, Field(ge=0, le=10_000)] = 0
    mode: Annotated[SearchMode, BY_VALUE] | None = None
    min_score: Unit | None = None
    rerank: Rerank | None = None
    min_match: Unit | Literal["auto"] | None = None
    min_relevance: Unit | None = None
    min_confidence: Unit | None = None
    include_superseded: Flag = False
    touch: Flag = True
    explain: Flag = False

    def arguments(self, owner: str | None) -> dict[str, Any]:
        """As `MemoryEngine.recall` takes them."""
        return {**self.conditions(owner), **_picked(self, _RECALL)}


class Forget(Selection):
    """What to forget: at least one condition. `older_than`: those that were made before this instant."""

    older_than: Moment | None = None
    dry_run: Flag = False

    def has_condition(self) -> bool:
        """Whether it says which: a token's own owner does not."""
        return any(getattr(self, name) for name in (*_SELECTION, "older_than"))


class OfSource(StrictBody):
    """Everything from a source: the whole of its name, or how the names of several begin, up to a `:`, `/` or `#`."""

    source: Name | None = None
    prefix: Name | None = None
    owner: Name | None = None


class SourceToForget(OfSource):
    """The source, or how the names of several begin; `dry_run` only counts."""

    dry_run: Flag = False


class ToRelease(StrictBody):
    """The quarantine to undo."""

    id: Name
    owner: Name | None = None


class Quarantined(BaseModel):
    """What one quarantine took out: ids of memories from the source, of those made from it, and of documents."""

    id: str
    at: datetime
    source: str
    from_source: list[str]
    derived: list[str]
    documents: list[str]

    @classmethod
    def of(cls, receipt: QuarantineReceipt) -> Self:
        """The receipt on the wire."""
        return cls(**{name: getattr(receipt, name) for name in cls.model_fields})


class AllQuarantined(BaseModel):
    """What is in quarantine, the first first."""

    data: list[Quarantined]


class Released(BaseModel):
    """The memories and documents that are found again."""

    ids: list[str]


class Hit(BaseModel):
    """A memory that was recalled, and why it has its score."""

    memory: Memory
    score: float
    score_breakdown: dict[str, float | None]
    source: Source
    explanation: dict[str, Any] | None = None


class Weakness(BaseModel):
    """A leg of the search that did not answer, or only in part, and why."""

    leg: str
    reason: str
    detail: str

    @classmethod
    def of(cls, degraded: Degraded) -> Self:
        """The weakness on the wire."""
        return cls(leg=degraded.leg, reason=degraded.reason, detail=degraded.detail)


class Recalled(BaseModel):
    """The best memories, best first. `degraded` is empty where every leg of the search answered."""

    data: list[Hit]
    degraded: list[Weakness]
    explanation: dict[str, Any] | None = None


class Stored(BaseModel):
    """The id of the memory; null where a hook of the server refused it."""

    id: str | None


class StoredMany(BaseModel):
    """The ids, in the order of the texts; null where a hook of the server refused one."""

    ids: list[str | None]


class Counted(BaseModel):
    """How many memories were forgotten, or with `dry_run` would be."""

    count: Integer
    dry_run: bool


_SELECTION: Final = tuple(Selection.model_fields)
_RECALL: Final = tuple(name for name in Recall.model_fields if name not in Selection.model_fields)
_MEMORY: Final = tuple(Memory.model_fields)
_BREAKDOWN: Final = tuple(each.name for each in fields(ScoreBreakdown))
_WEAKNESS: Final = tuple(Weakness.model_fields)


def recalled_json(results: Results[RecallResult]) -> bytes:
    """The results as `Recalled` describes them, written at once.

    They are our own, so there is nothing to check about them; by way of the models it would take twice as long.
    """
    explanation = results.explanation
    answer = {
        "data": [_hit(each) for each in results],
        "degraded": [_picked(each, _WEAKNESS) for each in results.degraded],
        "explanation": None if explanation is None else asdict(explanation),
    }
    return to_json(answer, inf_nan_mode="null")


def _hit(result: RecallResult) -> dict[str, Any]:
    return {
        "memory": _picked(result.entry, _MEMORY),
        "score": result.score,
        "score_breakdown": _picked(result.score_breakdown, _BREAKDOWN),
        "source": result.source,
        "explanation": None if result.explanation is None else asdict(result.explanation),
    }


def _picked(thing: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
