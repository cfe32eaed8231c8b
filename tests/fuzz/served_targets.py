"""What is fuzzed through a server: requests of HTTP, messages of MCP, and files that are imported."""

from __future__ import annotations

import asyncio
import json
import tempfile
import urllib.parse
from functools import cache
from typing import Any

from feeding import Feed
from served import TOKEN, client_of
from targets import Target
from vocabularies import ANSWER_WORDS, FILTER_WORDS, LINE_WORDS, MESSAGE_WORDS, PACK_WORDS

from lamina.domain.text import clean
from lamina.importers.ndjson import BadLines, import_ndjson
from lamina.kernel import Kernel, ModelRouter
from lamina.mcp import PROFILES
from lamina.server import create_app
from lamina.settings import ServerConfig
from lamina.testing import EchoModel, HashingEmbedder

WORDS = [
    *LINE_WORDS,
    *MESSAGE_WORDS,
    *PACK_WORDS,
    *FILTER_WORDS,
    "query",
    "goal",
    "limit",
    "where",
    "messages",
    "known",
]
LOST = {500, 502, 504}
"""Statuses that say that something went wrong which nobody thought of; 501 and 503 say what is missing."""


class Served:
    """A kernel over a file, and its app with MCP, in a loop that runs for one input at a time."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lamina-fuzz-")
        self._loop = asyncio.new_event_loop()
        router = ModelRouter(EchoModel(), embed=HashingEmbedder())
        self.kernel = Kernel(data_dir=self._folder.name, model_router=router)
        self.run(self.kernel.start())
        self.run(self.kernel.memory_engine.store("Ann likes tea.", id="known"))
        self.app = create_app(self.kernel, auth={TOKEN}, settings=ServerConfig(rate_limited=False, mcp=True))
        self.tools = [each.described() for each in PROFILES["default"]]
        self._started, self._stop = asyncio.Event(), asyncio.Event()
        self._mcp = self._loop.create_task(self._serve_mcp())
        self.run(self._started.wait())
        self.routes = [
            (method.upper(), path)
            for path, methods in sorted(self.app.openapi()["paths"].items())
            for method in sorted(methods)
        ]

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    async def _serve_mcp(self) -> None:
        async with self.app.state.mcp.lifespan():
            self._started.set()
            await self._stop.wait()

    def ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        async def ask() -> tuple[int, bytes]:
            async with client_of(self.app) as client:
                given = {"Content-Type": "application/json", **headers}
                answer = await client.request(
                    method, url, content=body, headers={name: value for name, value in given.items() if value}
                )
                return answer.status_code, answer.content

        return self.run(ask())

    def close(self) -> None:
        self._stop.set()
        self.run(self._mcp)
        self.run(self.kernel.stop())
        self._loop.close()
        self._folder.cleanup()


@cache
def served() -> Served:
    return Served()


def http_requests(data: bytes) -> None:
    feed, server = Feed(data), served()
    method, path = feed.choice(server.routes)
    while "{" in path:
        before, _, rest = path.partition("{")
        named = feed.choice(("known", "a", feed.text(WORDS)[:100] or "a"))
        path = before + urllib.parse.quote(named.encode("utf-8", "surrogatepass"), safe="") + rest.partition("}")[2]
    query = urllib.parse.urlencode(
        [
            (clean(feed.name(WORDS))[:100], feed.text(WORDS)[:100].encode("utf-8", "surrogatepass"))
            for _ in range(feed.byte() % 3)
        ]
    )
    match feed.byte() % 4:
        case 0:
            body = feed.rest()
        case 1:
            body = feed.text([*WORDS, *ANSWER_WORDS]).encode("utf-8", "surrogatepass")
        case _:
            body = json.dumps(feed.mapping(WORDS)).encode()
    kind = feed.choice(
        (
            "application/json",
            "application/json",
            "application/x-ndjson",
            "multipart/form-data; boundary=a",
            "text/plain",
            "",
        )
    )

    headers = {"Content-Type": kind, "Idempotency-Key": "k" * (feed.byte() % 2)}
    status, answer = server.ask(method, f"{path}?{query}", body, headers)
    assert status not in LOST, (method, path, query, body[:500], status, answer[:300])


def mcp_messages(data: bytes) -> None:
    """Messages as they come over the network, which the library's own client would not send."""
    feed, server = Feed(data), served()
    tool = feed.choice(server.tools)
    names = list(tool.input_schema.get("properties", {}))
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": feed.choice((1, "a", 2**63, 0.5, None)) if feed.byte() % 8 == 0 else 1,
        "method": "tools/call",
        "params": {"name": tool.name, "arguments": feed.mapping([*names, *names, *WORDS])},
    }
    if feed.byte() % 8 == 0:
        message[feed.choice(("method", "params", "jsonrpc", "id"))] = feed.value(
            ["tools/list", "ping", "resources/read", *WORDS]
        )
    body = json.dumps(message).encode() if feed.byte() % 8 else feed.mutated(json.dumps(message).encode())
    status, answer = server.ask("POST", "/mcp", body, {"Accept": "application/json, text/event-stream"})
    assert status not in LOST, (body[:500], status, answer[:300])
    assert b"Traceback" not in answer


def imports(data: bytes) -> None:
    """Whatever stands in a file: what is refused wrote nothing but what it says."""
    feed, server = Feed(data), served()
    engine = server.kernel.memory_engine
    lines = [
        json.dumps(feed.mapping(LINE_WORDS)) if feed.byte() % 3 else feed.text(LINE_WORDS)
        for _ in range(feed.byte() % 5)
    ]
    before = server.run(engine.count())
    written = 0
    try:
        written = server.run(import_ndjson(engine, lines, skip_bad_lines=bool(feed.byte() % 2))).written
    except BadLines as refused:
        written = refused.written
    assert server.run(engine.count()) == before + written


SERVED: dict[str, Target] = {each.__name__: each for each in (http_requests, mcp_messages, imports)}
