"""Intents on the wire."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Self

from pydantic import BaseModel, Field

from lamina.domain.intent import IntentError, IntentResult, IntentStatus
from lamina.domain.message_json import message_to_json
from lamina.server.wire.context import ComputedContext
from lamina.server.wire.messages import MessageForm
from lamina.server.wire.strict import Flag, JsonObject, Name, StrictBody, Text

__all__ = ["Failure", "NewIntent", "Result"]

_THE_CLIENTS: Final = frozenset(
    {"Conflict", "ContextOverflowError", "InvalidInput", "InvalidType", "ThreadArchivedError", "TimeoutError"}
)
"""Failures whose words are for the client; those of others may tell of the server's inside."""


class NewIntent(StrictBody):
    """Something that somebody wants. `thread_id` is the conversation it belongs to: one that there is not is made.

    `agent` names the one to serve it, else the server selects one. With a `namespace` only its memories are looked
    up. With `context` the computed context comes along.
    """

    goal: Text = Field(examples=["Suggest a drink for Ann."])
    owner: Name | None = None
    thread_id: Name | None = None
    agent: Name | None = None
    namespace: Name | None = None
    metadata: JsonObject = Field(default_factory=dict)
    context: Flag = False

    def arguments(self, owner: str | None) -> dict[str, Any]:
        """As `Kernel.submit` takes them."""
        own = ("goal", "thread_id", "agent", "namespace", "metadata")
        return {**{name: getattr(self, name) for name in own}, "owner": owner}

    @property
    def thread(self) -> str:
        """The thread that it names, in one way or the other."""
        return str(self.thread_id or self.metadata.get("thread_id") or self.metadata.get("threadId") or "")


class Failure(BaseModel):
    """Why an intent failed: the kind of error, and its words as far as they are the client's."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: IntentError) -> Self:
        """The failure on the wire."""
        is_theirs = error.kind in _THE_CLIENTS
        return cls(kind=error.kind, message=error.message if is_theirs else "It failed inside the server.")


class Spent(BaseModel):
    """Tokens that the model's provider counted."""

    input_tokens: int
    output_tokens: int


class Result(BaseModel):
    """What came of an intent. If it failed, `error` says why, and nothing was added to the thread.

    `messages` are those that it added to the thread, or would have added without one; `timings` are in seconds;
    `saved` are the ids of memories that it left.
    """

    intent_id: str
    status: IntentStatus
    answer: str | None
    agent: str | None
    thread_id: str | None
    error: Failure | None
    usage: Spent
    timings: dict[str, float]
    messages: list[MessageForm]
    saved: list[str]
    warnings: list[str]
    context: ComputedContext | None = None

    @classmethod
    def of(cls, result: IntentResult, *, context: bool) -> Self:
        """The result on the wire."""
        plain = ("intent_id", "status", "answer", "agent", "thread_id", "saved", "warnings")
        return cls(
            **{name: getattr(result, name) for name in plain},
            error=None if result.error is None else Failure.of(result.error),
            usage=Spent(**asdict(result.usage)),
            timings=asdict(result.timings),
            messages=[message_to_json(each) for each in result.messages],
            context=ComputedContext.of(result.context) if context and result.context is not None else None,
        )
