"""What completes a conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from lamina.domain.usage import Usage

__all__ = ["ChatMessage", "ChatRole", "Completion", "LanguageModel", "Usage"]


class ChatRole(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to or from a language model."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer. `data` is the validated object if a schema was asked for, else None."""

    text: str
    usage: Usage = field(default_factory=Usage)
    data: Mapping[str, Any] | None = None


class LanguageModel(Protocol):
    """Completes a conversation.

    Raises:
        ProviderUnavailable: down, timed out or rate limited, after the model's own retries.
        ProviderError: the provider refused, or gave no object of the schema after its retries.
    """

    @property
    @abstractmethod
    def provider(self) -> str:
        """Who answers, such as `openai`."""
        ...

    @property
    @abstractmethod
    def model(self) -> str:
        """Which model answers."""
        ...

    @abstractmethod
    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The answer; with a JSON schema of an object, an answer whose `data` is such an object."""
        ...

    @abstractmethod
    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The answer's text, piece by piece as it arrives."""
        ...

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections. Idempotent."""
        ...
