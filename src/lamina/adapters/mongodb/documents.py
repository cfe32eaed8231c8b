"""Entries as documents: what MongoDB indexes and compares, beside the exact text of the whole.

The `_id` is a digest of tenant and id together: short, of one length, and another one for each pair.
Counts of reading lie outside the text, so that counting is one atomic `$inc` that no other write undoes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from bson import ObjectId
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry, unpack
from lamina.adapters._shared.leaves import leaf_tokens, presence_token
from lamina.adapters._shared.records import Stored
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.mongodb.failures import damaged
from lamina.domain.instants import from_micros, to_micros
from lamina.domain.memory import MemoryEntry

__all__ = ["NEVER", "WHOLE", "WITHOUT_VECTOR", "Mark", "changed_fields", "entry_of", "id_of", "past_of"]
__all__ += ["past_entry", "removal_date", "stored_of", "word_key", "words_of"]

NEVER: Final = 2**63 - 1
"""`ends` of what does not expire: so that every live document has `ends` greater than now."""

WITHOUT_VECTOR: Final = {"entry": 1, "reads": 1, "read_at": 1}
WHOLE: Final = {**WITHOUT_VECTOR, "vector": 1, "mark": 1, "kept": 1}

_LONGEST_WORD: Final = 64
_LAST_MILLISECOND: Final = 253_402_300_799_999


class Mark(NamedTuple):
    """The version of a stored document, and how many former versions it has."""

    mark: ObjectId
    kept: int


def id_of(*parts: str | int) -> Binary:
    """The `_id` of what these parts identify: a tenant and an id or a key, and for a former version its number too."""
    return Binary(hashlib.sha256(json.dumps(parts).encode()).digest())


def words_of(content: str) -> list[str]:
    """What is indexed of a text, as `words`."""
    return [word_key(word) for word in distinct_terms(content)]


def changed_fields(entry: MemoryEntry, old: MemoryEntry | None) -> dict[str, Any]:
    """The fields to set, those that are derived from nothing new left out."""
    fields: dict[str, Any] = {
        "entry": text_of_entry(entry.replace(access_count=0, last_accessed_at=None)),
        "layer": entry.layer.value,
        "tags": list(dict.fromkeys(entry.tags)),
        "relevance": float(entry.relevance),
        "confidence": float(entry.confidence),
        "created": to_micros(entry.created_at),
        "updated": to_micros(entry.updated_at),
        "ends": NEVER if entry.expires_at is None else to_micros(entry.expires_at),
        "holds": _micros(entry.current_until),
        "expires_on": removal_date(entry),
        "owner": entry.owner,
        "namespace": entry.namespace,
    }
    if old is None:
        fields |= {"tenant": entry.tenant, "id": entry.id}
    if old is None or entry.seq != old.seq:  # what had expired makes way for a new one
        fields["seq"] = entry.seq
    if old is None or (entry.access_count, entry.last_accessed_at) != (old.access_count, old.last_accessed_at):
        fields |= {"reads": entry.access_count, "read_at": _micros(entry.last_accessed_at)}
    if old is None or entry.content != old.content:
        fields |= {"words": words_of(entry.content), "digest": entry.digest}
    if old is None or repr(entry.metadata) != repr(old.metadata):  # to which 1 and True are not the same
        fields |= {"tokens": leaf_tokens(entry.metadata), "leaves": list(_leaves((), entry.metadata))}
    if old is None or entry.embedding is not old.embedding:
        fields |= _vector_fields(entry)
    return fields


def removal_date(entry: MemoryEntry) -> DatetimeMS | None:
    """When the TTL index may remove it: whole milliseconds, so rounded up, not to come before its instant.

    Not beyond the year 9999, at which many a client's calendar ends.
    """
    if entry.expires_at is None:
        return None
    return DatetimeMS(min(-(-to_micros(entry.expires_at) // 1_000), _LAST_MILLISECOND))


def word_key(word: str) -> str:
    """The word as it is indexed: a very long one as its digest, which no word looks like."""
    data = word.encode()
    return word if len(data) <= _LONGEST_WORD else f"#{hashlib.blake2b(data, digest_size=16).hexdigest()}"


def entry_of(document: Mapping[str, Any]) -> MemoryEntry:
    """The entry of a document that was read with `WHOLE`, or `WITHOUT_VECTOR`.

    Raises:
        StoreDamaged: it is none of ours.
    """
    try:
        entry = entry_of_text(document["entry"], document.get("vector"))
        read_at = document["read_at"]
        accessed = None if read_at is None else from_micros(read_at)
        return entry.replace(access_count=int(document["reads"]), last_accessed_at=accessed)
    except UNREADABLE:
        raise damaged("a document cannot be read as a memory") from None


def stored_of(document: Mapping[str, Any]) -> Stored:
    """What was read with `WHOLE`, as the write rules want it."""
    entry = entry_of(document)
    try:
        return Stored(entry, Mark(document["mark"], int(document["kept"])))
    except (ValueError, TypeError, KeyError):
        raise damaged("a document has no mark of its version") from None


def past_of(entry: MemoryEntry, expires_on: DatetimeMS | None) -> dict[str, Any]:
    """A former version, for the history: the same one always gets the same `_id`."""
    return {
        "_id": id_of(entry.tenant, entry.id, entry.seq, entry.revision),
        "of": id_of(entry.tenant, entry.id),
        "seq": entry.seq,
        "revision": entry.revision,
        "entry": text_of_entry(entry),
        "expires_on": expires_on,
    }


def past_entry(document: Mapping[str, Any]) -> MemoryEntry:
    """The former version that was kept."""
    try:
        return entry_of_text(document["entry"])
    except UNREADABLE:
        raise damaged("a document of the history cannot be read as a memory") from None


def _vector_fields(entry: MemoryEntry) -> dict[str, Any]:
    vector = entry.embedding
    if vector is None:
        return {"dims": None, "near": None, "vector": None}
    packed = pack(vector)
    kept = unpack(packed)  # the server compares what 32 bits keep, which is what comes back
    return {"dims": len(kept), "near": direction(kept) or [0.0] * len(kept), "vector": Binary(packed)}


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[dict[str, Any]]:
    """Each number and text at a path, for what compares by order or looks for a part of a text."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves((*path, key), each)
    elif isinstance(value, str):
        yield {"p": presence_token(path), "s": value}
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield {"p": presence_token(path), "n": value}


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)
