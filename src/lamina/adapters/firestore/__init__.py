"""Google Cloud Firestore: documents without a server, with native expiry and nearest-neighbour search."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import google.cloud.firestore_v1 as _firestore  # noqa: F401 - every module here needs it
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] not in {"google", "grpc", "proto"}:
        raise
    raise MissingExtra("Firestore", "firestore") from error

from lamina.adapters.firestore.adapter import FirestoreAdapter
from lamina.adapters.firestore.indexes import firestore_indexes

__all__ = ["FirestoreAdapter", "firestore_indexes"]
