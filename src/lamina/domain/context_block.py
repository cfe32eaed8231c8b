"""The part of a context that is data: looked up, labelled, escaped, and in an order that changes least at its head.

Sections go from what changes least to what changes most, and in a section the oldest comes first, so that
what is new is added behind and the text before it stays the same to the byte. No score, no count and no
time of day is in it: those drift while nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina.domain.context_form import TokenSource
from lamina.domain.document import RagChunk
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.text import content_digest
from lamina.domain.text_fencing import fenced, label

if TYPE_CHECKING:
    from lamina.domain.context import ComputedContext, EngineContribution, PackHit

__all__ = [
    "NOTES",
    "ItemText",
    "Segment",
    "block_text",
    "chunk_text",
    "data_block",
    "item_text",
    "memory_text",
    "pack_text",
    "preference_lines",
]

ItemText: TypeAlias = "Callable[[MemoryEntry | PackHit | RagChunk], str]"

NOTES = "notes"
"""The key of `UserContext.preferences` under which those without a key are listed."""

_SECTION_OF = {
    Layer.ORGANIZATIONAL: TokenSource.KNOWLEDGE,
    Layer.GLOBAL: TokenSource.KNOWLEDGE,
    Layer.LONGTERM: TokenSource.LONGTERM,
    Layer.SESSION: TokenSource.SESSION,
    Layer.WORKING: TokenSource.WORKING,
}
_STABLEST_FIRST = (Layer.GLOBAL, Layer.ORGANIZATIONAL, Layer.LONGTERM, Layer.SESSION, Layer.WORKING)
_DEFAULT_ROLE = "user"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of text, and what it is there for."""

    source: TokenSource
    text: str


def item_text(item: MemoryEntry | PackHit | RagChunk) -> str:
    """The item with its label."""
    if isinstance(item, MemoryEntry):
        return memory_text(item)
    return chunk_text(item) if isinstance(item, RagChunk) else pack_text(item)


def data_block(context: ComputedContext, told: ItemText = item_text) -> list[Segment]:
    """The block in pieces, which are to be joined without anything between; empty if there is no data.

    `told` gives an item with its label, for a caller who has labelled them already.
    """
    chunks = map(told, _reading_order(context.documents))
    sections = [
        Segment(TokenSource.PROFILE, _profile(context)),
        Segment(TokenSource.PREFERENCES, _section("preferences", preference_lines(context.user.preferences))),
        *_memory_sections(context, told),
        Segment(
            TokenSource.DOCUMENTS,
            _section("documents", chunks, untrusted=True),
        ),
        Segment(TokenSource.ENGINE, "" if context.engine is None else _engine(context.engine)),
        Segment(TokenSource.SUMMARY, _summary(context)),
    ]
    filled = [section for section in sections if section.text]
    if not filled:
        return []
    return [Segment(TokenSource.LABELS, "<context>\n"), *filled, Segment(TokenSource.LABELS, "</context>")]


def block_text(context: ComputedContext, told: ItemText = item_text) -> str:
    """The block as one text; `told` as for `data_block`."""
    return "".join(segment.text for segment in data_block(context, told))


def memory_text(entry: MemoryEntry) -> str:
    """The memory with its label: the day it tells of or was stored on, where it comes from, and distrust."""
    day = (entry.occurred_at or entry.created_at).date().isoformat()
    return _item("memory", entry.content, date=day, source=entry.source, trust=_distrust(entry.trust))


def pack_text(hit: PackHit) -> str:
    """The memory of a pack with its label."""
    return _item("pack_memory", hit.content, pack=hit.pack, source=hit.source, trust=_distrust(hit.trust))


def chunk_text(chunk: RagChunk) -> str:
    """The piece of a document with its label: the document's name, the titles above it, the page if known."""
    headers = chunk.metadata.get("headers")
    path = " > ".join(map(str, headers)) if isinstance(headers, list | tuple) else headers
    page = chunk.metadata.get("page")
    return _item("chunk", chunk.content, source=chunk.source, part=chunk.chunk_index + 1, headers=path, page=page)


def preference_lines(preferences: dict[str, Any]) -> list[str]:
    """A line for each preference, keyed ones first and by key."""
    keyed = [f"- {label(key)}: {_value(preferences[key])}" for key in sorted(preferences) if key != NOTES]
    notes = preferences.get(NOTES, [])
    return keyed + [f"- {_indented(note)}" for note in (notes if isinstance(notes, list) else [notes])]


def _memory_sections(context: ComputedContext, told: ItemText) -> list[Segment]:
    """Those of packs stand between what all share and what is the user's own."""
    noted = {content_digest(note) for note in context.user.preferences.get(NOTES, []) if isinstance(note, str)}
    sections: list[Segment] = []
    for layer in _STABLEST_FIRST:
        if layer is Layer.LONGTERM:
            hits = sorted(context.packs, key=lambda hit: (hit.pack, hit.id))
            sections.append(Segment(TokenSource.PACKS, _section("packs", map(told, hits))))
        shown = [
            each
            for each in context.memories
            if each.layer is layer and not (noted and content_digest(each.content) in noted)
        ]
        oldest_first = sorted(shown, key=lambda each: (each.created_at, each.seq, each.id))
        text = _section("memories", map(told, oldest_first), layer=layer.value)
        sections.append(Segment(_SECTION_OF[layer], text))
    return sections


def _reading_order(chunks: Sequence[RagChunk]) -> list[RagChunk]:
    return sorted(chunks, key=lambda chunk: (chunk.source, chunk.document_id, chunk.chunk_index, chunk.id))


def _profile(context: ComputedContext) -> str:
    lines = [] if context.user.role == _DEFAULT_ROLE else [f"role: {label(context.user.role)}"]
    if context.permissions:
        lines.append(f"permissions: {', '.join(label(each) for each in context.permissions)}")
    policies = [f"- {_indented(policy)}" for policy in context.policies]
    return _section("profile", lines) + _section("policies", policies)


def _engine(engine: EngineContribution) -> str:
    items = [_item("item", text) for text in engine.retrieved]
    return _section("retrieved", items, untrusted=True, engine=engine.engine_id)


def _summary(context: ComputedContext) -> str:
    summary = context.conversation.summary if context.conversation is not None else None
    return _section("conversation_summary", [fenced(summary)]) if summary else ""


def _section(name: str, items: Iterable[str], *, untrusted: bool = False, **labels: str) -> str:
    text = "\n".join(items)
    if not text:
        return ""
    trust = Trust.UNTRUSTED.value if untrusted else None
    return f"<{name}{_attributes({**labels, 'trust': trust})}>\n{text}\n</{name}>\n"


def _item(name: str, text: str, **labels: object) -> str:
    return f"<{name}{_attributes(labels)}>\n{fenced(text)}\n</{name}>"


def _attributes(labels: dict[str, Any]) -> str:
    return "".join(f' {name}="{label(str(value))}"' for name, value in labels.items() if value not in (None, ""))


def _distrust(trust: Trust) -> str | None:
    return trust.value if trust is Trust.UNTRUSTED else None


def _indented(text: object) -> str:
    return fenced(str(text)).replace("\n", "\n  ")


def _value(value: object) -> str:
    return _indented(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
