"""What HTTP adds to a recall, and how many a server answers: `python benchmarks/server_recall.py [--seconds 10]`.

First, in one process and in alternating blocks: the library's recall, the same over a kept connection, a route of the
server that does nothing, and the plainest ASGI app behind the same web server. Beside the milliseconds stand those that
the processor was at work, which other load on the machine changes less; the client's share, about a tenth of a
millisecond, is in both. With --canned the engine answers at once what it has found before: that leaves HTTP alone.

Then `lamina serve` with --workers processes is asked over --clients kept connections for some seconds. Embedding is no
part of what is measured: there the vectors come from hashing words, here each worker keeps those of the few queries.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is loaded

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import uvicorn

import lamina
from lamina.domain.api_token import TokenScope
from lamina.kernel import ModelRouter
from lamina.kernel.api_tokens import issue_token
from lamina.kernel.tenants import TenantKernels
from lamina.ports.clock import utc_now
from lamina.server import create_app
from lamina.server.running import authenticator
from lamina.settings import ServerConfig
from lamina.testing import EchoModel, HashingEmbedder

ONSETS, MIDDLES = "ba ce di fo gu ha ki lo mu ne pra sti".split(), "lar ten vis mod rup sel fin gar".split()
WORDS = [a + b + c for a in ONSETS for b in MIDDLES for c in "a on ix ul em ad it or us ep".split()]
COMMONNESS = [1 / rank for rank in range(10, 10 + len(WORDS))]  # few words are common, most are rare, as in a language
QUERIES, ROUNDS, WARM = 40, 10, 40
SERVER = [sys.executable, "-c", "from lamina.cli import main; main()", "serve", "--json", "--port", "0"]
UNLIMITED = ServerConfig(rate_limited=False)


class Connection:
    """One kept connection, and no more of HTTP than this needs: a client's own work should not be measured."""

    async def open(self, port: int) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if not head.startswith(b"http/1.1 200"):
            raise SystemExit(head.decode())
        return await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def request_of(method: str, path: str, token: str, body: Any = None) -> bytes:
    sent = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", "Accept: */*"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(sent)}"]
    return "\r\n".join([*lines, "", ""]).encode() + sent


async def plainest(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[Connection]:
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="on", **options))
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    running = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has no event for that
        await asyncio.sleep(0.01)
    connection = await Connection().open(server.servers[0].sockets[0].getsockname()[1])
    try:
        yield connection
    finally:
        connection.close()
        server.should_exit = True
        await running


def texts(count: int) -> list[str]:
    chance = random.Random(7)
    return [f"{number} " + " ".join(chance.choices(WORDS, COMMONNESS, k=12)) for number in range(count)]


def queries() -> list[str]:
    chance = random.Random(8)
    return [" ".join(chance.choices(WORDS, COMMONNESS, k=4)) for _ in range(QUERIES)]


def recall(token: str, query: str) -> bytes:
    return request_of("POST", "/v1/memories/recall", token, {"query": query, "limit": 10})


async def fill(kernels: TenantKernels, count: int) -> str:
    """Store the memories of one owner, and make a token for the owner."""
    engine = (await kernels.of("default")).memory_engine
    all_texts = texts(count)
    for start in range(0, count, 1000):
        await engine.store_many([{"content": text, "owner": "ann"} for text in all_texts[start : start + 1000]])
    scopes = [TokenScope.READ, TokenScope.WRITE]
    _, secret = await issue_token(kernels.server, tenant="default", owner="ann", scopes=scopes, now=utc_now())
    return secret


async def overhead(count: int, *, canned: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-recall-") as folder:
        router = ModelRouter(EchoModel(), embed=HashingEmbedder())
        async with TenantKernels(data_dir=folder, model_router=router) as kernels:
            token = await fill(kernels, count)
            engine = (await kernels.of("default")).memory_engine
            if canned:
                found = await engine.recall(query=queries()[0], limit=10, owner="ann")

                async def answer(*_: Any, **__: Any) -> Any:
                    return found

                engine.recall = answer  # type: ignore[method-assign]
            auth = authenticator(UNLIMITED, kernels.server)
            app = create_app(kernels, auth=auth, settings=UNLIMITED, store=kernels.server)
            async with serving(app) as http, serving(plainest) as bare:
                kinds: dict[str, Callable[[str], Awaitable[Any]]] = {
                    "library": lambda query: engine.recall(query=query, limit=10, owner="ann"),
                    "over HTTP": lambda query: http.ask(recall(token, query)),
                    "a route that does nothing": lambda _: http.ask(request_of("GET", "/healthz", token)),
                    "the plainest ASGI app": lambda _: bare.ask(request_of("GET", "/", token)),
                }
                await measure(kinds)


async def measure(kinds: dict[str, Callable[[str], Awaitable[Any]]]) -> None:
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    busy: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, ask in kinds.items():
            began_work = time.process_time()
            for query in queries():
                began = time.perf_counter()
                await ask(query)
                seconds[kind].append(time.perf_counter() - began)
            busy[kind].append((time.process_time() - began_work) / QUERIES)
    print("| | p50 ms | beyond the library | processor ms, least | beyond the library |\n|---|---|---|---|---|")
    own, least = statistics.median(seconds["library"]), min(busy["library"])
    for kind in kinds:
        p50, work = statistics.median(seconds[kind]), min(busy[kind])
        figures = (p50, p50 - own, work, work - least)
        print(f"| {kind} | " + " | ".join(f"{1000 * each:.2f}" for each in figures) + " |")


def throughput(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-recall-") as folder:
        token = asyncio.run(_filled(folder, options.memories))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
        environment = {**kept, "LAMINA_DATA_DIR": folder, "LAMINA_SERVER__RATE_LIMITED": "false"}
        environment["PYTHONPATH"] = str(Path(lamina.__file__).parents[1])
        command = [*SERVER, "--workers", str(options.workers)]
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            line = "" if server.stdout is None else server.stdout.readline()
            port = int(json.loads(line)["address"].rpartition(":")[2])
            taken = asyncio.run(_asked(port, token, options))
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
    points = statistics.quantiles(taken, n=100)
    rate = (
        f"{len(taken) / options.seconds:.0f} a second, p50 {1000 * points[49]:.1f} ms, p99 {1000 * points[98]:.1f} ms"
    )
    print(f"\n{options.workers} workers, {options.clients} connections: {rate}")


async def _filled(folder: str, memories: int) -> str:
    async with TenantKernels(data_dir=folder) as kernels:
        return await fill(kernels, memories)


async def _asked(port: int, token: str, options: argparse.Namespace) -> list[float]:
    taken = await asyncio.gather(*(_client(port, token, options.seconds) for _ in range(options.clients)))
    return [each for one in taken for each in one]


async def _client(port: int, token: str, seconds: float) -> list[float]:
    connection = await Connection().open(port)
    asked = queries()
    for query in asked[:WARM]:
        await connection.ask(recall(token, query))
    until, taken = time.perf_counter() + seconds, []
    while (began := time.perf_counter()) < until:
        await connection.ask(recall(token, random.choice(asked)))
        taken.append(time.perf_counter() - began)
    connection.close()
    return taken


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--memories", type=int, default=2000)
    made.add_argument("--workers", type=int, default=2)
    made.add_argument("--clients", type=int, default=16)
    made.add_argument("--seconds", type=float, default=10)
    made.add_argument("--canned", action="store_true")
    return made


if __name__ == "__main__":
    print(f"Lamina {lamina.__version__}")
    given = parser().parse_args()
    asyncio.run(overhead(given.memories, canned=given.canned))
    if not given.canned:
        throughput(given)
