"""What a memory is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, Final, TypeAlias

from lamina.domain.text import content_digest

__all__ = [
    "DEFAULT_LAYER_TTL",
    "DEFAULT_NAME",
    "QUARANTINE",
    "SHARED_LAYERS",
    "UNSET",
    "Layer",
    "MemoryEntry",
    "Trust",
    "Unset",
    "Vector",
]


class Unset(Enum):
    """The type of `UNSET`, which means "not given" where None has a meaning of its own."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET

Vector: TypeAlias = Sequence[float]
"""An embedding. Adapters and providers hand out `array.array("f")`, which is compact and a buffer."""

DEFAULT_NAME: Final = "default"
"""The tenant, owner and namespace of a memory about which nothing was said."""


class Layer(StrEnum):
    """Where a memory lives, highest priority first."""

    WORKING = "working"
    SESSION = "session"
    LONGTERM = "longterm"
    ORGANIZATIONAL = "organizational"
    GLOBAL = "global"


SHARED_LAYERS: Final = frozenset({Layer.ORGANIZATIONAL, Layer.GLOBAL})
"""Layers that a tenant's owners share."""

DEFAULT_LAYER_TTL: Final[dict[Layer, timedelta | None]] = {
    Layer.WORKING: timedelta(seconds=300),
    Layer.SESSION: timedelta(seconds=3600),
    Layer.LONGTERM: None,
    Layer.ORGANIZATIONAL: None,
    Layer.GLOBAL: None,
}


class Trust(StrEnum):
    """Whether a memory's text comes from somebody who may speak for its owner."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    """Seen in a tool result, a web page, a document or a foreign message."""


QUARANTINE: Final = "quarantine:"
"""What `superseded_by` begins with as long as a memory is in quarantine; behind it comes the number of the act."""

REPR_CHARS: Final = 60
NEVER_CURRENT: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, repr=False)
class MemoryEntry:
    """One memory, treated as a value: change a copy, made with `replace`.

    Times are timezone-aware and in UTC. `relevance`, `base_relevance` and `confidence` are in
    [0, 1]. `ttl` is in seconds and counts from the last store or re-confirmation; `expires_at` is
    the instant it gives. `seq` is the insertion order, set by the adapter; `revision` starts at 1
    and grows with every update (reading and counting reads does not change it).
    """

    id: str
    content: str
    created_at: datetime
    updated_at: datetime
    layer: Layer = Layer.LONGTERM
    tenant: str = DEFAULT_NAME
    owner: str = DEFAULT_NAME
    namespace: str = DEFAULT_NAME
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    relevance: float = 1.0
    base_relevance: float = 1.0
    """The relevance at the last store or confirmation: what decay started from."""
    confidence: float = 1.0
    ttl: float | None = None
    expires_at: datetime | None = None
    embedding: Vector | None = None
    last_accessed_at: datetime | None = None
    access_count: int = 0
    seq: int = 0
    revision: int = 1
    occurred_at: datetime | None = None
    """When what the memory tells of happened, if that is known and differs from `created_at`."""
    valid_until: datetime | None = None
    """From when on what the memory says holds no more."""
    superseded_by: str | None = None
    """Id of the memory that says what holds in place of this one."""
    source: str | None = None
    """Where the memory comes from, in the caller's words, such as `conversation:ticket-7`."""
    trust: Trust = Trust.TRUSTED
    derived_from: list[str] = field(default_factory=list)
    """Ids of the memories or messages that this one was made from."""

    def __repr__(self) -> str:
        """What tells it from others at a glance: a result list is printed more often than studied."""
        content = self.content if len(self.content) <= REPR_CHARS else f"{self.content[: REPR_CHARS - 1]}…"
        return f"MemoryEntry(id={self.id!r}, owner={self.owner!r}, layer={self.layer.value!r}, content={content!r})"

    @property
    def digest(self) -> str:
        """What two entries have in common when they say the same: see `content_digest`."""
        return content_digest(self.content)

    @property
    def last_changed_at(self) -> datetime:
        """When it was created, changed or confirmed last."""
        return max(self.created_at, self.updated_at)

    def is_expired(self, now: datetime) -> bool:
        """Whether the memory is absent at this instant; it is from `expires_at` on."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def current_until(self) -> datetime | None:
        """From when on it does not count: `valid_until`, or always for what is superseded; None for never."""
        return self.valid_until if self.superseded_by is None else NEVER_CURRENT

    def is_current(self, now: datetime) -> bool:
        """Whether the memory counts at this instant: it is neither superseded nor outlived."""
        return self.current_until is None or self.current_until > now

    @property
    def is_quarantined(self) -> bool:
        """Whether it was taken out of recall with its source: see `MemoryEngine.quarantine`."""
        return self.superseded_by is not None and self.superseded_by.startswith(QUARANTINE)

    def replace(self, **changes: Any) -> MemoryEntry:
        """A copy with these fields changed; lists and metadata are shared unless changed."""
        return dataclasses.replace(self, **changes)
