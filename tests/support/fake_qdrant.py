"""Qdrant's REST API over the client library's own local engine: a fake on the wire, written from the API reference.

No package brings the server itself. What is faked is what stands between the official client and the engine:
paths, envelopes, status codes, the key, and the limits that the local engine does not have. The reference is
https://api.qdrant.tech/api-reference; the guides are at https://qdrant.tech/documentation. Each rule names its page.
"""

from __future__ import annotations

import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import services
from pydantic import BaseModel, TypeAdapter, ValidationError

MAX_REQUEST = 32 * 1024 * 1024
"""guides/configuration: `service.max_request_size_mb` is 32 by default; a larger body is refused with 413."""

MAX_DIMENSIONS = 65_536
"""api-reference/collections/create-collection: the size of a vector is from 1 to 65,536."""

VERSION = "1.20.0"
ORDERED = {"integer", "float", "datetime", "uuid"}
"""concepts/points, "Order points by payload key": the key needs an index that has an order."""


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Fault:
    """What happens to a request in place of, or after, being answered."""

    status: int | None = None
    """Answered with this, and not done."""
    is_done: bool = False
    """Done, though it is not answered."""
    hangs: float = 0
    """Seconds that pass before anything else."""
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()


class QdrantServer:
    """Listens on a port of its own; tests may take it down, bring it up again, and spoil single requests."""

    def __init__(self, *, api_key: str | None = None, version: str = VERSION) -> None:
        from qdrant_client.local.qdrant_local import QdrantLocal

        self.engine = QdrantLocal(":memory:")
        self.lock = threading.RLock()
        self.indexes: dict[str, dict[str, str]] = {}
        self.replicas: dict[str, tuple[int, int]] = {}
        self.strict = False
        self.api_key = api_key
        self.version = version
        self.port = services.free_port()
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], Fault | None] = _no_fault
        self._http: _Http | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._http = _Http(("127.0.0.1", self.port), _Handler)
        self._http.qdrant = self
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self) -> None:
        """Cut every connection and answer no more; what was written stays."""
        if self._http is not None:
            self._http.shutdown()
            self._http.cut()
            self._http.server_close()
            self._http = None

    def stop(self) -> None:
        self.kill()
        self.engine.close()

    def empty(self, name: str) -> None:
        """Give a collection back as it was when it was made, with its indexes, if it is there."""
        with self.lock:
            if name in self.engine.collections:
                config = self.engine.get_collection(name).config.params
                self.engine.delete_collection(name)
                self.engine.create_collection(name, {}, sparse_vectors_config=config.sparse_vectors)
            self.requests.clear()

    def spoil(self, method: str, path: str, fault: Fault, *, times: int = 1) -> None:
        """The next requests of this method whose path ends so meet the fault."""
        left = [times]

        def decide(asked: str, at: str) -> Fault | None:
            if asked != method or not at.endswith(path) or not left[0]:
                return None
            left[0] -= 1
            return fault

        self.fault = decide

    # What the paths do --------------------------------------------------------------------

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> Any:
        if path == "/":  # api-reference/service/root
            return {"title": "qdrant - vector search engine", "version": self.version}
        for known, pattern, work in _ROUTES:
            match = re.fullmatch(pattern, path)
            if known == method and match is not None:
                names = [unquote(each) for each in match.groups()]
                with self.lock:
                    if work is not _create and work is not _exists and names[0] not in self.engine.collections:
                        raise Refused(404, f"Not found: Collection `{names[0]}` doesn't exist!")
                    return work(self, query, body, *names)
        raise Refused(404, "")

    def check_filter(self, name: str, filter: Any) -> None:
        """guides/administration, "Strict mode": no condition on a field without an index.

        Strict mode is on by default in the vendor's cloud; here the rule holds always, since an adapter that keeps it
        has no scan of all payloads.
        """
        for key in _keys(filter):
            if key not in self.indexes[name]:
                raise Refused(400, f'Bad request: Index required but not found for "{key}" of one of the types')

    def done(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """api-reference/points/upsert-points: without `wait` the change is acknowledged, not completed."""
        return {"operation_id": 1, "status": "completed" if query.get("wait") == ["true"] else "acknowledged"}


def _create(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.CreateCollection, body)
    if name in server.engine.collections:
        raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
    for params in (wanted.vectors or {}).values():
        _check_size(params.size)
    server.engine.create_collection(name, wanted.vectors or {}, sparse_vectors_config=wanted.sparse_vectors)
    server.indexes[name] = {}
    server.replicas[name] = wanted.replication_factor or 1, wanted.write_consistency_factor or 1
    return True


def _exists(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    return {"exists": name in server.engine.collections}


def _info(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    info = _json(server.engine.get_collection(name))
    replicas, confirmed = server.replicas[name]
    info["config"]["params"] |= {"replication_factor": replicas, "write_consistency_factor": confirmed}
    info["config"]["strict_mode_config"] = {"enabled": server.strict}
    schema = {key: {"data_type": kind, "points": 0} for key, kind in server.indexes[name].items()}
    return info | {"payload_schema": schema}


def _drop(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    server.engine.delete_collection(name)
    del server.indexes[name]
    return True


def _index(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.CreateFieldIndex, body)
    schema = wanted.field_schema
    if schema is None:
        raise Refused(422, "field_schema is missing")
    server.indexes[name][wanted.field_name] = str(getattr(getattr(schema, "type", schema), "value", schema))
    return server.done(query)


def _vector(server: QdrantServer, query: Any, body: bytes, name: str, vector: str) -> Any:
    from qdrant_client import models

    if _version(server.version) < (1, 18):  # the first version whose reference has the path
        raise Refused(404, "")
    wanted = _parsed(models.DenseVectorNameConfig, body)
    _check_size(wanted.dense.size)
    server.engine.create_vector_name(name, vector, wanted)
    return server.done(query)


def _upsert(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.PointsList, body)
    _check_sparse(wanted.points)
    server.check_filter(name, wanted.update_filter)
    server.engine.upsert(name, wanted.points, update_filter=wanted.update_filter)
    return server.done(query)


def _delete(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.PointsSelector, body)
    server.check_filter(name, getattr(wanted, "filter", None))
    server.engine.delete(name, wanted)
    return server.done(query)


def _set_payload(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.SetPayload, body)
    server.check_filter(name, wanted.filter)
    selected = wanted.points if wanted.points is not None else wanted.filter
    server.engine.set_payload(name, wanted.payload, points=selected)
    return server.done(query)


def _batch(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.UpdateOperations, body)
    for each in wanted.operations:
        server.check_filter(name, each.set_payload.filter)
    server.engine.batch_update_points(name, wanted.operations)
    return [server.done(query) for _ in wanted.operations]


def _retrieve(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.PointRequest, body)
    return _json(server.engine.retrieve(name, wanted.ids, with_payload=wanted.with_payload, with_vectors=False))


def _scroll(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.ScrollRequest, body)
    server.check_filter(name, wanted.filter)
    _check_limit(wanted.limit)
    if wanted.order_by is not None:
        key = getattr(wanted.order_by, "key", wanted.order_by)
        if server.indexes[name].get(key) not in ORDERED:
            raise Refused(400, f"Bad request: No range index for `order_by` key: `{key}`")
    points, offset = server.engine.scroll(
        name,
        scroll_filter=wanted.filter,
        limit=wanted.limit or 10,
        order_by=wanted.order_by,
        with_payload=wanted.with_payload,
    )
    return {"points": _json(points), "next_page_offset": offset}


def _count(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.CountRequest, body)
    server.check_filter(name, wanted.filter)
    return _json(server.engine.count(name, wanted.filter))


def _query(server: QdrantServer, query: Any, body: bytes, name: str) -> Any:
    from qdrant_client import models

    wanted = _parsed(models.QueryRequest, body)
    server.check_filter(name, wanted.filter)
    _check_limit(wanted.limit)
    params = wanted.params
    if server.strict and params is not None and (params.exact or params.hnsw_ef):
        raise Refused(400, "Bad request: Exact search is not allowed")  # guides/administration, "Strict mode"
    found = server.engine.query_points(
        name,
        query=wanted.query,
        using=wanted.using,
        query_filter=wanted.filter,
        limit=wanted.limit or 10,
        with_payload=wanted.with_payload,
    )
    return _json(found)


_NAME = "/collections/([^/]+)"
_ROUTES = (
    ("GET", f"{_NAME}/exists", _exists),  # api-reference/collections/collection-exists
    ("GET", _NAME, _info),  # api-reference/collections/get-collection
    ("PUT", _NAME, _create),  # api-reference/collections/create-collection
    ("DELETE", _NAME, _drop),  # api-reference/collections/delete-collection
    ("PUT", f"{_NAME}/index", _index),  # api-reference/indexes/create-field-index
    ("PUT", f"{_NAME}/vectors/([^/]+)", _vector),  # api-reference/collections/create-vector-name
    ("PUT", f"{_NAME}/points", _upsert),  # api-reference/points/upsert-points
    ("POST", f"{_NAME}/points", _retrieve),  # api-reference/points/get-points
    ("POST", f"{_NAME}/points/delete", _delete),  # api-reference/points/delete-points
    ("POST", f"{_NAME}/points/payload", _set_payload),  # api-reference/points/set-payload
    ("POST", f"{_NAME}/points/batch", _batch),  # api-reference/points/batch-update
    ("POST", f"{_NAME}/points/scroll", _scroll),  # api-reference/points/scroll-points
    ("POST", f"{_NAME}/points/count", _count),  # api-reference/points/count-points
    ("POST", f"{_NAME}/points/query", _query),  # api-reference/search/query-points
)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    qdrant: QdrantServer

    def __init__(self, *arguments: Any) -> None:
        self.open: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client went away, as some tests make it do."""

    def cut(self) -> None:
        for each in list(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body go out together
    server: _Http

    def _serve(self) -> None:
        size = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(size)
        parts = urlsplit(self.path)
        server = self.server.qdrant
        server.requests.append((self.command, parts.path))
        fault = server.fault(self.command, parts.path)
        if fault is not None:
            time.sleep(fault.hangs)
            if fault.is_done:
                server.answer(self.command, parts.path, parse_qs(parts.query), body)
            if fault.status is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._send(fault.status, fault.body or _error(fault.status, "as the test wants it"), fault.headers)
            return
        self._send(*self._answer(server, parts.path, parse_qs(parts.query), body))

    def _answer(self, server: QdrantServer, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, bytes]:
        # guides/security: the key in the header `api-key`, or as a bearer token
        given = self.headers.get("api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        if server.api_key is not None and given != server.api_key:
            return 401, b"Must provide an API key or an Authorization bearer token"
        if len(body) > MAX_REQUEST:
            return 413, _error(413, f"JSON payload ({len(body)} bytes) is larger than allowed (limit: {MAX_REQUEST}).")
        try:
            result = server.answer(self.command, path, query, body)
        except Refused as refused:
            return refused.status, _error(refused.status, str(refused))
        except ValidationError:
            return 400, _error(400, "Format error in JSON body")
        except (ValueError, KeyError) as error:
            return 400, _error(400, f"Wrong input: {type(error).__name__}")
        if path == "/":
            return 200, _dumped(result)
        return 200, _dumped({"usage": None, "time": 0.001, "status": "ok", "result": result})

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        for name, value in (("content-type", "application/json"), ("content-length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the names that the base class calls


def _no_fault(method: str, path: str) -> Fault | None:
    return None


def _keys(filter: Any, under: str = "") -> Iterator[str]:
    """The fields that a filter looks at, as an index names them."""
    if filter is None:
        return
    for conditions in (filter.must, filter.should, filter.must_not):
        for each in conditions if isinstance(conditions, list) else [conditions]:
            if hasattr(each, "nested"):
                yield from _keys(each.nested.filter, f"{under}{each.nested.key}[].")
            elif hasattr(each, "key"):
                yield under + each.key
            elif hasattr(each, "must"):
                yield from _keys(each, under)


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def _parsed(kind: Any, body: bytes) -> Any:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind].validate_json(body)


def _json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_json(each) for each in value]


def _dumped(value: Any) -> bytes:
    return _ANY.dump_json(value)


def _error(status: int, message: str) -> bytes:
    """An empty body where no path is: so does the server's router answer."""
    return _dumped({"status": {"error": message}, "time": 0.0}) if message or status != 404 else b""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _check_size(size: int) -> None:
    if not 1 <= size <= MAX_DIMENSIONS:
        raise Refused(422, "Validation error in JSON body: size must be from 1 to 65536")


def _check_limit(limit: int | None) -> None:
    """api-reference/points/scroll-points: a limit is at least 1."""
    if limit is not None and limit < 1:
        raise Refused(422, "Validation error in JSON body: limit must be 1 or larger")


def _check_sparse(points: list[Any]) -> None:
    """api-reference/points/upsert-points: the indices of a sparse vector are unique whole numbers of 32 bits."""
    for point in points:
        for vector in point.vector.values():
            indices = getattr(vector, "indices", [])
            if len(set(indices)) != len(indices) or not all(0 <= each < 2**32 for each in indices):
                raise Refused(422, "Validation error in JSON body: indices must be unique and of 32 bits")


@pytest.fixture(scope="session")
def qdrant() -> Iterator[QdrantServer]:
    """One server for the whole run; each test keeps to a collection of its own."""
    yield from services.started("qdrant")


@pytest.fixture
def qdrant_table(qdrant: QdrantServer) -> Iterator[str]:
    """A collection that no other test uses; it is dropped."""
    name = f"test_{time.monotonic_ns()}"
    yield name
    with qdrant.lock:
        for each in [each for each in qdrant.engine.collections if each.startswith(name)]:
            qdrant.engine.delete_collection(each)
            qdrant.indexes.pop(each)


@pytest.fixture
def qdrant_server() -> Iterator[QdrantServer]:
    """A server that is this test's own, to be taken down and spoilt."""
    server = services.start("qdrant")
    yield server
    server.stop()


@pytest.fixture
def qdrant_folder() -> Iterator[Path]:
    """A folder for the local engine, which syncs it for each point: in memory, where there is such a place."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="lamina-qdrant-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "store"
