"""A row of version 1 as a memory: columns by their usual names, whatever else there is as metadata."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.text import check_name, clean, is_blank
from lamina.domain.validation import MAX_TAGS, check_entry, check_instant, clean_metadata
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.inputs import EntryDefaults
from lamina.ports.earlier_store import Row

__all__ = ["earlier_entry"]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "memory_id", "uuid"),
    "content": ("content", "text", "memory", "body"),
    "layer": ("layer", "type", "memory_type", "kind"),
    "tags": ("tags",),
    "owner": ("owner", "owner_id", "user_id", "user"),
    "namespace": ("namespace",),
    "metadata": ("metadata", "meta"),
    "created_at": ("created_at", "createdat", "created", "timestamp"),
    "updated_at": ("updated_at", "updatedat", "updated"),
    "last_accessed_at": ("last_accessed_at", "lastaccessedat", "last_accessed"),
    "expires_at": ("expires_at", "expiresat"),
    "relevance": ("relevance", "importance"),
    "confidence": ("confidence",),
    "access_count": ("access_count", "accesscount"),
    "source": ("source",),
}
"""Under which names a field may stand; the first that is there counts, and the others go to the metadata."""

_LAYERS: Final = {
    "working": Layer.WORKING,
    "workingmemory": Layer.WORKING,
    "session": Layer.SESSION,
    "shortterm": Layer.SESSION,
    "longterm": Layer.LONGTERM,
    "organizational": Layer.ORGANIZATIONAL,
    "organization": Layer.ORGANIZATIONAL,
    "org": Layer.ORGANIZATIONAL,
    "team": Layer.ORGANIZATIONAL,
    "global": Layer.GLOBAL,
}

_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""Above what a number of time since 1970 counts nano-, micro- or milliseconds, and how many make a second."""
_MOST_ACCESSES: Final = 2**31


def earlier_entry(row: Row, table: str, defaults: EntryDefaults, now: datetime) -> MemoryEntry:
    """The memory that the row tells of, checked, and marked as coming from the table.

    A row without an id gets one made from what it says. What a column holds that does not fit its field (a
    layer that there is not, a relevance above 1, a time that is none) goes to the metadata, as columns do
    that are not known; bytes are left out, and so are vectors, which are another model's.

    Raises:
        InvalidInput: the content, the id, the owner or the namespace cannot be stored.
        InvalidType: the content is missing or no text, or one of those is neither text nor a number.
    """
    fields = _Fields(row)
    content = fields.take("content")
    if not isinstance(content, str):
        raise InvalidType("content", "is no text" if content is not None else "is missing", "It cannot be taken over.")
    content = clean(content)
    owner = fields.name("owner") or defaults.owner
    namespace = fields.name("namespace") or defaults.namespace
    layer = fields.read("layer", _layer) or Layer.LONGTERM
    created = fields.read("created_at", _instant) or now
    relevance = fields.read("relevance", _share)
    relevance = defaults.relevance if relevance is None else relevance
    confidence = fields.read("confidence", _share)
    expires = fields.read("expires_at", _instant)
    entry = MemoryEntry(
        id=fields.name("id") or _made_id(owner, namespace, layer, content),
        content=content,
        created_at=created,
        updated_at=max(created, fields.read("updated_at", _instant) or created),
        layer=layer,
        tenant=defaults.tenant,
        owner=owner,
        namespace=namespace,
        tags=fields.read("tags", _tags) or [],
        relevance=relevance,
        base_relevance=relevance,
        confidence=1.0 if confidence is None else confidence,
        expires_at=expires,
        last_accessed_at=fields.read("last_accessed_at", _instant),
        access_count=fields.read("access_count", _count) or 0,
        source=f"v1:{table}",
    )
    entry.metadata = fields.rest()
    check_entry(entry)
    return entry


class _Fields:
    """The columns of one row, by field; what was not taken is the rest."""

    def __init__(self, row: Row) -> None:
        self._row = {str(name): value for name, value in row.items() if value is not None}
        self._named = {name.lower(): name for name in self._row}

    def take(self, field: str) -> Any:
        """The value of the first column of the field that is there; it is no longer part of the rest."""
        for name in _COLUMNS[field]:
            if name in self._named:
                return self._row.pop(self._named.pop(name))
        return None

    def read(self, field: str, convert: Callable[[Any], Any]) -> Any:
        """The field's value, converted; None, and the value left in the rest, if it does not fit."""
        for name in _COLUMNS[field]:
            if name in self._named:
                value = convert(self._row[self._named[name]])
                if value is not None:
                    del self._row[self._named.pop(name)]
                return value
        return None

    def name(self, field: str) -> str | None:
        """The field's name; None if nothing is said. One that cannot be is refused: it must not become another's."""
        value = self.take(field)
        if value is None or (isinstance(value, str) and is_blank(value)):
            return None
        if not isinstance(value, str | int):
            raise InvalidType(field, f"must be text, not {type(value).__name__}", "It cannot be taken over.")
        return check_name(field, clean(str(value)))

    def rest(self) -> dict[str, Any]:
        """The metadata: what its column holds, and beside it every other column that is left."""
        given = self.read("metadata", _object) or {}
        left = {name: value for name, value in self._row.items() if not isinstance(value, bytes)}
        left = {name: value for name, value in left.items() if not name.lower().startswith(("embedding", "vector"))}
        metadata = clean_metadata({**{key: _json_value(value) for key, value in left.items()}, **given})
        return metadata if isinstance(metadata, dict) else {}


def _made_id(*said: str) -> str:
    return f"v1_{hashlib.sha256(chr(0).join(said).encode()).hexdigest()[:32]}"


def _name(value: Any) -> str | None:
    """The text or whole number as a name; None if it is another thing, or cannot be one."""
    try:
        return check_name("name", clean(str(value))) if isinstance(value, str | int) else None
    except InvalidInput:
        return None


def _layer(value: Any) -> Layer | None:
    if not isinstance(value, str):
        return None
    return _LAYERS.get("".join(char for char in value.lower() if char.isalpha()))


def _share(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _count(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 <= number <= _MOST_ACCESSES else None


def _tags(value: Any) -> list[str] | None:
    """A JSON list, or names between commas."""
    if not isinstance(value, str):
        return None
    parsed = _parsed(value)
    listed = parsed if isinstance(parsed, list) else value.split(",")
    names = [name for each in listed if (name := _name(each)) is not None]
    return list(dict.fromkeys(names))[:MAX_TAGS]


def _object(value: Any) -> dict[str, Any] | None:
    parsed = _parsed(value) if isinstance(value, str) else None
    return {key: _json_value(each) for key, each in parsed.items()} if isinstance(parsed, dict) else None


def _instant(value: Any) -> datetime | None:
    """ISO text, without a zone in UTC; or time since 1970 in seconds, or in finer units if it is that large."""
    number = _number(value)
    try:
        if number is not None:
            for above, per_second in _UNITS:
                if abs(number) >= above:
                    number /= per_second
                    break
            return datetime.fromtimestamp(0, UTC) + timedelta(seconds=number)
        if not isinstance(value, str):
            return None
        read = datetime.fromisoformat(value.strip())
        return check_instant("created_at", read if read.tzinfo else read.replace(tzinfo=UTC))
    except (ValueError, OverflowError, InvalidInput):
        return None


def _number(value: Any) -> float | None:
    """The number, also one that is written out; no bool, and nothing that is not finite."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_value(value: Any) -> Any:
    """What metadata can carry; numbers that JSON has not become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value
