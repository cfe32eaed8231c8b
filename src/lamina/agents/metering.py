"""The language model as an agent gets it: one that counts, or one that says that there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn

from lamina.domain.usage import Usage
from lamina.errors import NoModelConfiguredError
from lamina.ports.language_model import ChatMessage, Completion, LanguageModel

__all__ = ["AbsentModel", "MeteredModel"]


class MeteredModel(LanguageModel):
    """Another model, and the sum of what its completions cost. What was streamed is not counted by providers."""

    def __init__(self, inner: LanguageModel) -> None:
        self.inner = inner
        self.usage = Usage()

    @property
    def provider(self) -> str:
        """Who answers."""
        return self.inner.provider

    @property
    def model(self) -> str:
        """Which model answers."""
        return self.inner.model

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The model's answer, counted."""
        completion = await self.inner.complete(messages, schema=schema, max_tokens=max_tokens)
        self.usage += completion.usage
        return completion

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The model's answer, piece by piece."""
        return self.inner.stream(messages, max_tokens=max_tokens)

    async def close(self) -> None:
        """Nothing: the model belongs to whoever made it."""


class AbsentModel(LanguageModel):
    """Stands where no model is configured, and says so as soon as one is needed."""

    @property
    def provider(self) -> str:
        """`none`."""
        return "none"

    @property
    def model(self) -> str:
        """`none`."""
        return "none"

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """Refuse.

        Raises:
            NoModelConfiguredError: always.
        """
        del messages, schema, max_tokens
        _refuse()

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """Refuse, as `complete` does."""
        del messages, max_tokens
        _refuse()
        yield ""

    async def close(self) -> None:
        """Nothing to let go of."""


def _refuse() -> NoReturn:
    raise NoModelConfiguredError("Answering an intent")
