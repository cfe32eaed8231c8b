"""A stand-in for Weaviate on the wire, for its official client: what it uses of REST and of gRPC.

It holds a caller to what Weaviate documents, each rule named with its page, and its vector index can be
told to lag, as with ASYNC_INDEXING: a vector is then found only after some more requests have come.

    server.lag = 3       # a vector is found from the third request after its write on
    server.lag = None    # never, until `server.catch_up()`
    server.plays("Search", UNAVAILABLE)  # the next call is answered so; also "hang", "drop after" and "some"
    server.plays("GET", 503)             # of HTTP; also "hang", "drop" and "rubbish"
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fake_weaviate_index as index
import grpc
import pytest
import services
from fake_weaviate_index import MAX_RESULTS, Refused, Shard, need
from weaviate.proto.v1 import aggregate_pb2, batch_delete_pb2, batch_pb2, search_get_pb2, weaviate_pb2_grpc

API_KEY = "a key of the tests"

# https://docs.weaviate.io/deploy/configuration/env-vars (GRPC_MAX_MESSAGE_SIZE)
MAX_MESSAGE_BYTES = 104_858_000

# What a definition has where it does not say otherwise: https://docs.weaviate.io/weaviate/config-refs/collections
HNSW = {
    "cleanupIntervalSeconds": 300,
    "distance": "cosine",
    "dynamicEfMin": 100,
    "dynamicEfMax": 500,
    "dynamicEfFactor": 8,
    "ef": -1,
    "efConstruction": 128,
    "filterStrategy": "acorn",
    "flatSearchCutoff": 40_000,
    "maxConnections": 32,
    "skip": False,
    "vectorCacheMaxObjects": 10**12,
}
INVERTED = {
    "bm25": {"b": 0.75, "k1": 1.2},
    "cleanupIntervalSeconds": 60,
    "stopwords": {"preset": "en", "additions": None, "removals": None},
}


class WeaviateFake:
    """Serves from its constructor on; `kill` and `start` keep what it holds."""

    def __init__(self, *, version: str = "1.36.0", max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self.version = version
        self.max_message_bytes = max_message_bytes
        self.api_key: str | None = None
        self.classes: dict[str, dict[str, Any]] = {}
        self.shards: dict[str, dict[str, Shard]] = {}
        self.requests: list[tuple[str, Any]] = []
        self.lag: int | None = 0
        self._clock = 0
        self._scripts: dict[str, deque[Any]] = {}
        self._lock = threading.RLock()
        self._released = threading.Event()
        self._port, self.grpc_port = services.free_port(), services.free_port()
        self._http: _Server | None = None
        self._grpc: grpc.Server | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._released.clear()
        self._http = _Server(("127.0.0.1", self._port), _handler_of(self))
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        sizes = [(f"grpc.max_{way}_message_length", self.max_message_bytes) for way in ("send", "receive")]
        self._grpc = grpc.server(ThreadPoolExecutor(16), options=[*sizes, ("grpc.so_reuseport", 0)])
        weaviate_pb2_grpc.add_WeaviateServicer_to_server(_Calls(self), self._grpc)
        self._grpc.add_insecure_port(f"127.0.0.1:{self.grpc_port}")
        self._grpc.start()

    def kill(self) -> None:
        """Stop listening, and cut every connection."""
        if self._http is None or self._grpc is None:
            return
        self._released.set()
        self._grpc.stop(0).wait()
        self._http.shutdown()
        self._http.cut()
        self._http.server_close()
        self._http = self._grpc = None

    stop = kill

    def empty(self) -> None:
        """Forget all objects and requests; the definitions of the collections stay."""
        with self._lock:
            for shards in self.shards.values():
                shards.clear()
            self.requests.clear()

    def plays(self, call: str, *answers: Any) -> None:
        """Answer the next requests of this call, or of this method of HTTP, so."""
        self._scripts[call] = deque(answers)

    def scripted(self, call: str) -> Any:
        with self._lock:
            script = self._scripts.get(call)
            return script.popleft() if script else None

    def waits(self) -> None:
        self._released.wait(30)

    def catch_up(self) -> None:
        with self._lock:
            for shards in self.shards.values():
                for shard in shards.values():
                    shard.come_to(float("inf"))

    def tick(self, call: str, request: Any, authorization: str | None) -> None:
        """One more request has come.

        Raises:
            Refused: without the key.
        """
        self._clock += 1
        self.requests.append((call, request))
        for shards in self.shards.values():
            for shard in shards.values():
                shard.come_to(self._clock)
        # https://docs.weaviate.io/deploy/configuration/authentication
        need(self.api_key is None or authorization == f"Bearer {self.api_key}", "anonymous access not enabled", 401)

    def shard(self, collection: str, tenant: str, *, is_written: bool = False) -> Shard:
        need(collection in self.classes, f"could not find class {collection}", 404)
        definition, shards = self.classes[collection], self.shards[collection]
        # https://docs.weaviate.io/weaviate/manage-collections/multi-tenancy
        need(definition["multiTenancyConfig"]["enabled"] is bool(tenant), "multi-tenancy: a tenant is needed")
        if tenant not in shards:
            is_made = is_written and definition["multiTenancyConfig"].get("autoTenantCreation")
            need(is_made, f'tenant not found: "{tenant}"', 422)
            need(re.fullmatch("[A-Za-z0-9_-]{1,64}", tenant), "tenant names are letters, digits, _ and -, 64 at most")
            shards[tenant] = Shard(definition)
        return shards[tenant]

    # REST ---------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, headers: dict[str, str], given: Any) -> tuple[int, Any]:
        with self._lock:
            try:
                if path == "/v1/.well-known/openid-configuration":
                    return 404, {}
                self.tick(method, path, headers.get("authorization"))
                return 200, self._answered(
                    "GET" if method == "HEAD" else method, path.removeprefix("/v1/").split("/"), given
                )
            except Refused as refused:
                return refused.status, {"error": [{"message": str(refused)}]}

    def _answered(self, method: str, path: list[str], given: Any) -> Any:
        match method, path:
            case "GET", ["meta"]:
                return {"version": self.version, "grpcMaxMessageSize": self.max_message_bytes, "modules": {}}
            case "GET", ["schema"]:
                return {"classes": list(self.classes.values())}
            case "POST", ["schema"]:
                return self._create(given)
            case (("GET" | "PUT"), ["schema", name]):
                need(name in self.classes, "not found", 404)
                return self.classes[name] if method == "GET" else self._update(name, given)
            case "POST", ["schema", name, "properties"]:
                return self._add_property(name, given)
            case "GET", ["schema", name, "tenants", tenant]:
                need(name in self.classes and tenant in self.shards[name], "not found", 404)
                return {"name": tenant, "activityStatus": "ACTIVE"}
            case "GET", ["schema", name, "shards"]:
                _, _, tenant = given.partition("tenant=")
                waiting = len(self.shard(name, tenant).waiting)
                return [{"name": tenant, "status": "READY", "vectorQueueSize": waiting}]
        raise Refused("no such path", 404)

    def _create(self, given: Any) -> Any:
        name = given["class"]
        # https://docs.weaviate.io/weaviate/config-refs/collections#collection-naming
        need(re.fullmatch("[A-Z][_0-9A-Za-z]{0,255}", name), f"{name} is not a valid class name")
        taken = {each.lower() for each in self.classes}
        need(name.lower() not in taken, f"class name {name} already exists", 422)
        for each in given["properties"]:
            _complete(each)
        inverted = given.get("invertedIndexConfig", {})
        stopwords = {**INVERTED["stopwords"], **inverted.get("stopwords", {})}
        multi = {"enabled": False, "autoTenantCreation": False, "autoTenantActivation": False}
        definition = {
            **given,
            "invertedIndexConfig": {**INVERTED, **inverted, "stopwords": stopwords},
            "multiTenancyConfig": {**multi, **given.get("multiTenancyConfig", {})},
            "replicationConfig": {"factor": 1, "asyncEnabled": False},
            "shardingConfig": dict.fromkeys(
                "virtualPerPhysical desiredCount actualCount desiredVirtualCount actualVirtualCount".split(), 1
            )
            | {"key": "_id", "strategy": "hash", "function": "murmur3"},
            "vectorConfig": _named(given.get("vectorConfig", {})),
        }
        self.classes[name], self.shards[name] = definition, {}
        return definition

    def _add_property(self, name: str, given: Any) -> Any:
        # https://docs.weaviate.io/weaviate/manage-collections/collection-operations#add-a-property
        taken = {each["name"].lower() for each in self.classes[name]["properties"]}
        need(given["name"].lower() not in taken, f"property {given['name']} already exists", 422)
        _complete(given)
        self.classes[name]["properties"].append(given)
        return given

    def _update(self, name: str, given: Any) -> Any:
        # https://docs.weaviate.io/weaviate/manage-collections/vector-config#add-new-named-vectors
        before, after = self.classes[name]["vectorConfig"], _named(given.get("vectorConfig", {}))
        need(bool(before) or not after, "only a collection with named vectors takes more of them", 422)
        for each, config in before.items():
            need(after.get(each) == config, f'missing or changed config for vector "{each}"', 422)
        same = all(given.get(key) == value for key, value in self.classes[name].items() if key != "vectorConfig")
        need(same, "only vectors may be added here", 422)
        self.classes[name]["vectorConfig"] = after
        return self.classes[name]

    # gRPC ---------------------------------------------------------------------------------------

    def search(self, request: Any) -> Any:
        shard = self.shard(request.collection, request.tenant)
        # https://docs.weaviate.io/weaviate/api/graphql/additional-operators#performance-considerations
        limit = request.limit or 10
        need(limit + request.offset <= MAX_RESULTS, "query maximum results exceeded")
        admitted = shard.admitted(request.filters if request.HasField("filters") else None)
        is_search = request.HasField("near_vector") or request.HasField("bm25_search")
        # https://docs.weaviate.io/weaviate/api/graphql/additional-operators#sorting-considerations
        need(not (is_search and request.sort_by), "search operators do not go with sorting")
        if request.HasField("near_vector"):
            ranked = shard.closest(request.near_vector, admitted)
        elif request.HasField("bm25_search"):
            ranked = shard.by_words(request.bm25_search, admitted)
        else:
            ranked = [(key, None) for key in shard.sorted(admitted, request.sort_by)]
        page = ranked[request.offset : request.offset + limit]
        kind = "distance" if request.HasField("near_vector") else "score"
        return search_get_pb2.SearchReply(results=[shard.result(key, kind, value, request) for key, value in page])

    def batch_objects(self, request: Any, *, is_partial: bool) -> Any:
        errors = []
        for number, each in enumerate(request.objects):
            try:
                need(not (is_partial and number % 2), "a secret of the service", 500)
                due = None if self.lag is None else self._clock + self.lag
                self.shard(each.collection, each.tenant, is_written=True).put(each, due)
            except Refused as refused:
                errors.append(batch_pb2.BatchObjectsReply.BatchError(index=number, error=str(refused)))
        return batch_pb2.BatchObjectsReply(errors=errors)

    def batch_delete(self, request: Any, *, is_partial: bool) -> Any:
        shard = self.shard(request.collection, request.tenant)
        # https://docs.weaviate.io/weaviate/manage-objects/delete: a request removes QUERY_MAXIMUM_RESULTS at most
        matches = shard.admitted(request.filters)[:MAX_RESULTS]
        done = matches[len(matches) // 2 + 1 :] if is_partial else matches
        for key in done:
            shard.remove(key)
        failed = len(matches) - len(done)
        return batch_delete_pb2.BatchDeleteReply(matches=len(matches), successful=len(done), failed=failed)

    def aggregate(self, request: Any) -> Any:
        shard = self.shard(request.collection, request.tenant)
        count = len(shard.admitted(request.filters if request.HasField("filters") else None))
        return aggregate_pb2.AggregateReply(single_result=aggregate_pb2.AggregateReply.Single(objects_count=count))


def _complete(given: dict[str, Any]) -> None:
    index.check_property(given)
    kind = given["dataType"][0]
    given.setdefault("indexFilterable", kind != "blob")
    given.setdefault("indexSearchable", kind.startswith("text"))
    given.setdefault("tokenization", "word" if kind.startswith("text") else None)


def _named(vectors: dict[str, Any]) -> dict[str, Any]:
    for name in vectors:
        # https://docs.weaviate.io/weaviate/config-refs/collections#named-vectors
        need(re.fullmatch("[A-Za-z][_0-9A-Za-z]{0,229}", name), f"{name} is not a valid vector name")
    return {
        name: {
            "vectorizer": each["vectorizer"],
            "vectorIndexType": each.get("vectorIndexType", "hnsw"),
            "vectorIndexConfig": {**HNSW, **each.get("vectorIndexConfig", {})},
        }
        for name, each in vectors.items()
    }


# The wire ----------------------------------------------------------------------------------------


class _Calls(weaviate_pb2_grpc.WeaviateServicer):
    def __init__(self, fake: WeaviateFake) -> None:
        self._fake = fake

    def Search(self, request, context):  # noqa: N802 - the names that the stubs have
        return self._answer("Search", request, context)

    def BatchObjects(self, request, context):  # noqa: N802
        return self._answer("BatchObjects", request, context)

    def BatchDelete(self, request, context):  # noqa: N802
        return self._answer("BatchDelete", request, context)

    def Aggregate(self, request, context):  # noqa: N802
        return self._answer("Aggregate", request, context)

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        scripted = self._fake.scripted(call)
        if scripted == "hang":
            self._fake.waits()
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        if isinstance(scripted, grpc.StatusCode):
            context.abort(scripted, "a secret of the service")
        try:
            with self._fake._lock:
                authorization = dict(context.invocation_metadata()).get("authorization")
                self._fake.tick(call, request, authorization)
                answer = self._answered(call, request, is_partial=scripted == "some")
        except Refused as refused:
            # Weaviate's own failures come as UNKNOWN, but for access
            code = grpc.StatusCode.UNAUTHENTICATED if refused.status == 401 else grpc.StatusCode.UNKNOWN
            context.abort(code, str(refused))
        if scripted == "drop after":  # what the client sees of a connection that ends before the answer
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")
        return answer

    def _answered(self, call: str, request: Any, *, is_partial: bool) -> Any:
        match call:
            case "Search":
                return self._fake.search(request)
            case "BatchObjects":
                return self._fake.batch_objects(request, is_partial=is_partial)
            case "BatchDelete":
                return self._fake.batch_delete(request, is_partial=is_partial)
        return self._fake.aggregate(request)


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


def _handler_of(fake: WeaviateFake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body leave in one piece

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            scripted = fake.scripted(self.command)
            if scripted == "hang":
                fake.waits()
            if scripted in {"hang", "drop"}:
                self.close_connection = True
                return
            if scripted == "rubbish":
                self._send(200, ["a secret of the service"])
                return
            if isinstance(scripted, int):
                self._send(scripted, {"error": [{"message": "a secret of the service"}]})
                return
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(*fake.answer(self.command, path, headers, json.loads(body) if body else query))

        def _send(self, status: int, answer: Any) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = respond  # noqa: N815 - the names that the base class calls

        def log_message(self, *arguments: Any) -> None:
            """Nothing."""

    return Handler


@pytest.fixture(scope="session")
def weaviate_service() -> Iterator[WeaviateFake]:
    """The fake for all tests that leave it as it was."""
    yield from services.started("weaviate")
