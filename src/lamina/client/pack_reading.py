"""Packs and their memories in the JSON of the server, as the library's own objects and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lamina.client.reading import degraded_of, instant
from lamina.domain.memory import DEFAULT_NAME
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
from lamina.packs.changing import memory_fields
from lamina.packs.fading import FadingStep
from lamina.packs.inputs import PackMemoryInput

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


def sendable_decay(decay: Decay | None) -> dict[str, Any] | None:
    """The decay as it can be sent."""
    return None if decay is None else {"unit": decay.unit / timedelta(seconds=1), "steps": list(decay.steps)}


def new_memory(given: PackMemoryInput) -> dict[str, Any]:
    """What a caller says about a memory to add, read, checked and as it can be sent.

    Raises:
        InvalidInput: an argument cannot be taken. InvalidType: likewise, for its type.
    """
    if given.id is not None:
        raise InvalidInput("id", "is the server's to make", "Leave it out, and use `name` for a label of your own.")
    said = {each.name: getattr(given, each.name) for each in dataclasses.fields(given) if each.name != "id"}
    optional = ("name", "provenance", "expires_at")
    return sendable_memory({name: value for name, value in said.items() if value is not None or name not in optional})


def sendable_memory(given: Json) -> dict[str, Any]:
    """The given fields of a memory, read, checked and as they can be sent, what is None as well.

    Raises:
        InvalidInput: an argument cannot be taken, or none is given. InvalidType: likewise, for its type.
    """
    fields = memory_fields(**given)
    facts: dict[str, Any] = {name: fields.pop(name) for name in _TOLD if name in fields}
    if "metadata" in fields:
        facts["custom"] = fields.pop("metadata")
    if "relationships" in fields:
        fields["relationships"] = [dataclasses.asdict(each) for each in fields["relationships"]]
    if fields.get("expires_at") is not None:
        fields["expires_at"] = fields["expires_at"].isoformat()
    return {**fields, "metadata": facts} if facts else fields


def _head(data: Json) -> dict[str, Any]:
    return {
        **{name: data[name] for name in _HEAD},
        "type": PackType(data["type"]),
        "status": PackStatus(data["status"]),
        "created_at": instant(data["created_at"]),
        "updated_at": instant(data["updated_at"]),
    }
