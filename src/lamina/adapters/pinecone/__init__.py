"""Memories in a serverless index of Pinecone."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import pinecone as _pinecone  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] != "pinecone":
        raise
    raise MissingExtra("The Pinecone adapter", "pinecone") from error

from lamina.adapters.pinecone.adapter import PineconeAdapter

__all__ = ["PineconeAdapter"]
