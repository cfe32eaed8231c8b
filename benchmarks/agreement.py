"""The same queries over the same memories on every backend: how far each one's ten closest are the exact ten.

    python benchmarks/agreement.py [--memories 10000] [--queries 1000] [--seconds 300] [ADAPTER ...]

Each backend is started as for the tests (`tests/services.toml`), filled in batches, and asked one query after the
other, at most for so many seconds. Vectors are of 384 dimensions around 200 centres, queries near stored ones. The
reference is numpy's exact product. An adapter without vector search is asked through the engine's fallback, as a
user's recall would be. Prints a line for each: queries asked, overlap of the ten on average and at worst, whether the
search was native, rows stored a second and the median time of a query.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
import services
from real_dynamodb import KEYS

from lamina import Capability, MemoryAdapter, MemoryEntry, MemoryFilter, Scope
from lamina.memory.fallback import scan_by_vector
from lamina.ports.memory_adapter import SearchOptions
from lamina.registry import load_adapter

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope("benchmark", "mira", "default")
DIMENSIONS = 384
CENTRES = 200
BATCH = 500

WHERE: dict[str, tuple[str | None, Callable[[Any, Path], dict[str, Any]]]] = {
    "memory": (None, lambda _server, _folder: {}),
    "sqlite": (None, lambda _server, folder: {"path": folder / "lamina.db"}),
    "postgres": ("postgres", lambda server, _folder: {"url": server.url}),
    "redis": ("redis", lambda server, _folder: {"url": server.url}),
    "mongodb": ("mongodb", lambda server, _folder: {"url": server.url, "timeout": 600}),
    "mongodb-with-products": ("mongodb-with-products", lambda server, _folder: {"url": server.url, "timeout": 600}),
    "qdrant": ("qdrant", lambda server, _folder: {"url": server.url}),
    "turso": ("turso", lambda server, _folder: {"url": server.url}),
    "supabase": (
        "supabase",
        lambda server, _folder: {
            "url": server.url,
            "service_key": server.service_key,
            "database_url": server.database_url,
        },
    ),
    "pinecone": ("pinecone", lambda server, _folder: _pinecone(server)),
    "weaviate": ("weaviate", lambda server, _folder: {"url": server.url, "grpc_port": server.grpc_port}),
    "dynamodb": (
        "dynamodb",
        lambda server, _folder: {"url": server.url, **KEYS},
    ),
    "firestore": ("firestore", lambda server, _folder: {"url": server.url, "project_id": "lamina"}),
}
"""For each adapter its service, and what the adapter is told of the server."""


def _pinecone(server: Any) -> dict[str, Any]:
    from fake_pinecone import API_KEY

    server.create("memories", DIMENSIONS)
    return {"index_name": "memories", "api_key": API_KEY, "url": server.url}


def made(memories: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    centres = random.normal(size=(CENTRES, DIMENSIONS))
    stored = centres[random.integers(CENTRES, size=memories)] + random.normal(size=(memories, DIMENSIONS)) * 0.7
    asked = stored[random.integers(memories, size=queries)] + random.normal(size=(queries, DIMENSIONS)) * 0.4
    return stored.astype(np.float32), asked.astype(np.float32)


def exact(stored: np.ndarray, asked: np.ndarray) -> list[set[str]]:
    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    closest = np.argsort(-(unit(asked) @ unit(stored).T), axis=1)[:, :10]
    return [{f"m{number}" for number in row} for row in closest]


async def measure(name: str, adapter: MemoryAdapter, vectors: tuple[np.ndarray, np.ndarray], seconds: float) -> None:
    stored, asked = vectors
    await adapter.initialize()
    begun = time.perf_counter()
    for start in range(0, len(stored), BATCH):
        batch = [
            MemoryEntry(
                id=f"m{start + number}",
                content=f"memory {start + number}",
                created_at=NOW,
                updated_at=NOW,
                tenant=SCOPE.tenant,
                owner="mira",
                embedding=vector.tolist(),
            )
            for number, vector in enumerate(stored[start : start + BATCH])
        ]
        await adapter.store_many(SCOPE, batch)
    rate = len(stored) / (time.perf_counter() - begun)
    native = Capability.VECTOR in adapter.capabilities
    options = SearchOptions(scope=SCOPE, filter=MemoryFilter(now=NOW), limit=10)
    overlaps, times = [], []
    until = time.perf_counter() + seconds
    for query, expected in zip(asked, exact(stored, asked), strict=True):
        begun = time.perf_counter()
        if native:
            hits = await adapter.search_by_vector(query.tolist(), options)
        else:
            hits = await scan_by_vector(adapter, query.tolist(), options)
        times.append(time.perf_counter() - begun)
        overlaps.append(len(expected & {hit.entry.id for hit in hits}) / 10)
        if time.perf_counter() > until:
            break
    await adapter.close()
    print(
        f"| {name} | {'native' if native else 'fallback'} | {len(overlaps)} | {statistics.mean(overlaps):.4f} | "
        f"{min(overlaps):.1f} | {rate:,.0f} | {statistics.median(times) * 1000:.1f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("adapters", nargs="*", default=list(WHERE))
    arguments = parser.parse_args()
    vectors = made(arguments.memories, arguments.queries)
    print("| adapter | search | queries | overlap | least | rows/s | ms |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.adapters:
        service, options = WHERE[name]
        server = None if service is None else services.start(service)
        try:
            with tempfile.TemporaryDirectory() as folder:
                adapter = load_adapter(name.partition("-")[0])(**options(server, Path(folder)))
                asyncio.run(measure(name, adapter, vectors, arguments.seconds))
        finally:
            if server is not None:
                server.stop()


if __name__ == "__main__":
    main()
