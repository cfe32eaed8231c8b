"""Whether memory grows with what is done: `python benchmarks/growth.py [operations]`, by default 20,000.

Operations of a server over one file, through its app: they store, recall, list, forget, keep a session and repeat
requests by their keys, for owners, ids and texts that were never there before; what is stored is deleted again, so that
what is there stays as large. What is kept at hand of so many owners or requests is bounded low here, so that the bounds
are reached at once. Told for each tenth: bytes that Python holds (by `tracemalloc`), and the whole process
(RSS). Ends with 1 if the last half grew by more than 64 bytes an operation. Then 200 kernels are opened and closed: as
many files and threads must be open afterwards as before.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import httpx2

from lamina.kernel import Kernel, ModelRouter, sessions
from lamina.server import create_app, requests
from lamina.testing import EchoModel, HashingEmbedder

TOKEN = "the-token"  # noqa: S105 - of nothing
SLICES = 10
ALLOWED = 64
OPENED = 200
sessions.MAX_KEPT = requests._MOST = 20  # type: ignore[misc]  # noqa: SLF001
WORDS = "tea milk lamp harbour winter letter garden stone river bread".split()


async def one(http: httpx2.AsyncClient, number: int) -> None:
    """About ten operations, which leave nothing behind."""
    owner, text = f"owner-{number}", f"{WORDS[number % 10]} {WORDS[number // 10 % 10]} number {number}"
    key = {"Idempotency-Key": f"key-{number}"}
    ids = []
    for headers in (key, key, {}):
        answer = await http.post("/v1/memories", json={"content": text, "owner": owner}, headers=headers)
        ids.append(answer.raise_for_status().json()["id"])
    await http.post("/v1/memories/recall", json={"query": text, "owner": owner})
    await http.get("/v1/memories", params={"owner": owner})
    event = {"message": {"role": "user", "content": text}}
    session = f"/v1/sessions/session-{number}"
    (await http.post(f"{session}/events", json={"events": [event]})).raise_for_status()
    await http.get(f"{session}/context")
    (await http.delete(session)).raise_for_status()
    await http.get(f"/v1/nowhere/{number}")
    for id in set(ids):
        (await http.delete(f"/v1/memories/{id}", params={"owner": owner})).raise_for_status()


OF_ONE = 10


async def grown(folder: Path, operations: int) -> list[tuple[int, float]]:
    """Bytes that Python holds, and MB of the process, after each slice."""
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    told = []
    async with Kernel(data_dir=folder, model_router=router) as kernel:
        transport: Any = httpx2.ASGITransport(create_app(kernel, auth={TOKEN}))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
            tracemalloc.start()
            rounds = max(1, operations // OF_ONE // SLICES)
            for turn in range(SLICES):
                for number in range(turn * rounds, (turn + 1) * rounds):
                    await one(http, number)
                gc.collect()
                told.append((tracemalloc.get_traced_memory()[0], resident()))
                held, size = told[-1]
                done = (turn + 1) * rounds * OF_ONE
                print(f"{done:>9,} operations: {held / 1e6:8.2f} MB held, {size:8.1f} MB resident", flush=True)
            tracemalloc.stop()
    return told


def resident() -> float:
    """Megabytes; nan where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def handles(folder: Path, times: int) -> tuple[int, int]:
    """By how many open files and threads there are more after so many kernels were opened, used and closed."""
    before = (0, 0)
    for turn in range(times + 1):
        async with Kernel(data_dir=folder, model_router=ModelRouter(EchoModel(), embed=HashingEmbedder())) as kernel:
            await kernel.memory_engine.recall("tea")
        gc.collect()
        now = len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - a count
        if turn == 0:
            before = now
    return now[0] - before[0], now[1] - before[1]


def main(operations: int) -> int:
    with tempfile.TemporaryDirectory(prefix="lamina-growth-") as folder:
        told = asyncio.run(grown(Path(folder) / "one", operations))
        half = SLICES // 2
        each = (told[-1][0] - told[half - 1][0]) / (operations * (SLICES - half) / SLICES)
        print(f"the last half grew by {each:.1f} bytes an operation")
        files, threads = asyncio.run(handles(Path(folder) / "two", OPENED))
        print(f"after {OPENED} kernels: {files:+} files, {threads:+} threads")
    return int(each > ALLOWED or files > 0 or threads > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
