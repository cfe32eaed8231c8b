"""Counts for Prometheus, in a registry of their own. No label says whose or which one: they are all bounded."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest

from lamina._version import __version__
from lamina.telemetry import Operation

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_COUNTS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Metrics:
    """What one server of one process has done since it was started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "lamina_http_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "lamina_http_request_duration_seconds",
            "From a request to the end of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._operations = Counter(
            "lamina_memory_operations",
            "What was done with memories.",
            ["operation", "outcome"],
            registry=self._registry,
        )
        self._operation_seconds = Histogram(
            "lamina_memory_operation_duration_seconds",
            "How long what was done with memories took.",
            ["operation"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._records = Histogram(
            "lamina_search_results", "How many memories a search gave.", buckets=_COUNTS, registry=self._registry
        )
        Info("lamina_build", "Which Lamina this is.", registry=self._registry).info({"version": __version__})

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

    def exposition(self) -> bytes:
        """All of it in the text format."""
        return generate_latest(self._registry)
