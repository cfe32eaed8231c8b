"""Memory operations as OpenTelemetry spans, by the names of its conventions for generative AI.

Only the API is used, and only if it is installed and the program has set up a provider: nothing is ever sent anywhere
by us. Every span and attribute name stands here. Texts of queries and memories are on a span only where
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says `true`. `gen_ai.memory.store.id` is the tenant.
"""

from __future__ import annotations

import functools
import os
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from lamina._version import __version__

__all__ = [
    "Observer",
    "Operation",
    "OperationName",
    "captures_content",
    "embedding_request",
    "memory_operation",
    "observed_by",
    "place_of",
    "tell_of_context",
]

OperationName: TypeAlias = Literal[
    "create_memory",
    "update_memory",
    "upsert_memory",
    "search_memory",
    "delete_memory",
]

CAPTURE_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATION_NAME: Final = "gen_ai.operation.name"
STORE_ID: Final = "gen_ai.memory.store.id"
RECORD_ID: Final = "gen_ai.memory.record.id"
RECORD_COUNT: Final = "gen_ai.memory.record.count"
QUERY_TEXT: Final = "gen_ai.memory.query.text"
RECORDS: Final = "gen_ai.memory.records"
ERROR_TYPE: Final = "error.type"


@dataclass(slots=True)
class Operation:
    """One operation, as it goes on. `seconds` and `error` (the name of an exception's class) are known at its end."""

    name: OperationName
    store: str
    id: str | None = None
    count: int | None = None
    seconds: float = 0.0
    error: str | None = None
    content: dict[str, Any] = field(default_factory=dict, repr=False)

    def asks(self, query: str) -> None:
        """Note the text of the query, if content may be captured."""
        if captures_content():
            self.content[QUERY_TEXT] = query

    def gives(self, records: Iterable[tuple[str, str]]) -> None:
        """Note ids and contents, if content may be captured."""
        if captures_content():
            import json

            shown = [{"id": id, "content": content} for id, content in records]
            self.content[RECORDS] = json.dumps(shown, ensure_ascii=False)

    def attributes(self) -> Mapping[str, Any]:
        """What the span says."""
        facts = {
            OPERATION_NAME: self.name,
            STORE_ID: self.store,
            RECORD_ID: self.id,
            RECORD_COUNT: self.count,
            ERROR_TYPE: self.error,
            **self.content,
        }
        return {key: value for key, value in facts.items() if value is not None}


class Observer(Protocol):
    """Counts what is done. It raises nothing, and returns at once."""

    def memory_operation(self, operation: Operation) -> None:
        """An operation on memories has ended, well or not."""

    def context_computed(self, *, included: int, dropped: int) -> None:
        """A context was put together: tokens of what is sent, and of what was found and left out."""

    def embedding_request(self, provider: str, *, error: str | None) -> None:
        """A provider was asked for vectors; `error` is the name of an exception's class, if it gave none."""


_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Within, in this task and those it starts, the observer is told what is done."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def memory_operation(name: OperationName, *, store: str, id: str | None = None) -> Iterator[Operation]:
    """A span around an operation, and one note to the observer."""
    operation = Operation(name, store, id)
    began = time.perf_counter()
    with _span(name) as span:
        try:
            yield operation
        except BaseException as error:
            operation.error = type(error).__name__
            raise
        finally:
            operation.seconds = time.perf_counter() - began
            if span is not None:
                _describe(span, operation)
            observer = _observer.get()
            if observer is not None:
                observer.memory_operation(operation)


def tell_of_context(*, included: int, dropped: int) -> None:
    """Tell the observer of a context; no span is made."""
    observer = _observer.get()
    if observer is not None:
        observer.context_computed(included=included, dropped=dropped)


@contextmanager
def embedding_request(provider: str) -> Iterator[None]:
    """Tell the observer of a request for vectors, at its end; no span is made.

    An embedder may stand over another one that is counted too: what happens inside is not told again.
    """
    observer, error = _observer.get(), None
    token = _observer.set(None)
    try:
        yield
    except BaseException as failure:
        error = type(failure).__name__
        raise
    finally:
        _observer.reset(token)
        if observer is not None:
            observer.embedding_request(provider, error=error)


def captures_content() -> bool:
    """Whether the environment allows texts on spans."""
    return os.environ.get(CAPTURE_CONTENT, "").strip().lower() == "true"


def _span(name: str) -> AbstractContextManager[Any]:
    tracer = _tracer()
    # The message of an exception may hold content, so only the name of its class is told.
    if tracer is None:
        return nullcontext()
    span: AbstractContextManager[Any] = tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    )
    return span


def _describe(span: Any, operation: Operation) -> None:
    if not span.is_recording():
        return
    span.set_attributes(operation.attributes())
    if operation.error is not None:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR))


def _tracer() -> Any:
    """None where the program has set up no provider: a span that nobody sees takes longer than the rest of us here."""
    trace = _opentelemetry()
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return _tracer_of(trace)


@functools.cache
def _opentelemetry() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


@functools.cache
def _tracer_of(trace: Any) -> Any:
    return trace.get_tracer("lamina", __version__)


def place_of(error: BaseException) -> str:
    """Kinds of the error and of its causes, and the lines of code: without messages, which may hold content."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < 5:  # noqa: PLR2004 - the innermost cause is rarely deeper
        frames = traceback.extract_tb(seen.__traceback__)[-6:]
        places = " > ".join(f"{each.filename.rpartition('lamina/')[2]}:{each.lineno} {each.name}" for each in frames)
        parts.append(f"{type(seen).__name__} at {places}")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "; because of ".join(parts)
