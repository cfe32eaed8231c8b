"""Computed contexts and the results of intents, as the library's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lamina.client.reading import chunk_of, instant, memory_of, message_of, thread_context_of
from lamina.domain.context import (
    ComputedContext,
    ContextWarning,
    DroppedItem,
    DropReason,
    EngineContribution,
    ItemKind,
    PackHit,
    UserContext,
)
from lamina.domain.context_form import Form, TokenSource
from lamina.domain.intent import IntentError, IntentResult, IntentStatus, IntentTimings
from lamina.domain.memory import Layer, Trust
from lamina.domain.usage import Usage

__all__ = ["context_of", "result_of"]

Json = Mapping[str, Any]

_PLAIN: Final = (
    "intent_id goal token_budget thread_id instructions notice estimated_tokens counter over_budget permissions "
    "policies"
).split()
_RESULT: Final = "intent_id answer agent thread_id saved warnings".split()


def context_of(data: Json) -> ComputedContext:
    """The context; `knowledge` are the same objects as among the memories."""
    memories = [memory_of(each) for each in data["memories"]]
    shared = set(data["knowledge"])
    talk, engine, form = data["conversation"], data["engine"], data["form"]
    return ComputedContext(
        **{name: data[name] for name in _PLAIN},
        user=UserContext(**data["user"]),
        computed_at=instant(data["computed_at"]),
        memories=memories,
        knowledge=[each for each in memories if each.id in shared],
        documents=[chunk_of(each) for each in data["documents"]],
        packs=[PackHit(**{**each, "trust": Trust(each["trust"])}) for each in data["packs"]],
        conversation=None if talk is None else thread_context_of(talk),
        engine=None if engine is None else _contribution(engine),
        tokens_by_source={TokenSource(source): tokens for source, tokens in data["tokens_by_source"].items()},
        form=None if form is None else Form(form),
        dropped=[_dropped(each) for each in data["dropped"]],
        warnings=[ContextWarning(**each) for each in data["warnings"]],
    )


def result_of(data: Json) -> IntentResult:
    """What came of an intent."""
    error, context = data["error"], data["context"]
    return IntentResult(
        **{name: data[name] for name in _RESULT},
        status=IntentStatus(data["status"]),
        context=None if context is None else context_of(context),
        error=None if error is None else IntentError(error["kind"], error["message"]),
        usage=Usage(**data["usage"]),
        timings=IntentTimings(**data["timings"]),
        messages=[message_of(each) for each in data["messages"]],
    )


def _contribution(data: Json) -> EngineContribution:
    return EngineContribution(**{**data, "messages": [message_of(each) for each in data["messages"]]})


def _dropped(data: Json) -> DroppedItem:
    layer = data["layer"]
    read = {
        "kind": ItemKind(data["kind"]),
        "reason": DropReason(data["reason"]),
        "layer": None if layer is None else Layer(layer),
    }
    return DroppedItem(**{**data, **read})
