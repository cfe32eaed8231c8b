"""What an edit makes of a pack or of a pack memory: pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias

from lamina.domain.memory import Unset
from lamina.domain.pack import MemoryType, PackMemory, PackSource, PackStatus, PackType
from lamina.domain.pack_decay import Tier
from lamina.domain.text import check_name
from lamina.errors import InvalidInput
from lamina.memory.inputs import read_instant, read_tags
from lamina.packs.inputs import (
    read_confidence,
    read_decay,
    read_kind,
    read_metadata,
    read_relationships,
    read_text,
)

__all__ = ["Change", "archived", "memory_changes", "memory_fields", "pack_changes", "pinned", "restored", "unpinned"]

Change: TypeAlias = Callable[[PackMemory, datetime], PackMemory | None]
"""What becomes of a memory, which comes without content, at this instant; None means that it stays."""


def _status(value: Any) -> PackStatus:
    status = read_kind("status", value, PackStatus)
    if status is PackStatus.DELETED:
        raise InvalidInput("status", "cannot be set to deleted", "Delete the pack.")
    return status


_PACK_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": partial(check_name, "new_name"),
    "type": lambda value: read_kind("type", value, PackType),
    "description": partial(read_text, "description"),
    "tags": partial(read_tags, "tags"),
    "metadata": read_metadata,
    "decay": read_decay,
    "status": _status,
}

_MEMORY_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": partial(read_text, "content"),
    "memory_type": lambda value: read_kind("memory_type", value, MemoryType),
    "name": lambda value: None if value is None else check_name("name", value),
    "source": lambda value: read_kind("source", value, PackSource),
    "confidence": read_confidence,
    "provenance": lambda value: None if value is None else read_text("provenance", value),
    "tags": partial(read_tags, "tags"),
    "metadata": read_metadata,
    "relationships": read_relationships,
    "expires_at": partial(read_instant, "expires_at"),
}


def pack_changes(**given: Any) -> dict[str, Any]:
    """The fields of a pack that are to change, read and checked."""
    return _read(_PACK_FIELDS, given)


def memory_fields(**given: Any) -> dict[str, Any]:
    """The fields of a memory that are given, read and checked."""
    fields = _read(_MEMORY_FIELDS, given)
    if fields.get("content") == "":
        raise InvalidInput("content", "is blank", "Give at least one visible character.")
    return fields


def memory_changes(**given: Any) -> Change:
    """The edit of a memory that these fields describe. A new content puts it into the full tier, as read now."""
    changes = memory_fields(**given)

    def change(memory: PackMemory, now: datetime) -> PackMemory:
        if "content" in changes and memory.tier is not Tier.ARCHIVED:
            return memory.replace(**changes, tier=Tier.FULL, last_accessed=now)
        return memory.replace(**changes)

    return change


def pinned(memory: PackMemory, now: datetime) -> PackMemory | None:
    """Pinned, unless it is."""
    return memory.replace(pinned_at=now) if memory.pinned_at is None else None


def unpinned(memory: PackMemory, _: datetime) -> PackMemory | None:
    """Not pinned."""
    return None if memory.pinned_at is None else memory.replace(pinned_at=None)


def archived(memory: PackMemory, _: datetime) -> PackMemory | None:
    """In cold storage, unless it is."""
    return None if memory.tier is Tier.ARCHIVED else memory.replace(tier=Tier.ARCHIVED)


def restored(memory: PackMemory, now: datetime) -> PackMemory | None:
    """Out of cold storage, if it is there: its idle time begins now, and what let it expire is over."""
    if memory.tier is not Tier.ARCHIVED:
        return None
    expires_at = memory.expires_at if memory.expires_at is not None and memory.expires_at > now else None
    return memory.replace(tier=Tier.FULL, last_accessed=now, expires_at=expires_at)


def _read(fields: Mapping[str, Callable[[Any], Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    changes = {field: fields[field](value) for field, value in given.items() if not isinstance(value, Unset)}
    if not changes:
        raise InvalidInput("changes", "are none", f"Give at least one of {', '.join(fields)}.")
    return changes
