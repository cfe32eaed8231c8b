"""Packs and their memories in the JSON of the server, as the library's own objects and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lamina.client.reading import degraded_of, instant
from lamina.client.resource import sendable
from lamina.domain.memory import DEFAULT_NAME, UNSET
from lamina.domain.pack import (
    MemoryType,
    Pack,
    PackConfidence,
    PackHit,
    PackMatch,
    PackMemory,
    PackMetadata,
    PackSource,
    PackStatus,
    PackSummary,
    PackType,
    PackUse,
    Relationship,
)
from lamina.domain.pack_decay import Decay, Tier
from lamina.domain.recall import Results
from lamina.errors import InvalidInput
from lamina.memory.inputs import read_instant, read_tags
from lamina.packs.fading import FadingStep
from lamina.packs.inputs import PackMemoryInput, read_decay, read_relationships

__all__ = [
    "hits_of",
    "matches_of",
    "new_memory",
    "pack_memory_of",
    "pack_metadata_of",
    "pack_of",
    "sendable_decay",
    "sendable_memory",
    "step_of",
    "summary_of",
]

_HEAD: Final = "id name description tags owner revision".split()
_MEMORY: Final = "id pack_id content name tags revision embedding".split()
_FACTS: Final = "confidence provenance access_count superseded_by".split()
_TOLD: Final = ("source", "confidence", "provenance")
"""What a memory's `metadata` holds on the wire, beside what is the client's own."""

Json = Mapping[str, Any]


def summary_of(data: Json) -> PackSummary:
    """The first layer of a pack."""
    return PackSummary(**_head(data))


def pack_of(data: Json) -> Pack:
    """The pack, with the decay that it has. What the server keeps to itself has its default: tenant, vector."""
    decay = data["decay"]
    return Pack(
        **_head(data),
        tenant=DEFAULT_NAME,
        metadata=dict(data["metadata"]["custom"]),
        decay=Decay(timedelta(seconds=decay["unit"]), tuple(decay["steps"])),
    )


def pack_metadata_of(data: Json) -> PackMetadata:
    """The second layer of a pack."""
    held, access = data["metadata"], data["metadata"]["access"]
    return PackMetadata(
        memory_count=held["memory_count"],
        type_distribution={MemoryType(kind): count for kind, count in held["type_distribution"].items()},
        tier_distribution={Tier(tier): count for tier, count in held["tier_distribution"].items()},
        confidence=PackConfidence(**held["confidence"]),
        access=PackUse(**{**access, "last_accessed": instant(access["last_accessed"])}),
    )


def matches_of(data: Json) -> Results[PackMatch]:
    """The packs that were found."""
    return Results([PackMatch(summary_of(each), each["score"]) for each in data["data"]], degraded=degraded_of(data))


def pack_memory_of(data: Json) -> PackMemory:
    """The memory. What the server keeps to itself has its default."""
    facts = data["metadata"]
    return PackMemory(
        **{name: data[name] for name in _MEMORY if name in data},
        **{name: facts[name] for name in _FACTS},
        tenant=DEFAULT_NAME,
        created_at=instant(facts["created_at"]),
        updated_at=instant(data["updated_at"]),
        memory_type=MemoryType(data["memory_type"]),
        source=PackSource(facts["source"]),
        metadata=dict(facts["custom"]),
        relationships=[Relationship(each["type"], each["target_id"]) for each in data["relationships"]],
        last_accessed=instant(facts["last_accessed"]),
        tier=Tier(data["degradation_tier"]),
        tier_since=instant(data["tier_since"]),
        pinned_at=instant(data["pinned_at"]),
        expires_at=instant(data["expires_at"]),
    )


def hits_of(data: Json) -> Results[PackHit]:
    """The memories that were retrieved."""
    hits = [PackHit(pack_memory_of(each), each.get("score"), Tier(each["found_in"])) for each in data["data"]]
    return Results(hits, degraded=degraded_of(data))


def step_of(data: Json, pack: str) -> FadingStep:
    """What a memory of this pack loses next."""
    return FadingStep(
        id=data["id"],
        pack_id=data["pack_id"],
        pack=pack,
        name=data["name"],
        tier=Tier(data["degradation_tier"]),
        next_tier=Tier(data["next_tier"]),
        at=instant(data["at"]),
    )


def sendable_decay(value: object) -> dict[str, Any] | None:
    """The decay as it can be sent; raises as `ContextPacks.create`."""
    decay = read_decay(value)
    return None if decay is None else {"unit": decay.unit / timedelta(seconds=1), "steps": list(decay.steps)}


def new_memory(given: PackMemoryInput) -> dict[str, Any]:
    """What a caller says about a memory to add, as it can be sent.

    Raises:
        InvalidInput: an argument cannot be taken. InvalidType: likewise, for its type.
    """
    if given.id is not None:
        raise InvalidInput("id", "is the server's to make", "Leave it out, and use `name` for a label of your own.")
    fields = {
        "content": given.content,
        "memory_type": given.memory_type,
        "name": given.name,
        "source": given.source,
        "confidence": given.confidence,
        "provenance": given.provenance,
        "tags": given.tags,
        "metadata": given.metadata,
        "relationships": given.relationships,
        "expires_at": given.expires_at,
    }
    return sendable_memory({name: value for name, value in fields.items() if value is not None})


def sendable_memory(fields: Json) -> dict[str, Any]:
    """The given fields of a memory as they can be sent, what is None as well; without those that are unset."""
    given = {name: value for name, value in fields.items() if value is not UNSET}
    if given.get("tags") is not None:
        given["tags"] = read_tags("tags", given["tags"])
    if "expires_at" in given:
        given["expires_at"] = read_instant("expires_at", given["expires_at"])
    if given.get("relationships") is not None:
        related = read_relationships(given["relationships"])
        given["relationships"] = [{"type": each.type, "target_id": each.target_id} for each in related]
    facts: dict[str, Any] = {name: given.pop(name) for name in _TOLD if name in given}
    if "metadata" in given:
        facts["custom"] = given.pop("metadata")
    unsaid = {name: None for name, value in given.items() if value is None}
    return {**sendable(given), **unsaid, **({"metadata": facts} if facts else {})}


def _head(data: Json) -> dict[str, Any]:
    return {
        **{name: data[name] for name in _HEAD},
        "type": PackType(data["type"]),
        "status": PackStatus(data["status"]),
        "created_at": instant(data["created_at"]),
        "updated_at": instant(data["updated_at"]),
    }
