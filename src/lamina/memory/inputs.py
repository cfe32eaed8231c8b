"""Callers' arguments become entries, filters and scopes: read, cleaned and checked in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypedDict

from lamina.domain.filters import And, Compare, Filter, MemoryFilter, Not, Or, Where
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Trust, Unset
from lamina.domain.recall import SearchMode
from lamina.domain.text import clean, snake_case
from lamina.domain.validation import check_entry, check_instant, check_ttl, check_unit_interval, clean_metadata
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "EntryDefaults",
    "Filters",
    "MemoryInput",
    "Relations",
    "build_entry",
    "expiry",
    "has_condition",
    "read_age",
    "read_cutoff",
    "read_filter",
    "read_input",
    "read_instant",
    "read_layer",
    "read_mode",
    "read_query",
    "read_reason",
    "read_superseded",
    "read_tags",
    "read_texts",
    "read_trust",
]


@dataclass(slots=True, kw_only=True)
class MemoryInput:
    """What a caller says about a memory to store; what is left out takes the engine's defaults.

    `ttl` in seconds counts from now; None means never; left out, the layer's default holds. `supersedes`
    are the ids of those in whose place it holds, and `supersede_reason` says why: it is kept with them.
    """

    content: str
    layer: Layer | str | None = None
    owner: str | None = None
    namespace: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    relevance: float | None = None
    confidence: float | None = None
    ttl: float | timedelta | Unset | None = UNSET
    id: str | None = None
    occurred_at: datetime | str | None = None
    valid_until: datetime | str | None = None
    source: str | None = None
    trust: Trust | str | None = None
    derived_from: Sequence[str] = ()
    supersedes: Sequence[str] = ()
    supersede_reason: str | None = None


_FIELDS: Final = tuple(each.name for each in dataclasses.fields(MemoryInput))


class Relations(TypedDict, total=False):
    """What a memory to store has to do with others.

    `derived_from` are the ids of memories or messages that it was made from, `supersedes` those of the memories in
    whose place it holds, and `supersede_reason` says why.
    """

    derived_from: Sequence[str]
    supersedes: Sequence[str]
    supersede_reason: str | None


class Filters(TypedDict, total=False):
    """Which memories a call is about; all conditions must hold.

    `layer` and `layers` are the same filter, and so are `owner` and `owner_id`. `tags` must all be
    there, `tags_any` at least one. `where` is a filter on metadata, or a mapping for `Where.parse`.
    `include_superseded` says whether memories count that are superseded, or whose `valid_until` has
    passed: left out, they do where memories are listed and counted, and do not where they are searched.
    """

    layer: Layer | str | None
    layers: Iterable[Layer | str] | None
    owner: str | None
    owner_id: str | None
    namespace: str | None
    tags: Iterable[str]
    tags_any: Iterable[str]
    where: Filter | Mapping[str, Any] | None
    min_relevance: float | None
    min_confidence: float | None
    include_superseded: bool | None


def read_input(item: object) -> MemoryInput:
    """The item as a `MemoryInput`; a mapping may have camelCase keys, and unknown keys are refused."""
    if isinstance(item, MemoryInput):
        return item
    if isinstance(item, str):
        return MemoryInput(content=item)
    if not isinstance(item, Mapping):
        raise InvalidType(
            "content", f"must be text, not {type(item).__name__}", "Give a str, a mapping or a MemoryInput."
        )
    named = {snake_case(key) if isinstance(key, str) else key: value for key, value in item.items()}
    if "content" not in named:
        raise InvalidInput("content", "is missing", "Give the text to remember under the key 'content'.")
    for key in named:
        if key not in _FIELDS:
            raise InvalidInput(str(key), "is not a field of a memory", f"Use: {', '.join(_FIELDS)}.")
    return MemoryInput(**named)


def read_layer(layer: Layer | str) -> Layer:
    """The layer of this name."""
    try:
        return Layer(layer)
    except ValueError:
        raise InvalidInput("layer", f"{layer!r} is unknown", f"Use one of: {', '.join(Layer)}.") from None


def read_trust(trust: Trust | str) -> Trust:
    """The trust of this name."""
    try:
        return Trust(trust)
    except ValueError:
        raise InvalidInput("trust", f"{trust!r} is unknown", f"Use one of: {', '.join(Trust)}.") from None


def read_texts(field: str, texts: Iterable[str]) -> list[str]:
    """The texts, as they are; a single one is refused, for it would be taken apart into characters."""
    if type(texts) is tuple and not texts:  # as where nothing was given
        return []
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InvalidType(field, "must be a list of text", f"Give {field}=['...'].")
    read = list(texts)
    for text in read:
        if not isinstance(text, str):
            raise InvalidType(field, f"must hold text, not {type(text).__name__}", "Give each as a str.")
    return read


def read_reason(field: str, reason: object) -> str | None:
    """A text that says why, cleaned, or None."""
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise InvalidType(field, f"must be text, not {type(reason).__name__}", "Give a str.")
    if not reason.strip():
        raise InvalidInput(field, "is blank", "Say why, or leave it out.")
    return clean(reason)


def read_superseded(ids: Iterable[str], reason: str | None) -> tuple[list[str], str | None]:
    """The ids that a memory supersedes, each once, and why."""
    read = list(dict.fromkeys(read_texts("supersedes", ids)))
    if reason is not None and not read:
        raise InvalidInput("supersede_reason", "goes with supersedes", "Name what is superseded, or leave it out.")
    return read, read_reason("supersede_reason", reason)


def read_tags(field: str, tags: Iterable[str]) -> list[str]:
    """The tags, cleaned, each once, in order."""
    return list(dict.fromkeys(map(clean, read_texts(field, tags))))


def read_instant(field: str, value: object) -> datetime | None:
    """An instant in UTC from a datetime or ISO 8601 text; one without a zone is taken as UTC."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(
                field, f"{value!r} is no date or time", "Give ISO 8601, such as 2026-03-01T09:00Z."
            ) from None
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return check_instant(field, value)


def read_cutoff(field: str, value: object, now: datetime) -> datetime | None:
    """An instant from a datetime, ISO text, or an age before now."""
    if isinstance(value, timedelta):
        try:
            return now - value
        except OverflowError:
            raise InvalidInput(field, f"{value} reaches outside the years 1 to 9999", "Give a smaller age.") from None
    return read_instant(field, value)


def read_filter(
    now: datetime,
    *,
    layer: Layer | str | None = None,
    layers: Iterable[Layer | str] | None = None,
    tags: Iterable[str] = (),
    tags_any: Iterable[str] = (),
    where: Filter | Mapping[str, Any] | None = None,
    min_relevance: float | None = None,
    min_confidence: float | None = None,
    include_superseded: bool | None = None,
    created_before: datetime | None = None,
) -> MemoryFilter:
    """The filter that these arguments describe, over the memories that are live now."""
    if include_superseded is not None and not isinstance(include_superseded, bool):
        problem = f"must be True or False, not {type(include_superseded).__name__}"
        raise InvalidType("include_superseded", problem, "Give a bool.")
    if isinstance(layers, str) or not (layers is None or isinstance(layers, Iterable)):
        raise InvalidType("layers", "must be a list of layers", f"Give layers=[{layers!r}].")
    named = None if layers is None else {read_layer(each) for each in layers}
    if layer is not None:
        named = {read_layer(layer)} if named is None else named & {read_layer(layer)}
    return MemoryFilter(
        now=now,
        current=include_superseded is False,
        layers=None if named is None else frozenset(named),
        tags=tuple(read_tags("tags", tags)),
        tags_any=tuple(read_tags("tags_any", tags_any)),
        where=None if where is None else Where.parse(where),
        min_relevance=None if min_relevance is None else check_unit_interval("min_relevance", min_relevance),
        min_confidence=None if min_confidence is None else check_unit_interval("min_confidence", min_confidence),
        created_before=created_before,
    )


def has_condition(filter: MemoryFilter) -> bool:
    """Whether the filter restricts anything beside expiry: an `And` of nothing, say, does not."""
    conditions = (filter.layers, filter.tags, filter.tags_any, filter.created_before, filter.updated_before)
    minima = (filter.min_relevance, filter.min_confidence, filter.has_embedding)
    if filter.current or any(conditions) or any(each is not None for each in minima):
        return True
    return filter.where is not None and not _is_always(filter.where, truth=True)


def _is_always(filter: Filter, *, truth: bool) -> bool:
    """Whether the filter has this truth whatever the metadata."""
    match filter:
        case Compare():
            return False
        case Not():
            return _is_always(filter.part, truth=not truth)
        case And():
            return (all if truth else any)(_is_always(part, truth=truth) for part in filter.parts)
        case Or():
            return (any if truth else all)(_is_always(part, truth=truth) for part in filter.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDefaults:
    """What an entry gets where its input says nothing."""

    tenant: str
    owner: str
    namespace: str
    relevance: float
    layer_ttls: Mapping[Layer, float | None]


def build_entry(given: MemoryInput, defaults: EntryDefaults, id: str, now: datetime) -> MemoryEntry:
    """The checked entry that this input describes.

    Raises:
        InvalidInput: a field has a value that cannot be stored.
        InvalidType: a field has a type that cannot be stored.
    """
    if not isinstance(given.content, str):
        raise InvalidType("content", f"must be text, not {type(given.content).__name__}", "Give a str.")
    layer = Layer.LONGTERM if given.layer is None else read_layer(given.layer)
    ttl = defaults.layer_ttls[layer] if isinstance(given.ttl, Unset) else check_ttl(given.ttl)
    relevance = defaults.relevance if given.relevance is None else check_unit_interval("relevance", given.relevance)
    entry = MemoryEntry(
        id=id if given.id is None else given.id,
        content=clean(given.content),
        created_at=now,
        updated_at=now,
        layer=layer,
        tenant=defaults.tenant,
        owner=defaults.owner if given.owner is None else given.owner,
        namespace=defaults.namespace if given.namespace is None else given.namespace,
        tags=read_tags("tags", given.tags),
        metadata={} if given.metadata is None else clean_metadata(given.metadata),
        relevance=relevance,
        base_relevance=relevance,
        confidence=1.0 if given.confidence is None else check_unit_interval("confidence", given.confidence),
        ttl=ttl,
        expires_at=expiry(now, ttl),
        occurred_at=read_instant("occurred_at", given.occurred_at),
        valid_until=read_instant("valid_until", given.valid_until),
        source=clean(given.source) if isinstance(given.source, str) else given.source,
        trust=Trust.TRUSTED if given.trust is None else read_trust(given.trust),
        derived_from=read_texts("derived_from", given.derived_from),
    )
    check_entry(entry)
    return entry


def expiry(now: datetime, ttl: float | None) -> datetime | None:
    """The instant at which a memory confirmed now expires."""
    return None if ttl is None else now + timedelta(seconds=ttl)


def read_age(older_than: object, older_than_ms: object) -> timedelta:
    """An age from a timedelta or from milliseconds, which win; never negative."""
    field, age = "older_than", older_than
    if older_than_ms is not None:
        field = "older_than_ms"
        if isinstance(older_than_ms, bool) or not isinstance(older_than_ms, int | float):
            raise InvalidType(field, f"must be a number, not {type(older_than_ms).__name__}", "Give milliseconds.")
        try:
            age = timedelta(milliseconds=older_than_ms)
        except (ValueError, OverflowError):
            raise InvalidInput(field, f"{older_than_ms} is no age", "Give milliseconds.") from None
    if not isinstance(age, timedelta):
        raise InvalidType(field, f"must be a timedelta, not {type(age).__name__}", "Give timedelta(hours=24).")
    if age < timedelta(0):
        raise InvalidInput(field, "is negative", "Give an age, such as timedelta(hours=24).")
    return age


def read_query(query: object) -> str:
    """The text to search for, cleaned; blank text is refused."""
    if not isinstance(query, str):
        raise InvalidType("query", f"must be text, not {type(query).__name__}", "Give a str.")
    if not query.strip():
        raise InvalidInput("query", "is blank", "Give a text to search for, or list with engine.query().")
    return clean(query)


def read_mode(mode: SearchMode | str | None, default: SearchMode) -> SearchMode:
    """The search mode of this name, or the default."""
    try:
        return default if mode is None else SearchMode(mode)
    except ValueError:
        raise InvalidInput("mode", f"{mode!r} is unknown", f"Use one of: {', '.join(SearchMode)}.") from None
