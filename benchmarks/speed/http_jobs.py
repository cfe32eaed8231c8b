"""Recall through HTTP: connections that are kept, one or two processes on one socket, and the same call inside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from speed.dataset import Dataset, Query
from speed.processes import SCRIPT
from speed.records import Record, median_ms, percentile, tell
from speed.systems import LAMINA, GivenVectors, Lamina, with_vectors
from speed.timing import alternate

CLIENTS: Final = 16
BACKLOG: Final = 128


class Connection:
    """One connection that is kept, and as little client as can be: what is measured is the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer.

        Raises:
            SystemExit: it was refused.
        """
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        body = await self._reader.readexactly(length)
        if b" 200 " not in head[:16]:
            sys.exit(f"the server answered {lines[0]}: {body[:200]!r}")
        return body

    def close(self) -> None:
        self._writer.close()


def request_of(query: Query) -> bytes:
    body = json.dumps({"query": query.text, "owner": query.owner, "limit": 10, "touch": False}).encode()
    head = (
        "POST /v1/memories/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextlib.asynccontextmanager
async def serving(data: Dataset, folder: Path, workers: int) -> AsyncIterator[int]:
    """So many processes on one socket, as the workers of `lamina serve`, all of them ready; the port."""
    from lamina.server.sharing import ConnectionCounts

    counts = ConnectionCounts.of(workers)
    with contextlib.closing(counts), socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        listener.set_inheritable(True)
        started = [_started(data, folder, (listener.fileno(), counts.descriptor), place) for place in range(workers)]
        try:
            for process in started:
                line = process.stdout.readline() if process.stdout else b""
                if not line:
                    sys.exit("a server did not start")
            yield listener.getsockname()[1]
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.communicate(timeout=30)


def _started(data: Dataset, folder: Path, inherited: tuple[int, int], place: int) -> subprocess.Popen[bytes]:
    options = json.dumps({"folder": str(folder), "data": str(data.folder), "memories": data.count})
    command = [sys.executable, str(SCRIPT), "child", "serve", options, *map(str, (*inherited, place))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=inherited)


async def serve(data: Dataset, folder: Path, inherited: Sequence[str]) -> None:
    """One server process, with given vectors; it inherits the socket and the counts, and has a place among them."""
    from lamina.server.running import serve as serve_on
    from lamina.server.sharing import ConnectionCounts, Place
    from lamina.settings import define_config

    descriptor, counts, number = map(int, inherited)
    place = Place(ConnectionCounts(counts), number)
    embedder = GivenVectors()
    embedder.give(data.queries())
    config = define_config(
        data_dir=folder, memory={"path": folder / "lamina.db", "embed": embedder}, server={"maintenance_interval": 0}
    )
    with socket.socket(fileno=descriptor) as listener:
        await serve_on(config, listener, ready=lambda _asks: print("ready", flush=True), place=place)


async def http(data: Dataset, folder: Path, seconds: float) -> None:
    """The time of one request over that of the call, and how many requests a second one and two processes answer."""
    queries = data.queries()
    async with serving(data, folder, 1) as port:
        await _beside_the_call(data, folder, queries, port=port, seconds=seconds)
        await throughput(data, queries, port, workers=1, seconds=seconds)
    async with serving(data, folder, 2) as port:
        await throughput(data, queries, port, workers=2, seconds=seconds)


async def _beside_the_call(data: Dataset, folder: Path, queries: Sequence[Query], *, port: int, seconds: float) -> None:
    system = Lamina()
    with_vectors(system, queries)
    await system.open(folder)
    connection = await Connection.to(port)
    await asyncio.gather(*(connection.ask(request_of(query)) for query in queries[:1]))
    over, direct = await alternate(
        queries,
        lambda query: connection.ask(request_of(query)),
        lambda query: system.search(query, "hybrid", scoped=True),
        seconds=seconds,
    )
    connection.close()
    await system.close()
    beyond = median_ms(over) - median_ms(direct)
    note = f"{median_ms(over):.3g} ms, the call {median_ms(direct):.3g} ms"
    tell(Record("recall over HTTP beyond the call", LAMINA, data.count, beyond, "ms", note=note))


async def throughput(data: Dataset, queries: Sequence[Query], port: int, *, workers: int, seconds: float) -> None:
    requests = [request_of(query) for query in queries]
    times: list[float] = []
    await _clients(port, requests, min(1.0, seconds / 4), [])
    began = time.perf_counter()
    await _clients(port, requests, seconds, times)
    rate = len(times) / (time.perf_counter() - began)
    name = f"recall over HTTP, {workers} worker{'s'[: workers - 1]}"
    p99 = percentile(times, 0.99) * 1_000
    tell(Record(name, LAMINA, data.count, rate, "requests/s", note=f"p50 {median_ms(times):.3g} ms"))
    tell(Record(f"{name}, p99", LAMINA, data.count, p99, "ms"))


async def _clients(port: int, requests: Sequence[bytes], seconds: float, times: list[float]) -> None:
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = await Connection.to(port)
        place = number
        while (began := time.perf_counter()) < until:
            await connection.ask(requests[place % len(requests)])
            times.append(time.perf_counter() - began)
            place += CLIENTS
        connection.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
