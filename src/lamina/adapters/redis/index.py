"""The query engine's index over the memories of one table: made, kept complete, and asked."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.exceptions import ResponseError

from lamina.adapters._shared.patience import attempts
from lamina.adapters.redis.failures import index_is_missing, took_too_long
from lamina.adapters.redis.layout import BACKEND, CURRENT, Names
from lamina.adapters.redis.server import Server
from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["Found", "Index"]

_FIELDS: Final = (
    "a TAG SEPARATOR , CASESENSITIVE w TEXT NOSTEM r1 NUMERIC r2 NUMERIC t1 NUMERIC t2 NUMERIC t3 NUMERIC t4 NUMERIC"
).split()
_VECTOR: Final = "HNSW 10 TYPE FLOAT32 DIM {} DISTANCE_METRIC COSINE M 16 EF_CONSTRUCTION 200"
_DIALECT: Final = ("DIALECT", 2)
_FEW: Final = 1_000
"""So many results any server returns; before more are asked for, it is looked how many there are."""


@dataclass(frozen=True, slots=True)
class Found:
    """How many there are, and the first of them: ids, each with its distance or None."""

    total: int
    hits: Sequence[tuple[str, float | None]]


class Index:
    """The index of one table. Its fields for vectors, one for each length, come as they are needed.

    It is brought up to date in the same instant as a memory is written. Only where it is made over memories
    that were there before, or read in after a restart, it lags; then it is waited for.
    """

    def __init__(self, server: Server, names: Names, *, patience: float, timeout: float) -> None:
        self._server = server
        self._names = names
        self._patience = patience
        self._timeout = max(1, int(timeout * 1_000))
        self._lock = threading.Lock()
        self._dimensions: frozenset[int] = frozenset()
        self._checked = -1
        """How many connections had been made when the index was last seen complete."""

    def prepare(self, dimensions: Iterable[int] = ()) -> None:
        """Make the index and its fields for these vectors where they are lacking, and wait until it is complete."""
        wanted = frozenset(dimensions)
        if self._is_current() and wanted <= self._dimensions:
            return
        with self._lock:
            while not (self._is_current() and wanted <= self._dimensions):
                connected = self._server.connected
                present = self._fields_present()
                kept = {int(each) for each in self._server.read("SMEMBERS", self._names.key("dimensions"))}
                for dimension in sorted((kept | wanted) - present):
                    self._add_field(dimension)
                self._wait()
                self._dimensions = frozenset(present | kept | wanted)
                self._checked = connected

    def knows(self, dimension: int) -> bool:
        """Whether there may be vectors of this length."""
        if dimension not in self._dimensions:
            is_kept = self._server.read("SISMEMBER", self._names.key("dimensions"), dimension)
            if not is_kept:
                return False
            self.prepare([dimension])
        return True

    def count(self, queries: Sequence[str]) -> list[int]:
        """How many memories each of the queries finds."""
        asked = [("FT.SEARCH", self._names.index, query, "LIMIT", 0, 0, *self._options()) for query in queries]
        return [self._found(answer).total for answer in self._ask(asked)]

    def words(self, query: str, limit: int) -> Found:
        """What the query finds, those first that hold most of its words and the rarest."""
        order = ("NOCONTENT", "SCORER", "TFIDF")
        if limit > _FEW:
            limit = min(limit, *self.count([query]))
        [answer] = self._ask([self._search(query, limit, *order)])
        return self._found(answer)

    def everything(self, query: str) -> list[str]:
        """The ids of all that the query finds."""
        [total] = self.count([query])
        if not total:
            return []
        [answer] = self._ask([self._search(query, total, "NOCONTENT")])
        return [id for id, _ in self._found(answer).hits]

    def nearest(self, query: str, vector: bytes, dimension: int, *, limit: int, exact: bool) -> Found:
        """The closest that the query admits, closest first.

        Exact, one by one among all that it admits, or by the graph, which may miss some.
        """
        how = "HYBRID_POLICY ADHOC_BF" if exact else f"EF_RUNTIME {max(400, 2 * limit)}"
        knn = f"({query})=>[KNN $limit @v{dimension} $vector {how} AS distance]"
        given = ("PARAMS", 4, "limit", limit, "vector", vector)
        order = ("SORTBY", "distance", "ASC", "RETURN", 1, "distance")
        [answer] = self._ask([self._search(knn, limit, *given, *order)])
        return self._found(answer)

    # ------------------------------------------------------------------------------------------

    def _search(self, query: str, limit: int, *more: Any) -> tuple[Any, ...]:
        return ("FT.SEARCH", self._names.index, query, *more, "LIMIT", 0, limit, *self._options())

    def _options(self) -> tuple[Any, ...]:
        return ("TIMEOUT", self._timeout, *_DIALECT)

    def _is_current(self) -> bool:
        return self._checked == self._server.connected

    def _ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answers of an index that was complete before and is the same after: else once more."""
        for attempt in range(5):
            self.prepare()
            try:
                answers = self._pipelined(commands)
            except ResponseError as error:
                if not index_is_missing(error) or attempt:
                    raise
                self._checked = -1
                continue
            if self._is_current():
                return answers
        raise AdapterUnavailable(BACKEND, f"{self._server.place} keeps ending connections", "Try again.")

    def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if len(commands) == 1:
            return [self._server.read(*commands[0])]
        with self._server.client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return list(pipeline.execute())

    def _found(self, answer: dict[bytes, Any]) -> Found:
        if answer.get(b"warning"):  # it returns what it had found when its time was up
            raise took_too_long(self._server.place)
        return Found(int(answer[b"total_results"]), list(self._hits(answer[b"results"])))

    def _hits(self, results: Iterable[dict[bytes, Any]]) -> Iterator[tuple[str, float | None]]:
        for each in results:
            distance = (each.get(b"extra_attributes") or {}).get(b"distance")
            yield self._names.id_of(each[b"id"]), None if distance is None else float(distance)

    def _fields_present(self) -> frozenset[int]:
        """The lengths of vectors that the index has fields for; it is made if there is none."""
        make = ("ON", "HASH", "PREFIX", 1, self._names.indexed, "NOOFFSETS", "NOHL", "NOFIELDS", "STOPWORDS", 0)
        try:
            about = self._about()
        except ResponseError as error:
            if not index_is_missing(error):
                raise
            self._unless("already exists", "FT.CREATE", self._names.index, *make, "SCHEMA", *_FIELDS)
            about = self._about()
        names = {dict(each)[b"attribute"].decode() for each in about[b"attributes"]}
        if CURRENT.field not in names:  # an earlier Lamina made it
            self._unless("Duplicate", "FT.ALTER", self._names.index, "SCHEMA", "ADD", CURRENT.field, "NUMERIC")
        return frozenset(int(name[1:]) for name in names if name.startswith("v"))

    def _add_field(self, dimension: int) -> None:
        vector = _VECTOR.format(dimension).split()
        self._unless("Duplicate", "FT.ALTER", self._names.index, "SCHEMA", "ADD", f"v{dimension}", "VECTOR", *vector)

    def _unless(self, known: str, *command: Any) -> None:
        """Run the command; somebody else may have been first."""
        try:
            self._server.client.execute_command(*command)
        except ResponseError as error:
            if known not in str(error):
                raise

    def _wait(self) -> None:
        for _ in attempts(self._patience, first=0.002, longest=0.5):
            about = self._about()
            if not int(about[b"indexing"]) and float(about[b"percent_indexed"]) >= 1:
                break
        else:
            remedy = "Try again, or raise index_timeout. Nothing is searched before, since much would be missed."
            problem = f"{self._server.place} is still indexing what was there before"
            raise AdapterUnavailable(BACKEND, problem, remedy)
        failed = int(about.get(b"hash_indexing_failures", 0))
        if failed:
            remedy = "Give another table, or see FT.INFO for the key."
            raise AdapterError(BACKEND, f"the query engine could not index {failed} of the table's memories", remedy)

    def _about(self) -> dict[bytes, Any]:
        about: dict[bytes, Any] = self._server.read("FT.INFO", self._names.index)
        return about
