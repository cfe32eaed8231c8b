"""Callers' arguments become packs and pack memories: read, cleaned and checked in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from lamina.domain.pack import MemoryType, Pack, PackMemory, PackSource, Relationship
from lamina.domain.pack_decay import DEFAULT_STEPS, Decay
from lamina.domain.text import check_name, clean
from lamina.domain.validation import check_unit_interval, clean_metadata
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.inputs import read_instant, read_tags

__all__ = [
    "MAX_ID_CHARS",
    "PackMemoryInput",
    "build_memory",
    "read_by",
    "read_confidence",
    "read_decay",
    "read_input",
    "read_kind",
    "read_metadata",
    "read_names",
    "read_relationships",
    "read_text",
]

MAX_ID_CHARS: Final = 256
"""Of an id that a caller gives a memory: rows are kept under longer ones, made of it."""

Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(slots=True, kw_only=True)
class PackMemoryInput:
    """What a caller says about a memory to add: see `ContextPacks.add`."""

    content: str
    memory_type: MemoryType | str = MemoryType.FACT
    name: str | None = None
    source: PackSource | str = PackSource.CONVERSATION
    confidence: float = 1.0
    provenance: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    relationships: Sequence[Relationship | Mapping[str, str]] = ()
    expires_at: datetime | str | None = None
    id: str | None = None


def read_input(item: object) -> PackMemoryInput:
    """The item as a `PackMemoryInput`: text, a mapping with its fields, or one itself."""
    if isinstance(item, PackMemoryInput):
        return item
    if isinstance(item, str):
        return PackMemoryInput(content=item)
    if not isinstance(item, Mapping):
        problem = f"must be text, not {type(item).__name__}"
        raise InvalidType("content", problem, "Give a str, a mapping or a PackMemoryInput.")
    if "content" not in item:
        raise InvalidInput("content", "is missing", "Give the text to remember under the key 'content'.")
    known = [each.name for each in dataclasses.fields(PackMemoryInput)]
    for key in item:
        if key not in known:
            raise InvalidInput(str(key), "is not a field of a pack memory", f"Use: {', '.join(known)}.")
    return PackMemoryInput(**item)


def build_memory(given: PackMemoryInput, pack: Pack, id: str, now: datetime) -> PackMemory:
    """The memory that this input describes; what the store checks besides is left to it."""
    if given.id is not None and len(check_name("id", given.id)) > MAX_ID_CHARS:
        raise InvalidInput("id", f"has {len(given.id)} characters", f"Use at most {MAX_ID_CHARS}.")
    return PackMemory(
        id=id if given.id is None else given.id,
        tenant=pack.tenant,
        pack_id=pack.id,
        content=read_text("content", given.content),
        created_at=now,
        updated_at=now,
        memory_type=read_kind("memory_type", given.memory_type, MemoryType),
        name=given.name if given.name is None else check_name("name", given.name),
        source=read_kind("source", given.source, PackSource),
        confidence=read_confidence(given.confidence),
        provenance=None if given.provenance is None else read_text("provenance", given.provenance),
        tags=read_tags("tags", given.tags),
        metadata=read_metadata(given.metadata),
        relationships=read_relationships(given.relationships),
        expires_at=read_instant("expires_at", given.expires_at),
    )


def read_kind(field: str, value: object, kind: type[Kind]) -> Kind:
    """The member of this name."""
    try:
        return kind(value)  # type: ignore[arg-type]  # whatever is no text is no member
    except ValueError:
        raise InvalidInput(field, f"{value!r:.60} is unknown", f"Use one of: {', '.join(kind)}.") from None


def read_by(value: object) -> str:
    """How packs are named."""
    if value not in ("name", "id"):
        raise InvalidInput("by", f"{value!r:.60} is unknown", "Use 'name' or 'id'.")
    return str(value)


def read_text(field: str, value: object) -> str:
    """The text, cleaned."""
    if not isinstance(value, str):
        raise InvalidType(field, f"must be text, not {type(value).__name__}", "Give a str.")
    return clean(value)


def read_confidence(value: object, field: str = "confidence") -> float:
    """A number in [0, 1]."""
    return check_unit_interval(field, value)


def read_metadata(value: object) -> dict[str, Any]:
    """The metadata with its texts cleaned; None is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidType("metadata", f"must be a dict, not {type(value).__name__}", "Give a dict with text keys.")
    cleaned: dict[str, Any] = clean_metadata(value)
    return cleaned


def read_relationships(value: object) -> list[Relationship]:
    """The relationships, from such or from mappings with `type` and `target_id`."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidType("relationships", "must be a list", "Give [{'type': 'related_to', 'target_id': '…'}].")
    return [_relationship(each) for each in value]


def _relationship(value: object) -> Relationship:
    if isinstance(value, Relationship):
        return value
    if not isinstance(value, Mapping) or set(value) != {"type", "target_id"}:
        remedy = "Give each as {'type': 'related_to', 'target_id': '…'}."
        raise InvalidInput("relationships", "holds what is no relationship", remedy)
    return Relationship(
        check_name("relationships.type", value["type"]), check_name("relationships.target_id", value["target_id"])
    )


def read_decay(value: object) -> Decay | None:
    """A decay from one, or from a mapping with `unit` (a timedelta, or seconds) and maybe `steps`."""
    if value is None or isinstance(value, Decay):
        return value
    if not isinstance(value, Mapping) or not set(value) <= {"unit", "steps"} or "unit" not in value:
        raise InvalidInput("decay", "is no decay", "Give Decay(timedelta(days=7)), or {'unit': …, 'steps': […]}.")
    unit, steps = value["unit"], value.get("steps", DEFAULT_STEPS)
    if _is_number(unit):
        try:
            unit = timedelta(seconds=unit)
        except (OverflowError, ValueError):
            raise InvalidInput("decay.unit", f"{unit} is no time", "Give seconds, or a timedelta.") from None
    if not isinstance(unit, timedelta):
        raise InvalidType("decay.unit", f"must be a time, not {type(unit).__name__}", "Give seconds, or a timedelta.")
    if not isinstance(steps, list | tuple) or not all(map(_is_number, steps)):
        raise InvalidType("decay.steps", "must be four numbers", "Give such as [1, 2, 4, 8].")
    return Decay(unit, tuple(map(float, steps)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_names(field: str, value: object) -> list[str]:
    """One name, or several, each once."""
    if isinstance(value, str):
        return [check_name(field, value)]
    if not isinstance(value, Iterable):
        raise InvalidType(field, f"must be a name or several, not {type(value).__name__}", "Give a str or a list.")
    names = [check_name(field, each) for each in value]
    if not names:
        raise InvalidInput(field, "is empty", "Name at least one pack.")
    return list(dict.fromkeys(names))
