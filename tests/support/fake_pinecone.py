"""A stand-in for Pinecone at the level of HTTP, for its official client: the control plane and one data plane.

It holds a caller to the limits that Pinecone documents, each named with its page of the documentation, and
its index can be told to lag: a write is then seen by no read until some more requests have come.

    server.lag = 3       # a write is visible to reads from the third request after it on
    server.lag = None    # never, until `server.catch_up()`
    server.plays(429)    # the next request is answered so; also "hang", "drop", "drop after" and "rubbish"
"""

from __future__ import annotations

import json
import math
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

import numpy as np
import pytest
import services
from exact_cosines import cosines

API_VERSION = "2026-07"
API_KEY = "pcsk_of_the_tests"

# https://docs.pinecone.io/reference/api/database-limits/operation-limits
MAX_UPSERT_RECORDS = 1_000
MAX_REQUEST_BYTES = 2 * 1024 * 1024
MAX_METADATA_BYTES = 40 * 1024
MAX_DIMENSION = 20_000
MAX_TOP_K = 10_000
MAX_RESULT_BYTES = 4 * 1024 * 1024
MAX_IDS = 1_000  # of a fetch or a deletion
MAX_OPERANDS = 10_000  # of $in and $nin
# https://docs.pinecone.io/reference/api/2026-07/data-plane/fetch_by_metadata
MAX_FETCHED_BY_METADATA = 10_000
# https://docs.pinecone.io/reference/api/2026-07/data-plane/list
MAX_LISTED = 100
# https://docs.pinecone.io/reference/api/database-limits/identifier-limits
MAX_ID = 512
MAX_NAMESPACE = 512
MAX_INDEX_NAME = 45


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def need(condition: object, message: str, status: int = 400) -> None:
    if not condition:
        raise Refused(
            status, {401: "UNAUTHENTICATED", 413: "RESOURCE_EXHAUSTED"}.get(status, "INVALID_ARGUMENT"), message
        )


class Namespace:
    """Records as they are, and as reads see them."""

    def __init__(self) -> None:
        self.number = 0
        self.written: dict[str, dict[str, Any]] = {}
        self.indexed = 0
        self.visible: dict[str, dict[str, Any]] = {}
        self.waiting: deque[tuple[int, int | None, dict[str, dict[str, Any] | None]]] = deque()
        self._asked: tuple[str, dict[str, dict[str, Any]]] | None = None

    def passing(self, filter: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The visible records that pass, by id; those of the last filter are kept until another change is visible."""
        text = json.dumps(filter)
        if self._asked is None or self._asked[0] != text:
            admits = admitting(filter)
            self._asked = text, {id: each for id, each in self.visible.items() if admits(each["metadata"])}
        return self._asked[1]

    def write(self, changes: dict[str, dict[str, Any] | None], due: int | None) -> int:
        # https://docs.pinecone.io/guides/index-data/check-data-freshness: numbers grow, by namespace, with upserts,
        # updates and deletions.
        self.number += 1
        _apply(self.written, changes)
        self.waiting.append((self.number, due, changes))
        return self.number

    def come_to(self, now: float) -> None:
        while self.waiting and (due := self.waiting[0][1]) is not None and due <= now:
            self.indexed, _, changes = self.waiting.popleft()
            _apply(self.visible, changes)
            self._asked = None


def _apply(records: dict[str, dict[str, Any]], changes: dict[str, dict[str, Any] | None]) -> None:
    for id, record in changes.items():
        if record is None:
            records.pop(id, None)
        else:
            records[id] = record


class PineconeFake:
    """Serves from its constructor on; `kill` and `start` keep what it holds."""

    def __init__(self) -> None:
        self.indexes: dict[str, dict[str, Any]] = {}
        self.data: dict[str, Namespace] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.lag: int | None = 0
        self.reports_numbers = True
        self._path = ""
        self._script: deque[int | str] = deque()
        self._lock = threading.RLock()
        self._clock = 0
        self._port = services.free_port()
        self._released = threading.Event()
        self._server: _Server | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._released.clear()
        self._server = _Server(("127.0.0.1", self._port), _handler_of(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def kill(self) -> None:
        """Stop listening, and cut every connection."""
        if self._server is not None:
            self._released.set()
            self._server.shutdown()
            self._server.cut()
            self._server.server_close()
            self._server = None

    stop = kill

    def plays(self, *answers: int | str) -> None:
        """Answer the next requests so: with a status, "rubbish", "hang", "drop" or, when all was done, "drop after"."""
        self.plays_at("", *answers)

    def plays_at(self, path: str, *answers: int | str) -> None:
        """Answer the next requests of this path so, and all others as ever."""
        self._path, self._script = path, deque(answers)

    def catch_up(self) -> None:
        with self._lock:
            for namespace in self.data.values():
                namespace.waiting = deque((number, 0, changes) for number, _, changes in namespace.waiting)
                namespace.come_to(0)

    def stored(self) -> dict[str, dict[str, dict[str, Any]]]:
        """All records, by namespace and id, past the index."""
        with self._lock:
            return {name: dict(namespace.written) for name, namespace in self.data.items()}

    # Answers ------------------------------------------------------------------------------------

    def scripted(self, target: str) -> int | str | None:
        with self._lock:
            return self._script.popleft() if self._script and target.startswith(self._path) else None

    def waits(self) -> None:
        self._released.wait(30)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], Any]:
        path, _, query = target.partition("?")
        with self._lock:
            self.requests.append((method, target, headers))
            self._clock += 1
            for namespace in self.data.values():
                namespace.come_to(self._clock)
            try:
                # https://docs.pinecone.io/reference/api/authentication and .../versioning
                need(headers.get("api-key") == API_KEY, "Invalid API key", 401)
                need(headers.get("x-pinecone-api-version") == API_VERSION, "Unknown API version")
                need(len(body) <= MAX_REQUEST_BYTES, "Request body is too large", 413)
                given = json.loads(body) if body else {}
                return self._answered(method, path, parse_qs(query), given)
            except Refused as refused:
                # https://docs.pinecone.io/reference/api/errors
                error = {"status": refused.status, "error": {"code": refused.code, "message": refused.message}}
                return refused.status, {}, error

    def _answered(self, method: str, path: str, query: dict[str, list[str]], given: Any) -> tuple[int, Any, Any]:
        if path.startswith("/indexes"):
            return self._of_control_plane(method, unquote(path.removeprefix("/indexes").lstrip("/")), given)
        calls: dict[tuple[str, str], Callable[[], tuple[dict[str, str], Any]]] = {
            ("POST", "/vectors/upsert"): lambda: self._upsert(given),
            ("POST", "/vectors/delete"): lambda: self._delete(given),
            ("POST", "/query"): lambda: self._query(given),
            ("GET", "/vectors/fetch"): lambda: self._fetch(query),
            ("POST", "/vectors/fetch_by_metadata"): lambda: self._fetch_by_metadata(given),
        }
        if (method, path) not in calls:
            raise Refused(404, "NOT_FOUND", "Unknown path")
        if not self.indexes:
            raise Refused(404, "NOT_FOUND", "Index not found")
        headers, answer = calls[method, path]()
        return 200, headers, answer

    def _of_control_plane(self, method: str, name: str, given: Any) -> tuple[int, Any, Any]:
        # https://docs.pinecone.io/reference/api/2026-07/control-plane/create_index and .../describe_index
        if method == "GET":
            if name not in self.indexes:
                raise Refused(404, "NOT_FOUND", "Index not found")
            model = self.indexes[name]
            was_ready = model["status"]["ready"]
            model["status"] = {"ready": True, "state": "Ready"}  # the first look at it comes too early
            return 200, {}, model if was_ready else {**model, "status": {"ready": False, "state": "Initializing"}}
        need(method == "POST" and not name, "Unknown call")
        name = given["name"]
        need(0 < len(name) <= MAX_INDEX_NAME and name == name.lower(), "Bad name")
        if name in self.indexes:
            raise Refused(409, "ALREADY_EXISTS", "Resource already exists")
        [field] = given["schema"]["fields"].values()
        need(field["type"] == "dense_vector" and 1 <= field["dimension"] <= MAX_DIMENSION, "Bad schema")
        need(given["deployment"]["deployment_type"] == "managed", "Bad deployment")
        self.create(name, field["dimension"], field.get("metric", "cosine"), ready=False)
        return 201, {}, self.indexes[name]

    def create(self, name: str, dimension: int, metric: str = "cosine", *, ready: bool = True) -> None:
        """An index, as if it had been made before."""
        self.indexes[name] = {
            "name": name,
            "host": self.url.removeprefix("http://"),
            "schema": {"fields": {"_values": {"type": "dense_vector", "dimension": dimension, "metric": metric}}},
            "deployment": {"deployment_type": "managed", "cloud": "aws", "region": "us-east-1", "environment": "e"},
            "read_capacity": {"mode": "OnDemand", "status": {"state": "Ready"}},
            "status": {"ready": ready, "state": "Ready" if ready else "Initializing"},
            "deletion_protection": "disabled",
            "tags": {},
        }

    @property
    def _dimension(self) -> int:
        [model] = {model["schema"]["fields"]["_values"]["dimension"] for model in self.indexes.values()}
        return int(model)

    def _upsert(self, given: Any) -> tuple[dict[str, str], Any]:
        # https://docs.pinecone.io/reference/api/2026-07/data-plane/upsert
        vectors = given["vectors"]
        need(1 <= len(vectors) <= MAX_UPSERT_RECORDS, "Too many vectors")
        name = _checked_namespace(given.get("namespace", ""))
        changes: dict[str, dict[str, Any] | None] = {}
        for vector in vectors:
            _check_id(vector["id"])
            array = np.array(_numbers(vector["values"]), dtype=np.float32).astype(np.float64)
            need(len(array) == self._dimension, "Vector dimension does not match the dimension of the index")
            # https://docs.pinecone.io/guides/index-data/indexing-overview
            need(array.any(), "Dense vectors must contain at least one non-zero value")
            metadata = _checked_metadata(vector.get("metadata") or {})
            changes[vector["id"]] = {"array": array, "values": array.tolist(), "metadata": metadata}
        number = self._write(name, changes)
        return self._committed(number), {"upsertedCount": len(vectors)}

    def _delete(self, given: Any) -> tuple[dict[str, str], Any]:
        # https://docs.pinecone.io/reference/api/2026-07/data-plane/delete
        need(1 <= len(given["ids"]) <= MAX_IDS, "Too many ids")
        for id in given["ids"]:
            _check_id(id)
        name = _checked_namespace(given.get("namespace", ""))
        if name not in self.data:
            # https://github.com/pinecone-io/pinecone-ts-client/issues/324: a namespace is made by its first upsert
            raise Refused(404, "NOT_FOUND", "Namespace not found")
        return self._committed(self._write(name, dict.fromkeys(given["ids"]))), {}

    def _query(self, given: Any) -> tuple[dict[str, str], Any]:
        # https://docs.pinecone.io/reference/api/2026-07/data-plane/query
        top_k = given["topK"]
        need(1 <= top_k <= MAX_TOP_K, "top_k is out of range")
        asked = _numbers(given["vector"])
        need(len(asked) == self._dimension, "Vector dimension does not match the dimension of the index")
        namespace = self.data.get(_checked_namespace(given.get("namespace", "")), Namespace())
        found = namespace.passing(given.get("filter", {}))
        # The service reckons in 32-bit floats.
        scores = cosines(np.array(asked), [each["array"] for each in found.values()], np.float32)
        closest = sorted(zip(scores, found, strict=True), key=lambda pair: -pair[0])[:top_k]
        is_whole, has_values = given.get("includeMetadata"), given.get("includeValues")
        matches = [
            {"id": id, "score": float(np.float32(score)), **_shown(found[id], values=has_values, metadata=is_whole)}
            for score, id in closest
        ]
        answer = {"matches": matches, "namespace": given.get("namespace", ""), "usage": {"readUnits": 1}}
        # https://docs.pinecone.io/guides/search/search-overview
        need(len(json.dumps(answer)) <= MAX_RESULT_BYTES, "The result is larger than 4 MB")
        return ({"x-pinecone-max-indexed-lsn": str(namespace.indexed)} if self.reports_numbers else {}), answer

    def _fetch(self, query: dict[str, list[str]]) -> tuple[dict[str, str], Any]:
        # https://docs.pinecone.io/reference/api/2026-07/data-plane/fetch
        ids = query["ids"]
        need(1 <= len(ids) <= MAX_IDS, "Too many ids")
        [name] = query.get("namespace", [""])
        visible = self.data.get(_checked_namespace(name), Namespace()).visible
        vectors = {id: {"id": id, **_shown(visible[id])} for id in ids if id in visible}
        return {}, {"vectors": vectors, "namespace": name, "usage": {"readUnits": 1}}

    def _fetch_by_metadata(self, given: Any) -> tuple[dict[str, str], Any]:
        # https://docs.pinecone.io/reference/api/2026-07/data-plane/fetch_by_metadata
        limit = given.get("limit", 100)
        need(1 <= limit <= MAX_FETCHED_BY_METADATA, "limit is out of range")
        need(given["filter"], "Empty filter provided for fetch by metadata request")
        name = _checked_namespace(given.get("namespace", ""))
        visible = self.data.get(name, Namespace()).visible
        after = given.get("paginationToken", "")
        admits = admitting(given["filter"])
        found = sorted(id for id, each in visible.items() if id > after and admits(each["metadata"]))
        page = found[:limit]
        answer = {"vectors": {id: {"id": id, **_shown(visible[id])} for id in page}, "namespace": name}
        return {}, {**answer, "pagination": {"next": page[-1]}} if len(found) > limit else answer

    def _write(self, name: str, changes: dict[str, dict[str, Any] | None]) -> int:
        due = None if self.lag is None else self._clock + self.lag
        namespace = self.data.setdefault(name, Namespace())
        number = namespace.write(changes, due)
        namespace.come_to(self._clock)
        return number

    def _committed(self, number: int) -> dict[str, str]:
        return {"x-pinecone-request-lsn": str(number)} if self.reports_numbers else {}


# Rules -------------------------------------------------------------------------------------------


def _checked_namespace(name: Any) -> str:
    # https://docs.pinecone.io/reference/api/database-limits/identifier-limits
    need(isinstance(name, str) and len(name) <= MAX_NAMESPACE and name.isascii() and "\0" not in name, "Bad namespace")
    return str(name)


def _check_id(id: Any) -> None:
    # https://docs.pinecone.io/reference/api/database-limits/identifier-limits
    need(isinstance(id, str) and 1 <= len(id) <= MAX_ID and id.isascii() and "\0" not in id, "Bad id")


def _numbers(values: Any) -> list[float]:
    need(isinstance(values, list) and all(type(each) in {int, float} for each in values), "Bad values")
    need(all(math.isfinite(each) and abs(each) <= 3.4028235677973366e38 for each in values), "Values are 32-bit floats")
    return [float(each) for each in values]


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    # https://docs.pinecone.io/guides/index-data/indexing-overview#metadata-format
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    need(size <= MAX_METADATA_BYTES, f"Metadata size is {size} bytes, which exceeds the limit of 40960 bytes")
    kept = {}
    for key, value in metadata.items():
        need(not key.startswith("$"), "Metadata keys must not begin with $")
        if isinstance(value, list):
            need(all(isinstance(each, str) for each in value), "Lists hold text only")
        else:
            need(isinstance(value, str | int | float), "Metadata are text, numbers, booleans or lists of text")
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        kept[key] = float(value) if is_whole else value  # whole numbers become 64-bit floats
    return kept


def admitting(filter: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    """Whether metadata pass; what the filter has wrong is told here, once for all records.

    https://docs.pinecone.io/guides/search/filter-by-metadata
    """
    parts = [_condition(key, condition) for key, condition in filter.items()]
    return parts[0] if len(parts) == 1 else lambda metadata: all(part(metadata) for part in parts)


def _condition(key: str, condition: Any) -> Callable[[dict[str, Any]], bool]:
    if key in {"$and", "$or"}:
        need(isinstance(condition, list) and condition, f"{key} takes a list of conditions")
        both, inner = all if key == "$and" else any, [admitting(each) for each in condition]
        return lambda metadata: both(part(metadata) for part in inner)
    need(not key.startswith("$"), f"{key} cannot stand at the top")
    if not isinstance(condition, dict):
        condition = {"$eq": condition}
    parts = [_comparison(operator, operand) for operator, operand in condition.items()]

    def holds(metadata: dict[str, Any]) -> bool:
        value = metadata.get(key)
        values = value if isinstance(value, list) else [] if value is None else [value]
        return all(part(values) for part in parts)

    return holds


def _comparison(operator: str, operand: Any) -> Callable[[list[Any]], bool]:
    """Whether a value, or the elements of a list, compare so."""
    match operator:
        case "$eq" | "$ne":
            need(isinstance(operand, str | int | float), f"{operator} takes text, a number or a boolean")
            return _holding([operand], is_wanted=operator == "$eq")
        case "$in" | "$nin":
            need(isinstance(operand, list) and operand, f"{operator} takes a list")
            need(len(operand) <= MAX_OPERANDS, f"{operator} takes at most {MAX_OPERANDS} values")
            need(all(isinstance(each, str | int | float) and each not in (True, False) for each in operand), "Bad list")
            return _holding(operand, is_wanted=operator == "$in")
        case "$gt" | "$gte" | "$lt" | "$lte":
            need(isinstance(operand, int | float) and not isinstance(operand, bool), f"{operator} takes a number")
            return lambda values: any(_ordered(operator, each, float(operand)) for each in values)
        case "$exists":
            need(isinstance(operand, bool), "$exists takes a boolean")
            return lambda values: bool(values) is operand
    raise Refused(400, "INVALID_ARGUMENT", f"Unknown operator {operator}")


def _holding(operands: list[Any], *, is_wanted: bool) -> Callable[[list[Any]], bool]:
    asked = set(map(_comparable, operands))
    return lambda values: any(_comparable(each) in asked for each in values) is is_wanted


def _comparable(value: Any) -> Any:
    """Numbers are equal as 64-bit floats, and to no text and no boolean."""
    if isinstance(value, bool):
        return "boolean", value
    return value if isinstance(value, str) else float(value)


def _ordered(operator: str, value: Any, operand: float) -> bool:
    if isinstance(value, str | bool):
        return False
    if operator in {"$gt", "$gte"}:
        return value > operand or (operator == "$gte" and value == operand)
    return value < operand or (operator == "$lte" and value == operand)


def _shown(record: dict[str, Any], *, values: bool = True, metadata: bool = True) -> dict[str, Any]:
    wanted = {"values": values, "metadata": metadata}
    return {name: record[name] for name, is_wanted in wanted.items() if is_wanted}


# The wire ----------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *arguments: Any) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


def _handler_of(fake: PineconeFake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body leave in one piece

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            scripted = fake.scripted(self.path)
            if scripted == "hang":
                fake.waits()
            if scripted in {"hang", "drop"}:
                self.close_connection = True
                return
            if isinstance(scripted, int):
                self._send(scripted, {}, {"error": {"code": "SCRIPTED", "message": "a secret of the service"}})
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            if scripted == "rubbish":
                self._send(200, {}, ["a secret of the service"])
                return
            answer = fake.answer(self.command, self.path, headers, body)
            if scripted == "drop after":
                self.close_connection = True
                return
            self._send(*answer)

        def _send(self, status: int, headers: dict[str, str], answer: Any) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "content-type": "application/json", "content-length": len(content)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = respond  # noqa: N815 - the names that the base class calls

        def log_message(self, *arguments: Any) -> None:
            """Nothing."""

    return Handler


@pytest.fixture(scope="session")
def pinecone_service() -> Iterator[PineconeFake]:
    """The fake for all tests that leave it as it was."""
    yield from services.started("pinecone")
