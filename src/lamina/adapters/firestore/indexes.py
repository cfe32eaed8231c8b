"""The indexes that Firestore needs and does not make by itself, as its own tools read them."""

from __future__ import annotations

from typing import Any, Final

from lamina.adapters._shared.options import DEFAULT_TABLE

__all__ = ["firestore_indexes"]

_PLACES: Final = (
    "tenant_key",
    "owner_key",
    "namespace_key",
    "place_key",
    "shared_key",
    "shared_namespace_key",
    "layer",
    "embedded",
)
_ARRAYS: Final = ("tags", "leaves")
_RANGES: Final = ("relevance", "confidence", "created", "updated")
_UNINDEXED: Final = ("entry", "embedding", "past", "value")
_BY_RELEVANCE: Final = (("relevance", "DESCENDING"), ("created", "DESCENDING"), ("id", "ASCENDING"))
_BY_SEQ: Final = (("seq", "ASCENDING"),)


def firestore_indexes(table: str = DEFAULT_TABLE, *, dimensions: int) -> dict[str, Any]:
    """What `firebase deploy --only firestore:indexes` takes as `firestore.indexes.json`.

    Lists by insertion and by relevance, of what is live or of anything, with a tag or a condition on metadata, and
    searches of vectors of these dimensions. Firestore puts indexes together as conditions are. What
    asks for more is refused with an error that names the index.
    """
    live: tuple[tuple[str, str], ...] = (("expires", "ASCENDING"),)
    indexes: list[dict[str, Any]] = []
    for equal in [*((each,) for each in _PLACES), *((each, array) for each in _PLACES[:6] for array in _ARRAYS)]:
        fields = [_field(each) for each in equal]
        orders = (_BY_SEQ, (*_BY_SEQ, *live), _BY_RELEVANCE, (*_BY_RELEVANCE, *live), live)
        indexes += [_index(table, [*fields, *(_field(*each) for each in order)]) for order in orders]
        vector = {"fieldPath": "vector", "vectorConfig": {"dimension": dimensions, "flat": {}}}
        indexes.append(_index(table, [*fields, vector]))
    for equal_one in _PLACES[:2]:
        for name in _RANGES:
            parts = [equal_one, "seq", "expires", name]
            indexes.append(_index(table, [_field(each) for each in parts]))
    overrides = [_override(table, name, []) for name in _UNINDEXED]
    overrides += [_override(group, "expires_at", [], ttl=True) for group in (table, "past")]
    return {"indexes": indexes, "fieldOverrides": overrides}


def _field(name: str, order: str = "ASCENDING") -> dict[str, Any]:
    if name in _ARRAYS:
        return {"fieldPath": name, "arrayConfig": "CONTAINS"}
    return {"fieldPath": name, "order": order}


def _index(table: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"collectionGroup": table, "queryScope": "COLLECTION", "fields": fields}


def _override(group: str, name: str, indexes: list[Any], *, ttl: bool = False) -> dict[str, Any]:
    return {"collectionGroup": group, "fieldPath": name, "ttl": ttl, "indexes": indexes}
