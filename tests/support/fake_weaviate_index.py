"""What the stand-in for Weaviate keeps of one tenant, and how it filters, sorts and searches it."""

from __future__ import annotations

import base64
import binascii
import math
import re
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from exact_cosines import cosines
from google.protobuf import struct_pb2
from weaviate.proto.v1 import base_pb2, properties_pb2, search_get_pb2

# https://docs.weaviate.io/deploy/configuration/env-vars (QUERY_MAXIMUM_RESULTS)
MAX_RESULTS = 10_000
MAX_DIMENSIONS = 65_535
KINDS = {"text", "text[]", "int", "number", "boolean", "blob"}
# Of the English list that is taken where a definition does not say otherwise:
# https://docs.weaviate.io/weaviate/config-refs/indexing/inverted-index#stopwords
STOPWORDS = {"en": {"a", "an", "and", "are", "for", "in", "is", "it", "of", "on", "the", "to", "was"}, "none": set()}


class Refused(Exception):
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def need(condition: object, message: str, status: int = 422) -> None:
    if not condition:
        raise Refused(message, status)


def check_property(given: dict[str, Any]) -> None:
    # https://docs.weaviate.io/weaviate/config-refs/collections#property-naming
    name, [kind] = given["name"], given["dataType"]
    need(re.fullmatch("[_A-Za-z][_0-9A-Za-z]{0,230}", name), f"{name} is not a valid property name")
    need(name not in {"id", "_id", "_additional", "vector"}, f"{name} is reserved")
    need(kind in KINDS, f"{kind} is not a data type known here")
    is_text = kind.startswith("text")
    need(is_text or not given.get("indexSearchable"), "only texts are searchable")
    need(is_text or given.get("tokenization") is None, "only texts have a tokenization")
    # https://docs.weaviate.io/weaviate/manage-collections/inverted-index
    need(kind in {"int", "number"} or not given.get("indexRangeFilters"), "only numbers have range filters")


class Shard:
    """The objects of a tenant."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.definition = definition
        self.objects: dict[str, dict[str, Any]] = {}
        self.vectors: dict[str, dict[str, np.ndarray]] = {}
        self.indexed: dict[str, dict[str, np.ndarray]] = {}
        self.waiting: dict[str, float | None] = {}
        self._asked: tuple[bytes, list[str]] | None = None

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.definition["properties"]}

    def come_to(self, now: float) -> None:
        for key, due in list(self.waiting.items()):
            if now == math.inf or (due is not None and due <= now):
                self.indexed[key] = self.vectors.get(key, {})
                del self.waiting[key]

    # Writing ------------------------------------------------------------------------------------

    def put(self, given: Any, due: float | None) -> None:
        key = str(uuid.UUID(given.uuid))
        values = self._values(given.properties)
        vectors = {each.name: _floats(each.vector_bytes) for each in given.vectors}
        need(not given.vector_bytes or not self.definition["vectorConfig"], "vectors have names here")
        for name, vector in vectors.items():
            need(name in self.definition["vectorConfig"], f"vector {name} is not configured")
            need(0 < len(vector) <= MAX_DIMENSIONS, "a vector has 1 to 65535 dimensions")
            # https://docs.weaviate.io/weaviate/config-refs/indexing/vector-index: an index has one length
            other = next((each[name] for each in self.vectors.values() if name in each), vector)
            need(len(other) == len(vector), f"new node has a vector with length {len(vector)}, others have another")
        # https://docs.weaviate.io/weaviate/manage-objects/import: an object of the same id is replaced
        self.objects[key], self.vectors[key] = values, vectors
        self._asked = None
        if vectors or self.indexed.get(key):
            self.waiting[key] = due

    def remove(self, key: str) -> None:
        for each in (self.objects, self.vectors, self.indexed, self.waiting):
            each.pop(key, None)
        self._asked = None

    def _values(self, given: Any) -> dict[str, Any]:
        values: dict[str, Any] = dict(given.non_ref_properties.items())
        values |= {each.prop_name: list(each.values) for each in given.text_array_properties}
        values |= {name: [] for name in given.empty_list_props}
        for name, value in values.items():
            # A property that is not defined would be guessed at (auto-schema), which nobody should rely on.
            need(name in self.properties, f"no such prop with name '{name}' found")
            values[name] = self._value(self.properties[name]["dataType"][0], value, name)
        return values

    @staticmethod
    def _value(kind: str, value: Any, name: str) -> Any:
        # https://docs.weaviate.io/weaviate/config-refs/datatypes; numbers come in as 64-bit floats, whole ones too
        # (https://github.com/weaviate/weaviate/issues/1563)
        kinds = {"text": str, "text[]": list, "int": float, "number": float, "boolean": bool, "blob": str}
        need(type(value) is kinds[kind], f"invalid {kind} property '{name}'")
        if kind == "int":
            need(value.is_integer(), f"invalid integer property '{name}'")
            return int(value)
        if kind == "blob":
            try:
                base64.b64decode(value, validate=True)
            except binascii.Error:
                raise Refused(f"invalid blob property '{name}'", 422) from None
        return value

    # Filtering ----------------------------------------------------------------------------------

    def admitted(self, filters: Any | None) -> list[str]:
        """The objects that pass; those of the last search are kept until one is written or removed."""
        if filters is None:
            return list(self.objects)
        if filters.target.property == "_id":
            return list(filter(self._condition(filters), self.objects))
        data = filters.SerializeToString(deterministic=True)
        if self._asked is None or self._asked[0] != data:
            self._asked = data, list(filter(self._condition(filters), self.objects))
        return list(self._asked[1])

    def _condition(self, filters: Any) -> Callable[[str], bool]:
        """Whether the object with a key passes; what the filter has wrong is told here, once for all objects."""
        # https://docs.weaviate.io/weaviate/api/graphql/filters
        operator = base_pb2.Filters.Operator.Name(filters.operator).removeprefix("OPERATOR_")
        if operator in {"AND", "OR", "NOT"}:
            need(len(filters.filters) == 1 if operator == "NOT" else filters.filters, f"{operator} without operands")
            parts = [self._condition(each) for each in filters.filters]
            if operator == "NOT":
                return lambda key: not parts[0](key)
            both = all if operator == "AND" else any
            return lambda key: both(part(key) for part in parts)
        name, operand = filters.target.property, _operand(filters)
        if name == "_id":
            need(operator in {"CONTAINS_ANY", "EQUAL"}, f"{operator} does not go with ids")
            ids = {str(uuid.UUID(each)) for each in (operand if isinstance(operand, list) else [operand])}
            return ids.__contains__
        return self._comparison(operator, name, operand)

    def _comparison(self, operator: str, name: str, operand: Any) -> Callable[[str], bool]:
        need(name in self.properties, f"no such prop with name '{name}' found in class")
        given = self.properties[name]
        kind = given["dataType"][0].removesuffix("[]")
        is_order = operator in {"GREATER_THAN", "GREATER_THAN_EQUAL", "LESS_THAN", "LESS_THAN_EQUAL"}
        is_indexed = given["indexFilterable"] or (is_order and given.get("indexRangeFilters"))
        need(is_indexed, f"Filtering by property '{name}' requires inverted index")
        operands = operand if isinstance(operand, list) else [operand]
        kinds = {"text": str, "int": int, "number": float, "boolean": bool}
        need(all(type(each) is kinds.get(kind) for each in operands), f"data type filter cannot use on '{name}'")
        need(isinstance(operand, list) is operator.startswith("CONTAINS"), f"{operator} takes another operand")
        need(is_order or operator in {"EQUAL", "CONTAINS_ALL", "CONTAINS_ANY"}, f"{operator} is not known here")
        if kind == "text":
            need(not is_order, "order of texts is not known here")
            asked = [self._tokens(given, each) for each in operands]
            return lambda key: _contains(operator, self._tokens(given, self.objects[key].get(name)), asked)

        def compares(key: str) -> bool:
            value = self.objects[key].get(name)
            if value is None:
                return False
            if is_order:
                return _is_ordered(operator, value, operand)
            return _contains(operator, [value], [[each] for each in operands])

        return compares

    def _tokens(self, given: dict[str, Any], value: Any) -> list[str]:
        # https://docs.weaviate.io/weaviate/config-refs/collections#tokenization
        texts = value if isinstance(value, list) else [] if value is None else [value]
        match given["tokenization"]:
            case "field":
                tokens = [each.strip() for each in texts]
            case "whitespace":
                tokens = [token for each in texts for token in each.split()]
            case _:
                tokens = [token for each in texts for token in re.findall(r"\w+", each.lower())]
        stopwords = STOPWORDS[self.definition["invertedIndexConfig"]["stopwords"]["preset"]]
        return [each for each in tokens if each and each not in stopwords]

    # Ranking ------------------------------------------------------------------------------------

    def sorted(self, keys: list[str], order: Any) -> list[str]:
        # https://docs.weaviate.io/weaviate/api/graphql/additional-operators#sorting; without it, by id
        found = sorted(keys)
        for each in reversed(order):
            [name] = each.path
            need(name in self.properties, f"no such prop with name '{name}' found in class")
            found.sort(key=lambda key: self._rank(self.objects[key].get(name)), reverse=not each.ascending)
        return found

    @staticmethod
    def _rank(value: Any) -> tuple[bool, Any]:
        # Nothing is less than anything, whole numbers are compared as floats, and texts without their case.
        if isinstance(value, str):
            return True, value.lower()
        return value is not None, 0 if value is None else float(value)

    def closest(self, given: Any, keys: list[str]) -> list[tuple[str, float]]:
        # https://docs.weaviate.io/weaviate/config-refs/distances: 1 - cosine
        [name] = given.targets.target_vectors or given.target_vectors
        need(name in self.definition["vectorConfig"], f"class does not have named vector {name}")
        data = given.vectors[0].vector_bytes if given.vectors else given.vector_bytes
        asked = _floats(data or given.vector_for_targets[0].vector_bytes)
        held = {key: self.indexed[key][name] for key in keys if name in self.indexed.get(key, {})}
        for vector in held.values():
            need(len(vector) == len(asked), f"vector lengths don't match: {len(vector)} vs {len(asked)}")
        found = [(key, 1 - cosine) for key, cosine in zip(held, cosines(asked, list(held.values())), strict=True)]
        return sorted(found, key=lambda pair: (pair[1], pair[0]))

    def by_words(self, given: Any, keys: list[str]) -> list[tuple[str, float]]:
        # https://docs.weaviate.io/weaviate/concepts/search/keyword-search
        [name] = given.properties
        property = self.properties[name]
        need(property["indexSearchable"], f"Searching by property '{name}' requires inverted index")
        bm25 = self.definition["invertedIndexConfig"]["bm25"]
        counts = {key: Counter(self._tokens(property, each.get(name))) for key, each in self.objects.items()}
        average = sum(each.total() for each in counts.values()) / max(1, len(counts))
        scores: Counter[str] = Counter()
        for token in dict.fromkeys(self._tokens(property, given.query)):
            holding = sum(token in each for each in counts.values())
            rarity = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
            for key in keys:
                if often := counts[key][token]:
                    length = 1 - bm25["b"] + bm25["b"] * counts[key].total() / average
                    scores[key] += rarity * often * (bm25["k1"] + 1) / (often + bm25["k1"] * length)
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    # Answering ----------------------------------------------------------------------------------

    def result(self, key: str, kind: str, value: float | None, request: Any) -> Any:
        values = self.objects[key]
        fields = {}
        for name in request.properties.non_ref_properties:
            need(name in self.properties, f"no such prop with name '{name}' found in class")
            fields[name] = _shown(self.properties[name]["dataType"][0], values.get(name))
        metadata = search_get_pb2.MetadataResult(id_as_bytes=uuid.UUID(key).bytes)
        if value is not None and getattr(request.metadata, kind):
            setattr(metadata, kind, value)
            setattr(metadata, f"{kind}_present", True)
        properties = search_get_pb2.PropertiesResult(
            non_ref_props=properties_pb2.Properties(fields=fields), target_collection=self.definition["class"]
        )
        return search_get_pb2.SearchResult(properties=properties, metadata=metadata)


def _operand(filters: Any) -> Any:
    kind = filters.WhichOneof("test_value")
    need(kind is not None, "a filter without a value")
    value = getattr(filters, kind)
    return list(value.values) if kind.endswith("_array") else value


def _contains(operator: str, held: list[Any], operands: list[list[Any]]) -> bool:
    found = [bool(each) and all(token in held for token in each) for each in operands]
    return any(found) if operator == "CONTAINS_ANY" else all(found)


def _is_ordered(operator: str, value: float, operand: float) -> bool:
    if value == operand:
        return operator.endswith("_EQUAL")
    return (value > operand) is operator.startswith("GREATER")


def _floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype="<f4").astype(np.float64)


def _shown(kind: str, value: Any) -> Any:
    if value is None:
        return properties_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    match kind:
        case "text":
            return properties_pb2.Value(text_value=value)
        case "text[]":
            texts = properties_pb2.TextValues(values=value)
            return properties_pb2.Value(list_value=properties_pb2.ListValue(text_values=texts))
        case "int":
            return properties_pb2.Value(int_value=value)
        case "number":
            return properties_pb2.Value(number_value=value)
        case "boolean":
            return properties_pb2.Value(bool_value=value)
    return properties_pb2.Value(blob_value=value)
