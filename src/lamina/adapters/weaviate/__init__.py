"""Memories in a collection of Weaviate."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import weaviate as _weaviate  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] != "weaviate":
        raise
    raise MissingExtra("The Weaviate adapter", "weaviate") from error

from lamina.adapters.weaviate.adapter import WeaviateAdapter

__all__ = ["WeaviateAdapter"]
