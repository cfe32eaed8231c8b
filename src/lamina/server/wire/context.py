"""Computed contexts on the wire."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from lamina.domain import context as domain
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.memory import Layer, Trust
from lamina.domain.message_json import message_to_json
from lamina.server.wire.documents import Chunk
from lamina.server.wire.memories import Memory
from lamina.server.wire.messages import MessageForm, Words
from lamina.server.wire.strict import BY_VALUE, Flag, JsonObject, Name, StrictBody
from lamina.server.wire.threads import ThreadContext

__all__ = ["ComputedContext", "NewContext"]

Tokens = Annotated[int, Field(ge=1, le=100_000_000)]


class NewContext(StrictBody):
    """What somebody wants, and in how many tokens the answer to what they need to know has to fit.

    `thread_id` names the conversation that the goal belongs to; `namespace` narrows memories. `system` are the
    instructions that are sent with the context, `tools` the schemas of the tools, `reserved_tokens` whatever else is
    sent: all three are charged first. `form` fits one shape exactly; without it the largest of them fits. With `touch`
    off no access is counted. `render` says in which shapes the context is to come along.
    """

    goal: Words = Field(examples=["What does Ann like to drink?"])
    owner: Name | None = None
    thread_id: Name | None = None
    namespace: Name | None = None
    token_budget: Tokens | None = None
    model: Name | None = None
    system: Words = ""
    tools: Annotated[list[JsonObject], Field(max_length=1000)] = Field(default_factory=list)
    reserved_tokens: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    form: Annotated[Form, BY_VALUE] | None = None
    touch: Flag = True
    intent_id: Name | None = None
    render: Annotated[list[Literal["prompt", "openai", "anthropic"]], Field(max_length=3)] = Field(default_factory=list)

    def arguments(self, owner: str, intent_id: str) -> dict[str, Any]:
        """As `ContextEngine.compute` takes them."""
        given = {name: getattr(self, name) for name in NewContext.model_fields if name not in {"owner", "render"}}
        return {**given, "owner_id": owner, "intent_id": intent_id}


class User(BaseModel):
    """For whom the context is."""

    user_id: str
    role: str
    preferences: dict[str, Any]


class PackHit(BaseModel):
    """A memory of a context pack."""

    id: str
    pack: str
    content: str
    score: float
    source: str | None
    trust: Trust
    metadata: dict[str, Any]


class Dropped(BaseModel):
    """Something that was found and is not in the context: why, and what it would have cost."""

    kind: domain.ItemKind
    id: str
    tokens: int
    reason: domain.DropReason
    source: str | None
    layer: Layer | None
    score: float | None
    of: str | None


class Warned(BaseModel):
    """Something that went wrong on the way, or only half."""

    step: str
    code: str
    error: str | None
    detail: str


class Contribution(BaseModel):
    """What a plug-in engine put in the place of memories, documents and perhaps the thread."""

    engine_id: str
    retrieved: list[str]
    messages: list[MessageForm]
    replaces_conversation: bool
    system_addition: str

    @classmethod
    def of(cls, engine: domain.EngineContribution) -> Self:
        """The contribution on the wire."""
        fields = {name: getattr(engine, name) for name in cls.model_fields if name != "messages"}
        return cls(**fields, messages=[message_to_json(each) for each in engine.messages])


class AnthropicMessages(BaseModel):
    """As Anthropic's API takes them."""

    system: Any
    messages: list[dict[str, Any]]


class Rendered(BaseModel):
    """The context in the shapes that were asked for."""

    prompt: str | None = None
    openai: list[dict[str, Any]] | None = None
    anthropic: AnthropicMessages | None = None

    @classmethod
    def of(cls, context: domain.ComputedContext, shapes: list[str]) -> Self:
        """The context in these shapes."""
        made = cls()
        if "prompt" in shapes:
            made.prompt = context.to_prompt()
        if "openai" in shapes:
            made.openai = context.to_openai()
        if "anthropic" in shapes:
            system, messages = context.to_anthropic()
            made.anthropic = AnthropicMessages(system=system, messages=messages)
        return made


class ComputedContext(BaseModel):
    """Everything that reaches an agent for one intent, and an account of it.

    `estimated_tokens` is the size of everything that is sent, `tokens_by_source` what it is spent on. `knowledge` are
    the ids of those among the memories that owners share.
    """

    intent_id: str
    goal: str
    user: User
    computed_at: datetime
    token_budget: int
    thread_id: str | None
    memories: list[Memory]
    knowledge: list[str]
    permissions: list[str]
    policies: list[str]
    documents: list[Chunk]
    packs: list[PackHit]
    conversation: ThreadContext | None
    instructions: str
    notice: str
    engine: Contribution | None
    estimated_tokens: int
    tokens_by_source: dict[TokenSource, int]
    counter: str
    form: Form | None
    over_budget: bool
    dropped: list[Dropped]
    warnings: list[Warned]
    rendered: Rendered | None = None

    @classmethod
    def of(cls, context: domain.ComputedContext, *, render: list[str] | None = None) -> Self:
        """The context on the wire."""
        plain = "intent_id goal computed_at token_budget thread_id permissions policies instructions notice".split()
        plain += "estimated_tokens tokens_by_source counter form over_budget".split()
        return cls(
            **{name: getattr(context, name) for name in plain},
            user=User(**asdict(context.user)),
            memories=[Memory.of(each) for each in context.memories],
            knowledge=[each.id for each in context.knowledge],
            documents=[Chunk.of(each) for each in context.documents],
            packs=[PackHit(**asdict(each)) for each in context.packs],
            conversation=None if context.conversation is None else ThreadContext.of(context.conversation),
            engine=None if context.engine is None else Contribution.of(context.engine),
            dropped=[Dropped(**asdict(each)) for each in context.dropped],
            warnings=[Warned(**asdict(each)) for each in context.warnings],
            rendered=Rendered.of(context, render) if render else None,
        )
