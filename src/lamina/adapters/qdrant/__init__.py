"""Qdrant: a server, or the client library's own local engine in a folder or in memory."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import qdrant_client as _qdrant_client  # noqa: F401 - what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] != "qdrant_client":
        raise
    raise MissingExtra("Qdrant", "qdrant") from error

from lamina.adapters.qdrant.adapter import QdrantAdapter

__all__ = ["QdrantAdapter"]
