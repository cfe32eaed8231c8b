"""Packs and their memories as they can be stored: copied, texts cleaned, the rest checked.

Every pack store passes what it is given through these first, as state stores do with `lamina.domain.storable`.
"""

from __future__ import annotations

import dataclasses
import re
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, get_args

from lamina.domain.pack import (
    OWNED_TYPES,
    MemoryType,
    Pack,
    PackMemory,
    PackOrder,
    PackSource,
    PackStatus,
    PackType,
    Relationship,
)
from lamina.domain.pack_decay import Decay, Tier
from lamina.domain.pack_query import DuePlace, PackMemoryQuery, PackQuery
from lamina.domain.storable import check_class, check_kind, check_paging, possible_ids, storable_metadata, storable_text
from lamina.domain.text import check_name, is_blank
from lamina.domain.validation import (
    MAX_TAGS,
    check_instant,
    check_unit_interval,
    check_vector,
    check_whole_number,
)
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "MAX_PACK_CONTENT_BYTES",
    "MAX_RELATIONSHIPS",
    "MAX_REVISION",
    "MAX_TEXT_BYTES",
    "check_due",
    "check_limit",
    "check_listing_of_memories",
    "check_memory_id",
    "check_pack_look_up",
    "check_pack_name",
    "check_pack_owner",
    "check_revision",
    "check_walk",
    "distinct_ids",
    "storable_memory_query",
    "storable_pack",
    "storable_pack_memories",
    "storable_pack_memory",
    "storable_pack_query",
    "storable_revisions",
    "storable_tags",
]

MAX_PACK_CONTENT_BYTES: Final = 1024 * 1024
"""Of the content of a pack memory, as UTF-8."""

MAX_TEXT_BYTES: Final = 64 * 1024
"""Of a description or a provenance, as UTF-8."""

MAX_RELATIONSHIPS: Final = 1000
MAX_REVISION: Final = 2**53
_PACK_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_ORDERS: Final = get_args(PackOrder)


def check_pack_name(name: object) -> str:
    """The name, if a pack can have it: it is part of addresses."""
    check_name("name", name)
    if not isinstance(name, str) or not _PACK_NAME.fullmatch(name):
        remedy = "Use 1 to 63 of a-z, 0-9, underscore and hyphen, beginning with a letter or a digit."
        raise InvalidInput("name", f"{name!r:.80} cannot name a pack", remedy)
    return name


def check_pack_owner(type: PackType, owner: str | None) -> None:
    """Refuse a pack that must have an owner and has none."""
    if owner is not None:
        check_name("owner", owner)
    elif type in OWNED_TYPES:
        raise InvalidInput("owner", f"is missing, and a {type.value} pack belongs to one", "Give the owner.")


def check_memory_id(tenant: str, id: str) -> None:
    """Refuse what can be no memory of a tenant."""
    check_name("tenant", tenant)
    check_name("id", id)


def check_revision(field: str, value: object) -> int:
    """The number, if it can be a revision."""
    return check_whole_number(field, value, 1, MAX_REVISION)


def check_listing_of_memories(order: object, limit: int | None, offset: int) -> None:
    """Refuse an order that is none, or no page."""
    if order not in _ORDERS:
        raise InvalidInput("order", f"{order!r:.50} is unknown", f"Use one of: {', '.join(_ORDERS)}.")
    check_paging(limit, offset)


def check_pack_look_up(tenant: str, name: str, owner: str | None) -> None:
    """Refuse to look for what nothing can be called; a name that no pack can have is simply not found."""
    check_name("tenant", tenant)
    check_name("name", name)
    if owner is not None:
        check_name("owner", owner)


def check_limit(limit: object) -> None:
    """Refuse what is no number of things to return at most."""
    check_whole_number("limit", limit, 0, MAX_REVISION)


def check_walk(limit: object, after: object) -> None:
    """Refuse to take what is no number of packs at a time, or to go on behind what can be no id."""
    check_limit(limit)
    if after is not None:
        check_name("after", after)


def check_due(tenant: str, until: datetime, limit: int, *, after: DuePlace | None, pack_id: str | None) -> datetime:
    """The instant up to which memories are due, in UTC."""
    check_name("tenant", tenant)
    if pack_id is not None:
        check_name("pack_id", pack_id)
    check_limit(limit)
    if after is not None:
        check_class("after", after, DuePlace)
        check_instant("after.due_at", after.due_at)
        check_name("after.id", after.id)
    return check_instant("until", until)


def distinct_ids(ids: Sequence[object]) -> list[str]:
    """Those of the ids that can be kept at all, each once, in their order."""
    return list(dict.fromkeys(possible_ids(ids)))


def storable_revisions(revisions: Mapping[str, int]) -> dict[str, int]:
    """Revisions by id, without ids that nothing can have."""
    if not isinstance(revisions, Mapping):
        raise InvalidType("revisions", f"must be a dict, not {type(revisions).__name__}", "Give revisions by id.")
    for revision in revisions.values():
        check_revision("revisions", revision)
    return {id: revisions[id] for id in possible_ids(list(revisions))}


def storable_tags(tags: object) -> list[str]:
    """The tags, cleaned.

    Raises:
        InvalidInput: there are too many, or one is blank or too long.
        InvalidType: they are no list of text.
    """
    if not isinstance(tags, list | tuple):
        raise InvalidType("tags", f"must be a list of text, not {type(tags).__name__}", "Give a list of str.")
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags", f"has {len(tags)} tags", f"Use at most {MAX_TAGS}.")
    return [check_name("tags", storable_text("tags", tag)) for tag in tags]


def storable_pack(pack: Pack) -> Pack:
    """The pack with a copy of all that it holds; its vector, if it has one, as 32-bit floats.

    Raises:
        InvalidInput: a field has a value that cannot be stored.
        InvalidType: a field has a type that cannot be stored.
    """
    check_class("pack", pack, Pack)
    check_name("tenant", pack.tenant)
    check_name("id", pack.id)
    check_pack_name(pack.name)
    check_kind("type", pack.type, PackType)
    check_kind("status", pack.status, PackStatus)
    check_pack_owner(pack.type, pack.owner)
    return pack.replace(
        created_at=check_instant("created_at", pack.created_at),
        updated_at=check_instant("updated_at", pack.updated_at),
        description=_short_text("description", pack.description),
        tags=storable_tags(pack.tags),
        metadata=storable_metadata(pack.metadata),
        decay=_decay(pack.decay),
        revision=1,
        embedding=_vector(pack),
    )


def storable_pack_memories(memories: Sequence[PackMemory]) -> list[PackMemory]:
    """New memories of one tenant, each as `storable_pack_memory`."""
    if isinstance(memories, str | Mapping) or not isinstance(memories, Iterable):
        raise InvalidType("memories", f"must be a list, not {type(memories).__name__}", "Give a list of PackMemory.")
    checked = [storable_pack_memory(each) for each in memories]
    if len({each.tenant for each in checked}) > 1:
        raise InvalidInput("tenant", "differs among the memories", "Add those of each tenant in a call of its own.")
    return checked


def storable_pack_memory(memory: PackMemory, *, keeps_content: bool = False) -> PackMemory:
    """The memory with a copy of all that it holds, without its vector.

    With `keeps_content`, a content of '' stands for the one that is kept already.

    Raises:
        InvalidInput: a field has a value that cannot be stored.
        InvalidType: a field has a type that cannot be stored.
    """
    check_class("memory", memory, PackMemory)
    for field in ("tenant", "id", "pack_id"):
        check_name(field, getattr(memory, field))
    for field in ("name", "superseded_by"):
        if getattr(memory, field) is not None:
            check_name(field, getattr(memory, field))
    check_kind("memory_type", memory.memory_type, MemoryType)
    check_kind("source", memory.source, PackSource)
    check_kind("tier", memory.tier, Tier)
    _check_flag("is_deleted", memory.is_deleted)
    is_kept = keeps_content and memory.content == ""
    return memory.replace(
        content="" if is_kept else _content(memory.content),
        confidence=check_unit_interval("confidence", memory.confidence),
        provenance=None if memory.provenance is None else _short_text("provenance", memory.provenance),
        tags=storable_tags(memory.tags),
        metadata=storable_metadata(memory.metadata),
        relationships=_relationships(memory),
        embedding=None,
        **_instants(memory),
    )


def storable_pack_query(query: PackQuery) -> PackQuery:
    """The query with its tag cleaned, as stored ones are."""
    check_class("query", query, PackQuery)
    check_name("tenant", query.tenant)
    if query.owner is not None:
        check_name("owner", query.owner)
    _check_flag("any_owner", query.any_owner)
    if query.type is not None:
        check_kind("type", query.type, PackType)
    _check_kinds("statuses", query.statuses, PackStatus)
    return query if query.tag is None else dataclasses.replace(query, tag=storable_text("tag", query.tag))


def storable_memory_query(query: PackMemoryQuery) -> PackMemoryQuery:
    """The query with its tags cleaned, as stored ones are, and each possible pack once."""
    check_class("query", query, PackMemoryQuery)
    check_name("tenant", query.tenant)
    if query.memory_type is not None:
        check_kind("memory_type", query.memory_type, MemoryType)
    if query.name is not None:
        check_name("name", query.name)
    _check_flag("include_superseded", query.include_superseded)
    _check_kinds("tiers", query.tiers, Tier)
    return dataclasses.replace(
        query,
        pack_ids=tuple(distinct_ids(query.pack_ids)),
        tags=tuple(storable_tags(query.tags)),
        min_confidence=check_unit_interval("min_confidence", query.min_confidence),
    )


def _check_flag(field: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidType(field, f"must be True or False, not {type(value).__name__}", "Give a bool.")


def _check_kinds(field: str, values: object, kind: type[StrEnum]) -> None:
    if isinstance(values, str) or not isinstance(values, Collection):
        raise InvalidType(field, f"must be a set, not {type(values).__name__}", "Give a frozenset.")
    for value in values:
        check_kind(field, value, kind)


def _content(content: object) -> str:
    text = storable_text("content", content)
    if is_blank(text):
        raise InvalidInput("content", "is blank", "Give at least one visible character.")
    size = len(text.encode())
    if size > MAX_PACK_CONTENT_BYTES:
        raise InvalidInput("content", f"has {size} bytes", f"Use at most {MAX_PACK_CONTENT_BYTES}, or split it.")
    return text


def _short_text(field: str, value: object) -> str:
    text = storable_text(field, value)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(field, f"has {size} bytes", f"Use at most {MAX_TEXT_BYTES}.")
    return text


def _instants(memory: PackMemory) -> dict[str, datetime | None]:
    found: dict[str, datetime | None] = {}
    for field in ("created_at", "updated_at"):
        found[field] = check_instant(field, getattr(memory, field))
    for field in ("last_accessed", "tier_since", "pinned_at", "expires_at"):
        value = getattr(memory, field)
        found[field] = None if value is None else check_instant(field, value)
    return found


def _relationships(memory: PackMemory) -> list[Relationship]:
    given: Any = memory.relationships
    if not isinstance(given, list | tuple):
        problem = f"must be a list, not {type(given).__name__}"
        raise InvalidType("relationships", problem, "Give a list of Relationship.")
    if len(given) > MAX_RELATIONSHIPS:
        raise InvalidInput("relationships", f"has {len(given)} of them", f"Use at most {MAX_RELATIONSHIPS}.")
    for each in given:
        check_class("relationships", each, Relationship)
        check_name("relationships.type", each.type)
        check_name("relationships.target_id", each.target_id)
        if each.target_id == memory.id:
            raise InvalidInput("relationships", "names the memory itself", "Give the id of another memory.")
    return list(dict.fromkeys(given))


def _decay(decay: Decay | None) -> Decay | None:
    if decay is None:
        return None
    check_class("decay", decay, Decay)
    return Decay(decay.unit, tuple(float(each) for each in decay.steps))


def _vector(pack: Pack) -> array[float] | None:
    if pack.fingerprint is not None:
        check_name("fingerprint", pack.fingerprint)
    if pack.embedding is None:
        return None
    if pack.fingerprint is None:
        raise InvalidInput("fingerprint", "is missing beside an embedding", "Give that of the model that made it.")
    check_vector(pack.embedding)
    return array("f", pack.embedding)
