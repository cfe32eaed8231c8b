"""JSON schemas as clients and models read them: without the titles that only repeat names."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["plain_schema"]

_OF_SCHEMAS: Final = frozenset({"properties", "$defs"})


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without titles, which cost tokens and say nothing new. A property named `title` stays."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title":
            continue
        if key in _OF_SCHEMAS and isinstance(value, dict):
            plain[key] = {name: plain_schema(each) for name, each in value.items()}
        elif isinstance(value, dict):
            plain[key] = plain_schema(value)
        elif isinstance(value, list):
            plain[key] = [plain_schema(each) if isinstance(each, dict) else each for each in value]
        else:
            plain[key] = value
    return plain
