"""What is computed for an intent: everything that reaches the agent, and an account of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from lamina.domain import context_rendering
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.document import RagChunk
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.message import Message
from lamina.domain.thread import ThreadContext

__all__ = [
    "ENTRY_ID",
    "ComputedContext",
    "ContextWarning",
    "DropReason",
    "DroppedItem",
    "EngineContribution",
    "ItemKind",
    "PackHit",
    "UserContext",
    "UserProfile",
]


ENTRY_ID: Final = "entry_id"
"""In the metadata of a pack memory: the memory that it was made from."""


class ItemKind(StrEnum):
    """What an item of a context is."""

    PREFERENCE = "preference"
    MEMORY = "memory"
    PACK = "pack"
    CHUNK = "chunk"
    MESSAGE = "message"


class DropReason(StrEnum):
    """Why an item that was found is not in the context."""

    BUDGET = "budget"
    """It came last among what did not fit."""
    TOO_LARGE = "too_large"
    """It alone is larger than what the fixed parts leave of the budget."""
    DUPLICATE = "duplicate"
    """Another item says the same, or nearly; `of` names it."""
    OVERRIDDEN = "overridden"
    """A memory of a higher layer has the same `metadata["key"]`; `of` names it."""
    SUPERSEDED = "superseded"
    """The memory says that another one took its place; `of` names it."""
    OUTDATED = "outdated"
    """Its `valid_until` has passed."""


@dataclass(slots=True)
class UserProfile:
    """What a host knows of a user: `policies` are rules that hold for them, in words."""

    role: str = "user"
    permissions: list[str] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)


@dataclass(slots=True)
class UserContext:
    """For whom the context is; `preferences["notes"]` lists those that have no key."""

    user_id: str
    role: str = "user"
    preferences: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class PackHit:
    """A memory of a context pack that matches the goal; `score` is in [0, 1], higher is better."""

    id: str
    pack: str
    content: str
    score: float
    source: str | None = None
    trust: Trust = Trust.TRUSTED
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DroppedItem:
    """Something that was found and is not in the context.

    `tokens` is what it would have cost with its label. `source` is where it comes from in words (a document's
    name, a memory's source), `of` the id of what stands in its place.
    """

    kind: ItemKind
    id: str
    tokens: int
    reason: DropReason
    source: str | None = None
    layer: Layer | None = None
    score: float | None = None
    of: str | None = None


@dataclass(frozen=True, slots=True)
class ContextWarning:
    """Something that a host should know: the step, what kind of trouble, and what is known of it.

    `code` is `failed`, `degraded`, `told` (by the conversation), `over_budget`, `quarantined` or `trimmed`.
    `error` is the name of the exception's class, where there was one. No content is ever in it.
    """

    step: str
    code: str
    error: str | None = None
    detail: str = ""

    def __str__(self) -> str:
        told = ": ".join(each for each in (self.error, self.detail) if each)
        return f"{self.step} {self.code}" + (f" ({told})" if told else "")


@dataclass(slots=True)
class EngineContribution:
    """What a plug-in engine put in the place of memories, documents and, if `replaces_conversation`, the thread."""

    engine_id: str
    retrieved: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    replaces_conversation: bool = False
    system_addition: str = ""


@dataclass(slots=True)
class ComputedContext:
    """Everything that reaches an agent for one intent. Treat it as a value.

    `memories` holds what was kept, highest layer first and in a layer best first; `knowledge` are the organizational
    and global ones among them, the same objects. `estimated_tokens` is the size of everything that is sent after
    trimming, by the counter named `counter`: the rendered context in its largest form (or in `form`, if
    one was asked for), the tools and what was reserved; `tokens_by_source` says what it is spent on and sums
    up to it. It is at most `token_budget`, unless `over_budget`.

    `instructions` are the host's, `notice` is Lamina's line on how to read the data. If `engine` is not None, a plug-in
    engine served this intent.
    """

    intent_id: str
    goal: str
    user: UserContext
    computed_at: datetime
    token_budget: int
    thread_id: str | None = None
    memories: list[MemoryEntry] = field(default_factory=list)
    knowledge: list[MemoryEntry] = field(default_factory=list)
    permissions: list[str] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)
    documents: list[RagChunk] = field(default_factory=list)
    packs: list[PackHit] = field(default_factory=list)
    conversation: ThreadContext | None = None
    instructions: str = ""
    notice: str = ""
    engine: EngineContribution | None = None
    estimated_tokens: int = 0
    tokens_by_source: dict[TokenSource, int] = field(default_factory=dict)
    counter: str = ""
    form: Form | None = None
    over_budget: bool = False
    dropped: list[DroppedItem] = field(default_factory=list)
    warnings: list[ContextWarning] = field(default_factory=list)

    def replace(self, **changes: Any) -> ComputedContext:
        """A copy with these fields changed; lists are shared unless changed."""
        return dataclasses.replace(self, **changes)

    def to_prompt(self) -> str:
        """As one text: see `lamina.domain.context_rendering`."""
        return context_rendering.to_prompt(self)

    def to_openai(self) -> list[dict[str, Any]]:
        """As messages of OpenAI's chat completions: see `lamina.domain.context_rendering`."""
        return context_rendering.to_openai(self)

    def to_anthropic(self) -> tuple[Any, list[dict[str, Any]]]:
        """As the system prompt and messages of Anthropic's API: see `lamina.domain.context_rendering`."""
        return context_rendering.to_anthropic(self)

    def explain(self) -> str:
        """A readable account: what was kept, what was dropped and why, what went wrong. Ids and counts, no content."""
        share = f"{self.estimated_tokens} of {self.token_budget} tokens ({self.counter})"
        lines = [f"Context of {self.intent_id}: {share}{', over budget' if self.over_budget else ''}", "Kept:"]
        lines += [f"  {source.value}: {tokens} tokens" for source, tokens in self.tokens_by_source.items() if tokens]
        lines += [f"  memory {each.id} ({each.layer.value})" for each in self.memories]
        lines += [f"  pack memory {each.id} ({each.pack})" for each in self.packs]
        lines += [f"  chunk {each.id} ({each.source!r})" for each in self.documents]
        if self.conversation is not None:
            lines.append(f"  {len(self.conversation.messages)} live messages of the thread")
        if self.engine is not None:
            lines.append(f"  engine {self.engine.engine_id}: {len(self.engine.retrieved)} retrieved")
        lines += ["Dropped:", *(_dropped_line(each) for each in self.dropped)] if self.dropped else ["Dropped: nothing"]
        lines += ["Warnings:", *(f"  {each}" for each in self.warnings)] if self.warnings else []
        return "\n".join(lines)


def _dropped_line(item: DroppedItem) -> str:
    layer = f" ({item.layer.value})" if item.layer is not None else ""
    source = f" from {item.source!r}" if item.source else ""
    score = f", score {item.score:.2f}" if item.score is not None else ""
    of = f" of {item.of}" if item.of else ""
    return f"  {item.kind.value} {item.id}{layer}{source}: {item.reason.value}{of}, {item.tokens} tokens{score}"
