"""MongoDB 4.4 or newer: memories as documents, written in transactions where the server has them."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import pymongo as _pymongo  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] not in {"pymongo", "bson"}:
        raise
    raise MissingExtra("MongoDB", "mongodb") from error

from lamina.adapters.mongodb.adapter import MongoDBAdapter

__all__ = ["MongoDBAdapter"]
