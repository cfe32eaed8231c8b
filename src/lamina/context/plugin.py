"""What a plug-in context engine is, what it is given, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from lamina.conversation.extractive import extract
from lamina.domain.message import Message
from lamina.domain.message_size import messages_tokens
from lamina.providers.tokens import EstimateCounter

__all__ = [
    "AfterTurnParams",
    "AssembleParams",
    "AssembleResult",
    "BaseContextEngine",
    "BootstrapParams",
    "BootstrapResult",
    "CompactParams",
    "CompactResult",
    "ContextEnginePlugin",
    "EngineInfo",
    "IngestParams",
    "IngestResult",
    "MaintainParams",
    "MaintainResult",
]

SUMMARY_TOKENS = 500


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine it is; `owns_compaction` says that it compacts by itself, so that nobody need ask it to."""

    id: str
    name: str
    version: str = "0.0.0"
    owns_compaction: bool = False


@dataclass(slots=True)
class BootstrapParams:
    """Before the first assembly of a session."""

    session_id: str


@dataclass(slots=True)
class BootstrapResult:
    """Whether the engine is ready for the session; if not, `reason` says why, and it is put aside."""

    success: bool
    imported_messages: int = 0
    reason: str | None = None


@dataclass(slots=True)
class IngestParams:
    """A message that was added to the session."""

    session_id: str
    message: Message


@dataclass(slots=True)
class IngestResult:
    """Whether the engine took the message: not if it had it, or has no use for it."""

    ingested: bool


@dataclass(slots=True)
class AssembleParams:
    """The live messages, the goal last, and how many tokens the result may have; `prompt` is the goal."""

    session_id: str
    messages: list[Message]
    token_budget: int
    prompt: str | None = None
    model: str | None = None


@dataclass(slots=True)
class AssembleResult:
    """What the agent is to see.

    System messages that were not among those given are shown as retrieved data; to instruct the model use
    `system_prompt_addition`. `estimated_tokens` is not relied on.
    """

    messages: list[Message]
    estimated_tokens: int = 0
    system_prompt_addition: str | None = None


@dataclass(slots=True)
class CompactParams:
    """Messages to be summarised; with `force` even if there is no need."""

    session_id: str
    messages: list[Message]
    token_budget: int | None = None
    force: bool = False


@dataclass(slots=True)
class CompactResult:
    """Whether there is a summary now, and what it saves."""

    compacted: bool
    summary: str | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str | None = None


@dataclass(slots=True)
class MaintainParams:
    """Now and then; without a session, for all of them."""

    now: datetime
    session_id: str | None = None


@dataclass(slots=True)
class MaintainResult:
    """Whether anything was done."""

    changed: bool = False
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class AfterTurnParams:
    """After a turn that succeeded: all messages, and how many of them there were before it."""

    session_id: str
    messages: list[Message]
    pre_prompt_message_count: int
    token_budget: int | None = None


@runtime_checkable
class ContextEnginePlugin(Protocol):
    """An engine that may serve in place of the built-in one.

    It may have `bootstrap`, `ingest`, `maintain`, `after_turn` and `dispose` as well: see `BaseContextEngine`, which
    has them. All methods may be plain or async; a mapping with a result's fields is as good as the result.
    What it is given are copies. A call that takes too long is cancelled, which only an async one can be.
    """

    @property
    def info(self) -> EngineInfo:
        """Which engine it is; a plain attribute will do."""
        ...

    def assemble(self, params: AssembleParams) -> Any:
        """The messages for the agent."""
        ...

    def compact(self, params: CompactParams) -> Any:
        """A summary of the messages."""
        ...


class BaseContextEngine(ABC):
    """A start for engines: give it an `info`, an `assemble` and a `compact`; the other calls do nothing."""

    info: EngineInfo

    @abstractmethod
    async def assemble(self, params: AssembleParams) -> AssembleResult:
        """The messages for the agent."""

    @abstractmethod
    async def compact(self, params: CompactParams) -> CompactResult:
        """A summary of the messages."""

    async def bootstrap(self, params: BootstrapParams) -> BootstrapResult:  # noqa: ARG002 - for those that override it
        """Once for each session, before anything else of it."""
        return BootstrapResult(success=True)

    async def ingest(self, params: IngestParams) -> IngestResult:  # noqa: ARG002 - for those that override it
        """Once for each message of the session."""
        return IngestResult(ingested=False)

    async def maintain(self, params: MaintainParams) -> MaintainResult:  # noqa: ARG002 - for those that override it
        """Now and then."""
        return MaintainResult()

    async def after_turn(self, params: AfterTurnParams) -> None:  # noqa: B027 - optional to override
        """After a turn that succeeded."""

    async def dispose(self) -> None:  # noqa: B027 - optional to override
        """At the end."""

    def count(self, messages: Sequence[Message]) -> int:
        """What the messages cost, by estimate."""
        return messages_tokens(messages, EstimateCounter().count)

    def count_text(self, text: str) -> int:
        """What the text costs, by estimate."""
        return EstimateCounter().count(text)

    async def summarize(self, messages: Sequence[Message], *, max_tokens: int = SUMMARY_TOKENS) -> str:
        """The sentences and facts that carry most, picked without a model; override it to have one write."""
        return extract([message.text for message in messages], max_tokens=max_tokens, count=self.count_text)
