"""After a turn, remembers what the user said about themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lamina.domain.intent import Intent
from lamina.domain.lexical import index_terms, query_terms
from lamina.domain.memory import Layer
from lamina.domain.text import MAX_NAME_CHARS, clean, is_blank
from lamina.kernel.said_facts import own_part, said_facts
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput
from lamina.ports.language_model import ChatMessage, ChatRole, LanguageModel
from lamina.prompts import render
from lamina.telemetry import place_of

__all__ = ["AutoSave", "SaveReport"]

MOST_FACTS: Final = 5
"""Of one turn."""
TIMEOUT: Final = 60.0
"""Seconds that a model has to read a message."""
_MAX_FACT_CHARS: Final = 500
_MAX_MESSAGE_CHARS: Final = 8_000
"""What a model is shown of one message."""
_LAYERS: Final = (Layer.LONGTERM.value, Layer.SESSION.value)
_FIELDS: Final = frozenset({"content", "tags", "relevance", "layer"})

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "maxItems": MOST_FACTS,
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                    "relevance": {"type": "number", "minimum": 0, "maximum": 1},
                    "layer": {"enum": list(_LAYERS)},
                },
                "required": ["content", "tags", "relevance", "layer"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SaveReport:
    """The ids of what was stored or confirmed, and what went wrong. No content."""

    saved: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AutoSave:
    """Finds facts in what a user says: with a model; without, or if it fails, by rules (en, de, fr, es, zh, ja).

    Only the intent's goal is read, which is the user's own words: no answer, no result of a tool, no document.
    """

    memory: MemoryEngine
    llm: LanguageModel | None = None

    async def after_turn(self, intent: Intent) -> SaveReport:
        """Remember at most five facts for the intent's owner. A failure is a warning in the report, never raised."""
        warnings: list[str] = []
        facts = None if self.llm is None else await self._found(self.llm, intent, warnings)
        if facts is None:
            facts = self._said(intent)
        try:
            ids = await self.memory.store_many(facts) if facts else []
        except Exception as error:  # noqa: BLE001 - a store, or a host's hook: the turn has succeeded whatever they say
            log.warning("auto-save of %s failed with %s", intent.id, place_of(error))
            return SaveReport(warnings=[*warnings, f"auto_save failed: {type(error).__name__}"])
        return SaveReport(list(dict.fromkeys(id for id in ids if id is not None)), warnings)

    def _said(self, intent: Intent) -> list[MemoryInput]:
        facts = said_facts(intent.goal, limit=MOST_FACTS)
        return [
            self._memory(intent, fact.content, [fact.kind.value], relevance=fact.relevance, layer=Layer.LONGTERM.value)
            for fact in facts
        ]

    async def _found(self, llm: LanguageModel, intent: Intent, warnings: list[str]) -> list[MemoryInput] | None:
        """The facts that the model finds; None, with a warning, if it cannot be relied on for this message."""
        conversation = [
            ChatMessage(ChatRole.SYSTEM, render("auto_save", most=str(MOST_FACTS))),
            ChatMessage(ChatRole.USER, clean(intent.goal)[:_MAX_MESSAGE_CHARS]),
        ]
        try:
            async with asyncio.timeout(TIMEOUT):
                completion = await llm.complete(conversation, schema=_SCHEMA)
            given = None if completion.data is None else completion.data.get("facts")
        except Exception as error:  # noqa: BLE001 - a host's model: the turn has succeeded whatever it raises or gives
            log.warning("auto-save of %s goes by rules: the model failed with %s", intent.id, type(error).__name__)
            warnings.append(f"auto_save went by rules: the model failed with {type(error).__name__}")
            return None
        if not isinstance(given, list):
            warnings.append("auto_save went by rules: the model gave no list of facts")
            return None
        good = [
            fact
            for fact in map(_read, given)
            if fact is not None and _is_borne_out(fact["content"], own_part(intent.goal))
        ]
        if len(good) < len(given):
            warnings.append(f"auto_save refused {len(given) - len(good)} of {len(given)} facts of the model")
        if len(good) > MOST_FACTS:
            warnings.append(f"auto_save kept {MOST_FACTS} of {len(good)} facts")
        return [
            self._memory(intent, each["content"], each["tags"], relevance=each["relevance"], layer=each["layer"])
            for each in good[:MOST_FACTS]
        ]

    def _memory(
        self, intent: Intent, content: str, tags: Sequence[str], *, relevance: float, layer: str
    ) -> MemoryInput:
        metadata = {"source": "auto_save", "intent_id": intent.id}
        if intent.thread_id is not None:
            metadata["thread_id"] = intent.thread_id
        return MemoryInput(
            content=content,
            layer=layer,
            owner=intent.owner,
            namespace=intent.namespace,
            tags=list(dict.fromkeys(["auto", *tags])),
            relevance=relevance,
            metadata=metadata,
            source=_source(intent),
        )


def _source(intent: Intent) -> str:
    """As of the facts that are found when a thread is summarised; without a thread, the intent."""
    where = f"intent:{intent.id}" if intent.thread_id is None else f"conversation:{intent.thread_id}"
    return where[:MAX_NAME_CHARS]


def _read(given: object) -> dict[str, Any] | None:
    """The fact, if it is one of the schema, to which some models are not held; a field too many spoils it."""
    if not isinstance(given, Mapping) or not given.keys() <= _FIELDS:
        return None
    content, tags = given.get("content"), given.get("tags", [])
    relevance, layer = given.get("relevance", 0.8), given.get("layer", Layer.LONGTERM.value)
    is_number = isinstance(relevance, int | float) and not isinstance(relevance, bool) and 0 <= relevance <= 1
    if not isinstance(content, str) or is_blank(content) or len(content) > _MAX_FACT_CHARS or layer not in _LAYERS:
        return None
    if not is_number or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return None
    named = [clean(tag).strip() for tag in tags if not is_blank(tag)]
    return {"content": clean(content), "tags": named[:5], "relevance": float(relevance), "layer": layer}


def _is_borne_out(fact: str, said: str) -> bool:
    """Whether a telling word of the fact stands in what was said: small models make facts up."""
    spoken = set(index_terms(said))
    terms = [term.forms for term in query_terms(fact) if _GENERIC.isdisjoint(term.forms)]
    return any(not spoken.isdisjoint(forms) for forms in terms)


_GENERIC: Final = frozenset(
    "user users name named like likes love loves prefer prefers want wants live lives work works use my me i is".split()
)
"""Words by which models phrase facts; they prove nothing of where one comes from."""
