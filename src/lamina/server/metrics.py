"""Counts for Prometheus, in a registry of their own. No label says whose or which one: they are all bounded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina._version import __version__
from lamina.memory.counting import MemoryCounts
from lamina.telemetry import Operation

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_TOKENS: Final = (0, 100, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 1_000_000)
_COUNTS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class _Stored(Collector):
    """Figures that are not counted up here, and not shown before they are known."""

    memories: MemoryCounts | None = None
    size_bytes: int | None = None

    def collect(self) -> Iterator[Metric]:
        if self.memories is not None:
            layers = GaugeMetricFamily(
                "lamina_memories", "Memories that all tenants have, by layer, without expired ones.", labels=["layer"]
            )
            for layer, number in self.memories.by_layer.items():
                layers.add_metric([layer], number)
            yield layers
            told = "Memories that have expired, and are not purged yet."
            yield GaugeMetricFamily("lamina_memories_expired", told, value=self.memories.expired)
        if self.size_bytes is not None:
            told = "Size of the database that tokens and threads are in, with all else in it."
            yield GaugeMetricFamily("lamina_db_size_bytes", told, value=self.size_bytes)


class Metrics:
    """What one server of one process has done since it was started."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        counter, timer = partial(Counter, registry=registry), partial(Histogram, buckets=_SECONDS, registry=registry)
        self._requests = counter("lamina_http_requests", "Requests that were answered.", ["method", "route", "status"])
        self._request_seconds = timer(
            "lamina_http_request_duration_seconds", "From a request to the end of its answer.", ["method", "route"]
        )
        self._operations = counter("lamina_memory_operations", "What was done with memories.", ["operation", "outcome"])
        self._operation_seconds = timer(
            "lamina_memory_operation_duration_seconds", "How long what was done with memories took.", ["operation"]
        )
        self._records = Histogram(
            "lamina_search_results", "How many memories a search gave.", buckets=_COUNTS, registry=registry
        )
        self._context_tokens = Histogram(
            "lamina_context_tokens",
            "Tokens of a context: of what was sent, and of what was found and left out.",
            ["decision"],
            buckets=_TOKENS,
            registry=registry,
        )
        self._embedding_requests = counter(
            "lamina_embedding_requests",
            "Requests for vectors that reached the embedder: those that a cache answered are not among them.",
            ["provider", "outcome"],
        )
        self._stored = _Stored()
        registry.register(self._stored)
        Info("lamina_build", "Which Lamina this is.", registry=registry).info({"version": __version__})

    def request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def memory_operation(self, operation: Operation) -> None:
        """Something was done with memories, or failed."""
        self._operations.labels(operation.name, "ok" if operation.error is None else "error").inc()
        self._operation_seconds.labels(operation.name).observe(operation.seconds)
        if operation.name == "search_memory" and operation.count is not None:
            self._records.observe(operation.count)

    def context_computed(self, *, included: int, dropped: int) -> None:
        """A context was put together."""
        self._context_tokens.labels("included").observe(included)
        self._context_tokens.labels("dropped").observe(dropped)

    def embedding_request(self, provider: str, *, error: str | None) -> None:
        """The embedder was asked."""
        self._embedding_requests.labels(provider, "ok" if error is None else "error").inc()

    def stored(self, *, memories: MemoryCounts | None, size_bytes: int | None) -> None:
        """This is what is stored now; None is not known."""
        self._stored.memories, self._stored.size_bytes = memories, size_bytes

    def exposition(self) -> bytes:
        """All of it in the text format."""
        return generate_latest(self._registry)
