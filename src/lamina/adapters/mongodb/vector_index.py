"""A vector search index of Atlas, which ranks approximately and follows the collection some time later."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from bson.timestamp import Timestamp
from pymongo.collection import Collection
from pymongo.errors import OperationFailure

from lamina.errors import ConfigError

__all__ = ["VectorIndex"]

LAG: Final = 120
"""Seconds for which what was written is compared exactly too, in case the index does not have it yet."""

_GREATEST_POOL: Final = 500
_MAX_CANDIDATES: Final = 10_000
_CANDIDATES_EACH: Final = 20
_STATE_HOLDS: Final = 5.0


class VectorIndex:
    """The index by its name, asked now and then whether it can be relied on.

    It must hold `near` as a vector with the similarity `dotProduct`, and as filters every field that
    `lamina.adapters.mongodb.matching` compares; `docs/adapter-mongodb.md` has the definition.
    """

    def __init__(self, collection: Collection[dict[str, Any]], name: str) -> None:
        self._collection = collection
        self._name = name
        self._lock = threading.Lock()
        self._checked: float | None = None
        self._dimensions: int | None = None

    def check(self) -> None:
        """Look whether it is there.

        Raises:
            ConfigError: it is not, or the server has no such indexes.
        """
        try:
            found = self._described()
        except OperationFailure as error:
            problem = "is given, and this server has no vector search indexes"
            raise ConfigError("vector_index", problem, "Leave it out: vectors are compared exactly then.") from error
        if found is None:
            remedy = "Create it as docs/adapter-mongodb.md says, or leave it out: vectors are compared exactly then."
            raise ConfigError("vector_index", f"{self._name!r} is not among the collection's indexes", remedy)

    def pipeline(self, match: dict[str, Any], towards: Sequence[float], limit: int) -> list[dict[str, Any]] | None:
        """Finds the ids of the closest, or None if the index cannot be relied on for this question.

        https://www.mongodb.com/docs/vector-search/query/aggregation-stages/vector-search-stage/
        """
        pool = 2 * limit + 10
        if pool > _GREATEST_POOL or self._ready_for() != len(towards):
            return None
        stage = {
            "index": self._name,
            "path": "near",
            "queryVector": list(towards),
            "numCandidates": min(_MAX_CANDIDATES, _CANDIDATES_EACH * pool),
            "limit": pool,
            "filter": match,
        }
        return [{"$vectorSearch": stage}, {"$project": {"_id": 1}}]

    def unsettled(self, match: dict[str, Any]) -> dict[str, Any]:
        """What of it was written so lately, by the server's clock, that the index may not have it yet."""
        now: datetime = self._collection.database.client.admin.command("hello")["localTime"]
        return {"$and": [match, {"written": {"$gte": Timestamp(int(now.timestamp()) - LAG, 0)}}]}

    def _ready_for(self) -> int | None:
        """The length of vectors it has, or None while it is built, or no longer follows the collection."""
        with self._lock:
            now = time.monotonic()
            if self._checked is None or now - self._checked > _STATE_HOLDS:
                self._dimensions = _dimensions(self._described())
                self._checked = now
            return self._dimensions

    def _described(self) -> Mapping[str, Any] | None:
        return next(iter(self._collection.list_search_indexes(self._name)), None)


def _dimensions(described: Mapping[str, Any] | None) -> int | None:
    """Of an index that is READY: one that is STALE answers from what it had before it stopped following.

    https://www.mongodb.com/docs/manual/reference/operator/aggregation/listSearchIndexes/
    """
    if described is None or described.get("status") != "READY" or not described.get("queryable"):
        return None
    fields = described.get("latestDefinition", {}).get("fields", [])
    lengths = [each.get("numDimensions") for each in fields if each.get("type") == "vector" and each["path"] == "near"]
    return lengths[0] if lengths else None
