"""How far the text of a memory may be trusted, once others are known that it repeats or was made from.

What is untrusted never gains from what is trusted: it confirms nothing, supersedes nothing, and what is made from it
is untrusted too. What is trusted never lends: a trusted repetition takes the place of an untrusted memory whole, with
tags, metadata and source of its own, and leaves a record of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from lamina.domain.filters import INT64
from lamina.domain.memory import MemoryEntry, Trust, Unset
from lamina.domain.scope import Scope
from lamina.memory.inputs import MemoryInput, expiry
from lamina.memory.runtime import Runtime

__all__ = ["PROMOTED", "SUPERSEDED", "SUPERSEDES", "confirmation", "lowered", "outranked", "promotion", "revival"]

PROMOTED: Final = "promoted"
"""In the metadata of a memory that was untrusted: since when it is trusted, and what source it had before."""

SUPERSEDES: Final = "supersedes"
"""In the metadata of the new memory: the ids of those that it supersedes."""

SUPERSEDED: Final = "superseded"
"""In the metadata of the old memory: the reason, if one was given, and the `valid_until` that it had before."""


def outranked(twin: MemoryEntry, new: MemoryEntry) -> bool:
    """Whether the new one is a repetition by somebody who may not speak for what is stored."""
    if twin.is_quarantined and new.source == twin.source:
        return True
    return new.trust is Trust.UNTRUSTED and (twin.trust is Trust.TRUSTED or twin.is_quarantined)


def confirmation(twin: MemoryEntry, new: MemoryEntry, given: MemoryInput) -> dict[str, Any]:
    """What changes in a stored memory that is said again; nothing if the new one is outranked."""
    if outranked(twin, new):
        return {}
    relevance = 1.0 if given.relevance is None else new.relevance
    ttl = twin.ttl if isinstance(given.ttl, Unset) else new.ttl
    changes = {
        "relevance": relevance,
        "base_relevance": relevance,
        "ttl": ttl,
        "expires_at": expiry(new.created_at, ttl),
        "updated_at": new.created_at,
        **revival(twin, new, given),
    }
    if new.trust is Trust.TRUSTED and (twin.trust is Trust.UNTRUSTED or twin.is_quarantined):
        return changes | _in_its_place(twin, new)
    return changes | {
        "confidence": max(twin.confidence, new.confidence),
        "tags": list(dict.fromkeys([*twin.tags, *new.tags])),
        "metadata": {**twin.metadata, **new.metadata, "confirmations": _counted(twin)},
    }


def revival(twin: MemoryEntry, new: MemoryEntry, given: MemoryInput) -> dict[str, Any]:
    """What is said anew holds again; not if its own id was given, as a repeated call does, or if it is outranked."""
    if given.id is not None or twin.is_current(new.created_at) or outranked(twin, new):
        return {}
    return {"superseded_by": None, "valid_until": new.valid_until}


def promotion(entry: MemoryEntry, now: datetime) -> dict[str, Any]:
    """The record of a memory that becomes trusted, for its metadata."""
    return {PROMOTED: {"at": now.isoformat(), "source": entry.source}}


async def lowered(runtime: Runtime, entries: Iterable[MemoryEntry]) -> dict[str, MemoryEntry]:
    """The trusted ones among the entries that were made from untrusted memories, untrusted, by their ids.

    Of `derived_from` count the ids of memories that their owner sees, and of the entries themselves.
    """
    batch = {entry.id: entry for entry in entries}
    changed: dict[str, MemoryEntry] = {}
    open_ones = [entry for entry in batch.values() if entry.derived_from and entry.trust is Trust.TRUSTED]
    is_settled = False
    while not is_settled:
        is_settled = True
        for entry in open_ones:
            if entry.id not in changed and await _rests_on_untrusted(runtime, entry, {**batch, **changed}):
                changed[entry.id] = entry.replace(trust=Trust.UNTRUSTED)
                is_settled = False
    return changed


async def _rests_on_untrusted(runtime: Runtime, entry: MemoryEntry, batch: Mapping[str, MemoryEntry]) -> bool:
    scope = Scope(entry.tenant, entry.owner, include_shared=True)
    for id in dict.fromkeys(entry.derived_from):
        origin = batch.get(id)
        for store in runtime.stores() if origin is None else ():
            origin = origin or await store.get(scope, id)
        if origin is not None and (origin.trust is Trust.UNTRUSTED or origin.is_quarantined):
            return True
    return False


def _in_its_place(twin: MemoryEntry, new: MemoryEntry) -> dict[str, Any]:
    links = {key: twin.metadata[key] for key in (SUPERSEDES, SUPERSEDED) if key in twin.metadata}
    return {
        "confidence": new.confidence,
        "tags": new.tags,
        "metadata": {**links, **new.metadata, "confirmations": 1, **promotion(twin, new.created_at)},
        "trust": Trust.TRUSTED,
        "source": new.source,
        "derived_from": new.derived_from,
        "occurred_at": new.occurred_at,
    }


def _counted(twin: MemoryEntry) -> int:
    confirmations = twin.metadata.get("confirmations", 0)
    is_count = isinstance(confirmations, int) and 0 <= confirmations < INT64[-1]
    return confirmations + 1 if is_count else 1
