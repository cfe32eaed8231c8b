"""One memory as one line of JSON, and back.

A line of ours begins with the key `lamina`, which holds the format's number, and carries every field of
the memory but its tenant (it becomes the importing engine's) and its place in the order (the order of the
lines). Keys stand in a fixed order and times in UTC with microseconds, so equal memories are equal bytes.
Any other line is a new memory: `content` (or `memory`, or `text`) and, if it likes, other fields.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lamina.domain.memory import DEFAULT_NAME, Layer, MemoryEntry, Trust, Vector
from lamina.domain.text import content_digest
from lamina.domain.validation import check_entry, check_instant
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.inputs import EntryDefaults, MemoryInput, build_entry, read_input
from lamina.ports.embedder import Fingerprint

__all__ = ["ExactMemory", "NewMemory", "entry_fields", "read_line", "write_line"]

FORMAT: Final = 1
MARK: Final = "lamina"
_PLAIN: Final = "id content layer owner namespace tags metadata relevance base_relevance confidence ttl".split()
_TIMES: Final = "created_at updated_at expires_at last_accessed_at occurred_at valid_until".split()
_REST: Final = "access_count revision superseded_by source trust derived_from".split()
_FIELDS: Final = (*_PLAIN, *_TIMES, *_REST)
_REQUIRED: Final = ("id", "content", "created_at", "updated_at")
_CONTENT_KEYS: Final = ("content", "memory", "text")
_NEW_FIELDS: Final = frozenset(each.name for each in dataclasses.fields(MemoryInput))
_DEFAULTS: Final = EntryDefaults(
    tenant=DEFAULT_NAME,
    owner=DEFAULT_NAME,
    namespace=DEFAULT_NAME,
    relevance=1.0,
    layer_ttls=dict.fromkeys(Layer),
)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_ONE_OBJECT: Final = "Give one JSON object in each line."
_ALIASES: Final = {"memory": "content", "text": "content", "user_id": "owner", "userId": "owner"}


@dataclass(frozen=True, slots=True)
class ExactMemory:
    """A line of ours: the entry as it was, and which model made its vector, if it has one."""

    entry: MemoryEntry
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A line of somebody else's: a memory to store anew, under the id in `given`."""

    given: MemoryInput


def entry_fields(entry: MemoryEntry) -> dict[str, Any]:
    """The entry without its vector, as JSON can carry it, in the fixed order."""
    fields = {name: getattr(entry, name) for name in _FIELDS}
    for name in _TIMES:
        if fields[name] is not None:
            fields[name] = _instant_text(fields[name])
    return fields


def write_line(entry: MemoryEntry, fingerprint: Fingerprint | None = None) -> str:
    """The entry as a line, without its end; with its vector if a fingerprint is given and it has one."""
    fields: dict[str, Any] = {MARK: FORMAT, **entry_fields(entry)}
    if fingerprint is not None and entry.embedding is not None:
        fields["embedding"] = {
            "provider": fingerprint.provider,
            "model": fingerprint.model,
            "dimensions": fingerprint.dimensions,
            "float32": _vector_text(entry.embedding),
        }
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read_line(line: str) -> ExactMemory | NewMemory:
    """The memory that the line holds.

    Raises:
        InvalidInput: it is no JSON object, or holds no memory that could be stored.
        InvalidType: a field has a wrong type.
    """
    try:
        fields = _parsed(line)
        return _read_exact(fields) if MARK in fields else _read_new(fields)
    except RecursionError as error:  # from the parser, or from what looks into nesting that it still took
        raise InvalidInput("json", "cannot be read (it is nested too deeply)", _ONE_OBJECT) from error


def _parsed(line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidInput("json", f"cannot be read ({error.msg})", _ONE_OBJECT) from error
    except ValueError as error:  # a whole number of more digits than Python reads
        raise InvalidInput("json", "cannot be read (a number has too many digits)", _ONE_OBJECT) from error
    if not isinstance(fields, dict):
        raise InvalidInput("json", "is no object", _ONE_OBJECT)
    return fields


def _read_exact(fields: dict[str, Any]) -> ExactMemory:
    version = fields.pop(MARK)
    if version != FORMAT or isinstance(version, bool):
        raise InvalidInput(MARK, f"is {version!r}, a format that this version cannot read", "Update Lamina.")
    embedding = fields.pop("embedding", None)
    for name in _REQUIRED:
        if fields.get(name) is None:
            raise InvalidInput(name, "is missing", "A line with `lamina` in it carries the whole memory.")
    for name in fields:
        if name not in _FIELDS:
            raise InvalidInput(str(name), "is unknown", "The line was written by a newer Lamina: update.")
    for name in _TIMES:
        if fields.get(name) is not None:
            fields[name] = _instant(name, fields[name])
    entry = MemoryEntry(
        **{**fields, "layer": _member(Layer, fields, "layer"), "trust": _member(Trust, fields, "trust")}
    )
    fingerprint = None
    if embedding is not None:
        fingerprint, entry.embedding = _read_embedding(embedding)
    check_entry(entry)
    return ExactMemory(entry, fingerprint)


def _read_new(fields: dict[str, Any]) -> NewMemory:
    """What has no field of its own goes to the metadata, so that nothing is lost."""
    content = [key for key in _CONTENT_KEYS if isinstance(fields.get(key), str)]
    if not content:
        raise InvalidInput("content", "is missing", "Give the text under `content`, `memory` or `text`.")
    aliases = {**_ALIASES, content[0]: "content"}
    named: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in fields.items():
        field = aliases.get(key, _snake(key))
        if value is None and field != "ttl":
            continue
        if field in _NEW_FIELDS and field not in named and (field != "content" or key == content[0]):
            named[field] = value
        else:
            extra[key] = value
    if content[0] != "content" and "created_at" in extra and "occurred_at" not in named:
        named["occurred_at"] = extra.pop("created_at")
    if extra:
        named["metadata"] = {**extra, **_check_mapping(named.get("metadata") or {})}
    _check_list("derived_from", named.get("derived_from", []))
    if not isinstance(named.get("source", ""), str):
        raise InvalidType("source", f"must be text, not {type(named['source']).__name__}", "Give a str.")
    if isinstance(named.get("id"), int):
        named["id"] = str(named["id"])
    given = read_input(named)
    build_entry(given, _DEFAULTS, "mem_unnamed", _EPOCH)  # refuses what could not be stored
    if given.id is None:
        given.id = _derived_id(given)
    return NewMemory(given)


def _derived_id(given: MemoryInput) -> str:
    """The same id for the same memory, so that importing twice stores once."""
    parts = (given.owner or "", given.namespace or "", str(given.layer or ""), given.content)
    return f"mem_{content_digest(json.dumps(parts))[:32]}"


def _snake(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _instant_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _instant(field: str, text: object) -> datetime:
    try:
        value = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or value.tzinfo is None:
        raise InvalidInput(
            field, f"{text!r} is no instant with a time zone", "Give ISO 8601, such as 2026-03-01T09:00Z."
        )
    return check_instant(field, value)


def _vector_text(vector: Vector) -> str:
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode("ascii")


def _read_embedding(fields: object) -> tuple[Fingerprint, Vector]:
    problem = "is no vector with the model that made it"
    remedy = "Export it again with embeddings, or leave the key out."
    if not isinstance(fields, Mapping):
        raise InvalidInput("embedding", problem, remedy)
    provider, model, dimensions = (fields.get(key) for key in ("provider", "model", "dimensions"))
    try:
        data = base64.b64decode(fields.get("float32", ""), validate=True)
        vector = array("f", data)
    except (TypeError, ValueError) as error:
        raise InvalidInput("embedding", problem, remedy) from error
    if sys.byteorder == "big":
        vector.byteswap()
    if not (isinstance(provider, str) and isinstance(model, str) and len(vector) == dimensions):
        raise InvalidInput("embedding", problem, remedy)
    return Fingerprint(provider, model, len(vector)), vector


def _member(kind: type[Layer | Trust], fields: Mapping[str, Any], name: str) -> Any:
    default = Layer.LONGTERM if kind is Layer else Trust.TRUSTED
    try:
        return kind(fields.get(name, default))
    except ValueError:
        raise InvalidInput(name, f"{fields[name]!r} is unknown", f"Use one of: {', '.join(kind)}.") from None


def _check_list(name: str, value: object) -> None:
    if not isinstance(value, list):
        raise InvalidType(name, f"must be a list of text, not {type(value).__name__}", "Give a list.")


def _check_mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidType("metadata", f"must be an object, not {type(value).__name__}", "Give a JSON object.")
    return value


def _refuse_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)
