"""JSON of the server as the library's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lamina.conversation.folding import CompactionReport
from lamina.domain.document import Document, RagChunk
from lamina.domain.memory import DEFAULT_NAME, Layer, MemoryEntry, Trust
from lamina.domain.message import Message
from lamina.domain.message_json import message_from_json
from lamina.domain.periods import Period
from lamina.domain.recall import (
    Degraded,
    DroppedHit,
    HitExplanation,
    Leg,
    LegHit,
    Reason,
    RecallExplanation,
    RecallResult,
    Results,
    ScoreBreakdown,
    SearchMode,
    Source,
)
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadContext, ThreadEvent, ThreadStatus
from lamina.memory.quarantining import QuarantineReceipt

__all__ = [
    "chunk_of",
    "compaction_of",
    "degraded_of",
    "document_of",
    "event_of",
    "instant",
    "memory_of",
    "message_of",
    "quarantine_of",
    "recalled",
    "retrieved",
    "thread_context_of",
    "thread_of",
]

_MEMORY: Final = (
    "id content owner namespace tags metadata relevance confidence ttl access_count revision superseded_by source "
    "derived_from"
).split()
_MEMORY_TIMES: Final = "created_at updated_at expires_at last_accessed_at occurred_at valid_until".split()
_THREAD: Final = "id owner namespace metadata last_index folded_through revision".split()
_DOCUMENT: Final = "id source owner metadata digest chunks generation".split()
_CHUNK: Final = "id content source score document_id chunk_index start end metadata".split()

Json = Mapping[str, Any]


def instant(text: str | None) -> Any:
    """The instant of a text in ISO 8601."""
    return None if text is None else datetime.fromisoformat(text)


def memory_of(data: Json) -> MemoryEntry:
    """The memory. What the server keeps to itself has its default: tenant, vector, order."""
    return MemoryEntry(
        **{name: data[name] for name in _MEMORY},
        **{name: instant(data[name]) for name in _MEMORY_TIMES},
        layer=Layer(data["layer"]),
        trust=Trust(data["trust"]),
        base_relevance=data["relevance"],
    )


def quarantine_of(data: Json) -> QuarantineReceipt:
    """The receipt of a quarantine."""
    ids = {name: list(data[name]) for name in ("from_source", "derived", "documents")}
    return QuarantineReceipt(data["id"], instant(data["at"]), data["source"], **ids)


def recalled(data: Json) -> Results[RecallResult]:
    """The results of a recall."""
    told = data["explanation"]
    return Results(
        [_hit(each) for each in data["data"]],
        degraded=degraded_of(data),
        explanation=None if told is None else _explanation(told),
    )


def document_of(data: Json) -> Document:
    """The head of a document."""
    return Document(
        **{name: data[name] for name in _DOCUMENT},
        tenant=DEFAULT_NAME,
        ingested_at=instant(data["ingested_at"]),
        options=dict(data["chunking"]),
    )


def chunk_of(data: Json) -> RagChunk:
    """The chunk."""
    return RagChunk(**{name: data[name] for name in _CHUNK})


def retrieved(data: Json) -> Results[RagChunk]:
    """The results of a retrieval."""
    return Results([chunk_of(each) for each in data["data"]], degraded=degraded_of(data))


def degraded_of(data: Json) -> tuple[Degraded, ...]:
    """Which legs of a search did not answer, and why."""
    return tuple(Degraded(Leg(each["leg"]), Reason(each["reason"]), each["detail"]) for each in data["degraded"])


def message_of(data: Json) -> Message:
    """The message."""
    return message_from_json(data)


def thread_of(data: Json) -> Thread:
    """The thread; with its live messages and its summary where the server gives them."""
    return Thread(
        **{name: data[name] for name in _THREAD},
        tenant=DEFAULT_NAME,
        status=ThreadStatus(data["status"]),
        created_at=instant(data["created_at"]),
        updated_at=instant(data["updated_at"]),
        messages=[message_of(each) for each in data.get("messages", ())],
        summaries=[_summary(each) for each in data.get("summaries", ())],
    )


def thread_context_of(data: Json) -> ThreadContext:
    """What of a thread goes into a context."""
    return ThreadContext(
        summary=data["summary"],
        messages=[message_of(each) for each in data["messages"]],
        thread_id=data["thread_id"],
        tokens=data["tokens"],
        warnings=list(data["warnings"]),
    )


def compaction_of(data: Json) -> CompactionReport:
    """What a compaction did."""
    source = data["source"]
    names = "compacted kept summary facts_stored warnings".split()
    return CompactionReport(
        **{name: data[name] for name in names}, source=None if source is None else SummarySource(source)
    )


def event_of(data: Json) -> ThreadEvent:
    """The event of a session."""
    return ThreadEvent(message_of(data["message"]), dict(data["state"]), data["tokens"], data["counter"])


def _hit(data: Json) -> RecallResult:
    told = data["explanation"]
    return RecallResult(
        entry=memory_of(data["memory"]),
        score=data["score"],
        score_breakdown=ScoreBreakdown(**data["score_breakdown"]),
        source=Source(data["source"]),
        explanation=None
        if told is None
        else HitExplanation(
            _leg_hit(told["vector"]),
            _leg_hit(told["text"]),
            dict(told["contributions"]),
            told["support"],
            told["rerank"],
        ),
    )


def _leg_hit(data: Json | None) -> LegHit | None:
    return None if data is None else LegHit(**data)


def _explanation(data: Json) -> RecallExplanation:
    return RecallExplanation(
        mode=SearchMode(data["mode"]),
        candidates={Leg(leg): count for leg, count in data["candidates"].items()},
        dropped=[DroppedHit(**each) for each in data["dropped"]],
        terms=list(data["terms"]),
        weights=dict(data["weights"]),
        min_match=data["min_match"],
        periods=tuple(_period(each) for each in data["periods"]),
    )


def _period(data: Json) -> Period:
    return Period(instant(data["start"]), instant(data["end"]), data["text"])


def _summary(data: Json) -> Summary:
    created, source = instant(data["created_at"]), SummarySource(data["source"])
    return Summary(**{**data, "created_at": created, "source": source})
