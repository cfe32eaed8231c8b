"""A language model for tests: it says back what it was told, or what it was given to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from lamina.errors import ProviderError
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, LanguageModel, Usage

__all__ = ["EchoModel"]


class EchoModel(LanguageModel):
    """Answers with the replies it was given, in turn, and after the last one with the user's last message.

    A reply that is an exception is raised; a mapping is the `data` of a completion with a schema.
    `calls` keeps the messages of every call. A token of its usage is a word. With a schema and
    no reply left it raises `ProviderError`, for an echo is no object.
    """

    def __init__(self, replies: Iterable[str | Mapping[str, Any] | Exception] = ()) -> None:
        self._replies = list(replies)
        self.calls: list[tuple[ChatMessage, ...]] = []

    @property
    def provider(self) -> str:
        """`testing`."""
        return "testing"

    @property
    def model(self) -> str:
        """`echo`."""
        return "echo"

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The next reply, or the echo; cut to `max_tokens` words where it is text."""
        reply = self._next(messages)
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        if schema is not None and isinstance(reply, str):
            raise ProviderError("EchoModel", "has text to say, not an object of the schema", "Give it a mapping.")
        text = _cut(text, max_tokens) if isinstance(reply, str) else text
        heard = sum(len(message.content.split()) for message in messages)
        return Completion(text, Usage(heard, len(text.split())), None if schema is None else dict(json.loads(text)))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The text of `complete`, word by word, each with the white space that follows it."""
        completion = await self.complete(messages, max_tokens=max_tokens)
        words = completion.text.split(" ")
        for word in words[:-1]:
            yield f"{word} "
        yield words[-1]

    async def close(self) -> None:
        """Nothing to let go of."""

    def _next(self, messages: Sequence[ChatMessage]) -> str | Mapping[str, Any]:
        self.calls.append(tuple(messages))
        if self._replies:
            reply = self._replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply
        return next((each.content for each in reversed(messages) if each.role is ChatRole.USER), "")


def _cut(text: str, max_tokens: int | None) -> str:
    words = text.split(" ")
    return text if max_tokens is None or len(words) <= max_tokens else " ".join(words[:max_tokens])
