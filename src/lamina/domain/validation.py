"""What can be stored, checked before anything is written.

`check_entry` is the rule of the storage port: every adapter calls it first in `store`, so that
an entry that one backend takes is taken, and comes back the same, on every other.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from lamina.domain.filters import INT64
from lamina.domain.memory import Layer, MemoryEntry, Trust, Vector
from lamina.domain.text import check_name, clean, is_blank, is_clean
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "MAX_CONTENT_BYTES",
    "MAX_COUNT",
    "MAX_METADATA_BYTES",
    "MAX_METADATA_DEPTH",
    "MAX_TAGS",
    "MIN_TTL",
    "check_entry",
    "check_instant",
    "check_metadata",
    "check_ttl",
    "check_unit_interval",
    "check_vector",
    "check_whole_number",
    "clean_metadata",
]

MAX_CONTENT_BYTES: Final = 4 * 1024 * 1024
MAX_METADATA_BYTES: Final = 256 * 1024
MAX_METADATA_DEPTH: Final = 32
MAX_TAGS: Final = 256
MAX_COUNT: Final = 2**53
"""The greatest `access_count` and `revision`: far beyond use, and with room to count on in 64 bits."""

MIN_TTL: Final = 0.001
"""The shortest time to live, in seconds."""

_FLOAT32_MAX: Final = (2 - 2**-23) * 2.0**127
_REMEDY = "Use text, whole numbers of 64 bits, finite numbers, bool, None, lists and dicts with text keys."


def check_entry(entry: MemoryEntry) -> None:
    """Refuse an entry that could not be stored, or would come back changed.

    Raises:
        InvalidInput: a field has a value that cannot be stored.
        InvalidType: a field has a type that cannot be stored.
    """
    check_name("id", entry.id)
    check_name("tenant", entry.tenant)
    check_name("owner", entry.owner)
    check_name("namespace", entry.namespace)
    _check_content(entry.content)
    _check_tags(entry.tags)
    check_metadata(entry.metadata)
    check_unit_interval("relevance", entry.relevance)
    check_unit_interval("base_relevance", entry.base_relevance)
    check_unit_interval("confidence", entry.confidence)
    _check_kind("layer", entry.layer, Layer)
    _check_kind("trust", entry.trust, Trust)
    check_ttl(entry.ttl)
    check_instant("created_at", entry.created_at)
    check_instant("updated_at", entry.updated_at)
    for name in ("expires_at", "last_accessed_at", "occurred_at", "valid_until"):
        if getattr(entry, name) is not None:
            check_instant(name, getattr(entry, name))
    if entry.embedding is not None:
        check_vector(entry.embedding)
    for name in ("superseded_by", "source"):
        _check_text(name, getattr(entry, name))
    if not isinstance(entry.derived_from, list):
        remedy = "Give a list of ids."
        raise InvalidType("derived_from", f"must be a list, not {type(entry.derived_from).__name__}", remedy)
    for each in entry.derived_from:
        check_name("derived_from", each)
    _check_count("access_count", entry.access_count, 0)
    _check_count("revision", entry.revision, 1)


def check_unit_interval(field: str, value: object) -> float:
    """The number, if it lies in [0, 1]; a bool or NaN does not."""
    if type(value) is float and 0 <= value <= 1:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidType(field, f"must be a number, not {type(value).__name__}", "Give a number from 0 to 1.")
    if not 0 <= value <= 1:  # NaN fails this too
        raise InvalidInput(field, f"must be from 0 to 1, not {value}", "Give a number in that range.")
    return float(value)


def check_whole_number(field: str, value: object, least: int, greatest: int) -> int:
    """The whole number, if it lies in that range; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        problem = f"must be a whole number from {least} to {greatest}, not {value!r:.50}"
        raise InvalidInput(field, problem, "Give such a number.")
    return value


def check_ttl(ttl: object) -> float | None:
    """A time to live in seconds: `None`, a number or a `timedelta`, of a millisecond at least."""
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        remedy = "Give seconds, a timedelta, or None for never."
        raise InvalidType("ttl", f"must be seconds, not {type(ttl).__name__}", remedy)
    if not MIN_TTL <= seconds <= 1e10:  # noqa: PLR2004 - about 300 years; NaN fails this too
        remedy = "Give None for never."
        raise InvalidInput("ttl", f"must be at least {MIN_TTL} and at most 1e10 seconds, not {seconds}", remedy)
    return float(seconds)


def check_instant(field: str, value: object) -> datetime:
    """The instant in UTC; a naive datetime is refused here (callers' edges read it as UTC)."""
    if not isinstance(value, datetime):
        raise InvalidType(field, f"must be a datetime, not {type(value).__name__}", "Give a timezone-aware datetime.")
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        raise InvalidInput(field, "has no time zone", "Give a timezone-aware datetime, such as datetime.now(UTC).")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, f"{value} lies outside the years 1 to 9999 in UTC", "Give another instant.") from None


def check_vector(vector: Vector) -> None:
    """Refuse a vector that is empty or holds something that is not a number of 32-bit floating point."""
    try:
        if len(vector) == 0:
            raise InvalidInput("embedding", "has no dimensions", "Give at least one number, or None.")
        if isinstance(vector, array) and vector.typecode == "f" and _are_finite(vector):
            return
        if all(-_FLOAT32_MAX <= each <= _FLOAT32_MAX for each in vector):  # NaN fails this too
            return
    except TypeError:
        raise InvalidType("embedding", "is not a sequence of numbers", "Give a list of float.") from None
    raise InvalidInput("embedding", "holds NaN, infinity or what 32 bits cannot carry", "Give finite numbers.")


def _are_finite(numbers: array[float]) -> bool:
    import numpy as np  # here, because numpy takes longer to import than all of this package

    return bool(np.isfinite(np.frombuffer(numbers, np.float32)).all())


def check_metadata(metadata: object) -> None:
    """Refuse metadata that JSON cannot carry unchanged to every backend and back."""
    if not isinstance(metadata, dict):
        raise InvalidType("metadata", f"must be a dict, not {type(metadata).__name__}", "Give a dict with text keys.")
    if not metadata:
        return
    _check_json("metadata", metadata, MAX_METADATA_DEPTH)
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > MAX_METADATA_BYTES:
        raise InvalidInput("metadata", f"has {size} bytes as JSON", f"Use at most {MAX_METADATA_BYTES}.")


def clean_metadata(value: Any, depth: int = MAX_METADATA_DEPTH) -> Any:
    """The value with every text cleaned, and tuples as lists; what is no JSON is left for `check_metadata`.

    Raises:
        InvalidInput: two keys of one object would become the same.
    """
    if isinstance(value, str):
        return clean(value)
    if depth and isinstance(value, Mapping):
        cleaned = {clean(k) if isinstance(k, str) else k: clean_metadata(v, depth - 1) for k, v in value.items()}
        if len(cleaned) < len(value):
            problem = "two keys differ only in characters that cannot be stored"
            raise InvalidInput("metadata", problem, "Rename one: NUL and lone surrogates become U+FFFD.")
        return cleaned
    if depth and isinstance(value, list | tuple):
        return [clean_metadata(each, depth - 1) for each in value]
    return value


def _check_content(content: object) -> None:
    if not isinstance(content, str):
        raise InvalidType("content", f"must be text, not {type(content).__name__}", "Give a str.")
    if is_blank(content):
        raise InvalidInput("content", "is blank", "Give at least one visible character.")
    if not is_clean(content):
        raise InvalidInput("content", "holds a NUL or a lone surrogate", "Pass it through `lamina.clean` first.")
    size = len(content) if content.isascii() else len(content.encode())
    if size > MAX_CONTENT_BYTES:
        remedy = f"Use at most {MAX_CONTENT_BYTES}, or ingest it as a document."
        raise InvalidInput("content", f"has {size} bytes", remedy)


def _check_tags(tags: object) -> None:
    if not isinstance(tags, list):
        raise InvalidType("tags", f"must be a list of text, not {type(tags).__name__}", "Give a list of str.")
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags", f"has {len(tags)} tags", f"Use at most {MAX_TAGS}.")
    for tag in tags:
        check_name("tags", tag)


def _check_text(field: str, value: object) -> None:
    if value is not None:
        check_name(field, value)


def _check_count(field: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(field, f"must be a whole number, not {type(value).__name__}", "Give an int.")
    if not least <= value <= MAX_COUNT:
        raise InvalidInput(field, f"must be from {least} to {MAX_COUNT}, not {value}", "Give such a number.")


def _check_kind(field: str, value: object, kind: type[StrEnum]) -> None:
    if not isinstance(value, kind):
        known = ", ".join(kind)
        raise InvalidInput(field, f"{value!r} is unknown", f"Use one of: {known}.")


def _check_json(where: str, value: object, depth: int) -> None:
    if depth < 0:
        raise InvalidInput("metadata", f"is nested deeper than {MAX_METADATA_DEPTH} levels", "Flatten it.")
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str) or not is_clean(key):
                raise InvalidInput("metadata", f"{where} has the key {key!r}", _REMEDY)
            _check_json(f"{where}.{key}", each, depth - 1)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _check_json(f"{where}[{index}]", each, depth - 1)
    else:
        _check_json_scalar(where, value)


def _check_json_scalar(where: str, value: object) -> None:
    if isinstance(value, str):
        if not is_clean(value):
            raise InvalidInput("metadata", f"{where} holds a NUL or a lone surrogate", "Remove it.")
    elif isinstance(value, int):
        if value not in INT64:
            raise InvalidInput("metadata", f"{where} is a whole number outside 64 bits", "Store it as text.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput("metadata", f"{where} is {value}, which JSON cannot carry", "Use None or text.")
    elif value is not None:
        raise InvalidInput("metadata", f"{where} is a {type(value).__name__}, which JSON cannot carry", _REMEDY)
