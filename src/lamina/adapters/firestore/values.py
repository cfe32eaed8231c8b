"""Values of documents, as the protocol has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from google.cloud.firestore_v1.types import document

__all__ = ["NearVector", "fields_of", "size_of", "value_of", "values_of"]

_Value: Final = document.Value.pb()
_VECTOR: Final = "__vector__"
_OVERHEAD: Final = 32
"""Bytes that Firestore counts for a document beside its name and its fields."""


class NearVector(NamedTuple):
    """A vector that Firestore can search for."""

    numbers: Sequence[float]


def value_of(value: Any) -> Any:
    """The value for the protocol; texts, bytes, numbers, bools, instants, lists of them, and vectors."""
    made = _Value()
    match value:
        case bool():
            made.boolean_value = value
        case int():
            made.integer_value = value
        case float():
            made.double_value = value
        case str():
            made.string_value = value
        case bytes():
            made.bytes_value = value
        case datetime():
            made.timestamp_value.FromDatetime(value.astimezone(UTC).replace(tzinfo=None))
        case NearVector():
            made.map_value.fields["__type__"].string_value = _VECTOR
            numbers = made.map_value.fields["value"].array_value.values
            numbers.extend(_Value(double_value=each) for each in value.numbers)
        case _:
            made.array_value.values.extend(value_of(each) for each in value)
    return made


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document."""
    return {name: value_of(value) for name, value in values.items()}


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What of a document's fields is text, bytes, a number or a bool: all that is read back."""
    kinds = {name: (value, value.WhichOneof("value_type")) for name, value in fields.items()}
    plain = {"boolean_value", "integer_value", "double_value", "string_value", "bytes_value"}
    return {name: getattr(value, kind) for name, (value, kind) in kinds.items() if kind in plain}


def size_of(name: str, values: Mapping[str, Any]) -> int:
    """Bytes that Firestore counts for a document of this name."""
    parts = sum(len(each) + 1 for each in name.split("/documents/", 1)[-1].split("/"))
    return parts + 16 + _OVERHEAD + sum(len(field) + 1 + _size(value) for field, value in values.items())


def _size(value: Any) -> int:
    match value:
        case bool():
            return 1
        case str():
            return len(value.encode()) + 1
        case bytes():
            return len(value)
        case NearVector():
            return 8 * len(value.numbers) + 30
        case list():
            return sum(_size(each) for each in value)
        case _:
            return 8
