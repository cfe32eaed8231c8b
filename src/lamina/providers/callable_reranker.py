"""Any callable or object as a reranker. What is sync runs in a worker thread, and what comes back is checked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from numbers import Real
from typing import Any, Final, TypeGuard

import anyio

from lamina.errors import InvalidType, ProviderError, ProviderUnavailable
from lamina.ports.reranker import Reranker, reads
from lamina.providers.callables import name_of, translated
from lamina.providers.circuit_breaker import CircuitBreaker
from lamina.providers.host_calls import call_host, is_async
from lamina.providers.vectors import check_texts

__all__ = ["CallableReranker", "as_reranker"]

SECONDS: Final = 10.0
"""Somebody waits for the recall."""


class CallableReranker:
    """A reranker made of a function, with a time limit of ten seconds a call, and not called while it is down."""

    def __init__(
        self,
        function: Callable[[str, list[str]], Any],
        *,
        provider: str,
        model: str,
        seconds: float = SECONDS,
        reads: Callable[[str, Sequence[str]], bool] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._function = function
        self._provider = provider
        self._model = model
        self._seconds = seconds
        self._reads = reads
        self._close = close
        self._circuit = CircuitBreaker(provider)

    @property
    def provider(self) -> str:
        """Who scores."""
        return self._provider

    @property
    def model(self) -> str:
        """Which model scores."""
        return self._model

    def reads(self, query: str, texts: Sequence[str]) -> bool:
        """What `reads` says, if it was given."""
        if self._reads is None:
            return True
        with translated(self._provider):
            return bool(self._reads(query, texts))

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The function's numbers, one in [0, 1] per text.

        Raises:
            ProviderUnavailable: the function did not answer in time, or a connection of its failed.
            ProviderError: it raised anything else, or answered something else.
        """
        [asked], cleaned = check_texts([query]), check_texts(texts)
        with self._circuit.guarded():
            with anyio.move_on_after(self._seconds):
                with translated(self._provider):
                    answer = await _listed(self._function, asked, cleaned)
                return self._checked(answer, len(cleaned))
            raise ProviderUnavailable(self._provider, f"it did not answer within {self._seconds:g} s")

    async def close(self) -> None:
        """Call `close`, if it was given; otherwise what was wrapped belongs to the caller."""
        if self._close is not None:
            with translated(self._provider):
                await self._close()

    def _checked(self, answer: object, count: int) -> list[float]:
        if not isinstance(answer, list) or len(answer) != count:
            what = f"{len(answer)} scores" if isinstance(answer, list) else type(answer).__name__
            raise ProviderError(self._provider, f"it answered {what} for {count} texts")
        return [self._number(score) for score in answer]

    def _number(self, score: object) -> float:
        if isinstance(score, bool) or not isinstance(score, Real) or not 0 <= float(score) <= 1:
            raise ProviderError(self._provider, f"it answered {score!r:.50} in place of a number from 0 to 1")
        return float(score)


def as_reranker(thing: object, *, provider: str = "custom", model: str | None = None, owned: bool = False) -> Reranker:
    """A reranker made of what there is.

    Args:
        thing: A `Reranker`, which keeps its provider and model but is trusted no more than a function, or a callable,
            sync or async, that takes a query and a list of texts and returns one number in [0, 1] per text.
        provider: Who scores, for messages.
        model: Which model scores; by default the module and name of the callable.
        owned: Whether a `Reranker` is closed with what is made of it; otherwise it belongs to the caller.

    Raises:
        InvalidType: the thing can neither score nor be called.
    """
    if _is_reranker(thing):
        return CallableReranker(
            thing.score,
            provider=thing.provider,
            model=thing.model,
            reads=partial(reads, thing),
            close=thing.close if owned else None,
        )
    if not callable(thing):
        problem = f"cannot rerank: {type(thing).__name__}"
        raise InvalidType("rerank", problem, "Give a name, a Reranker, or a callable of a query and a list of texts.")
    return CallableReranker(thing, provider=provider, model=model or name_of(thing))


def _is_reranker(thing: object) -> TypeGuard[Reranker]:
    return inspect.iscoroutinefunction(getattr(thing, "score", None)) and all(
        isinstance(getattr(thing, name, None), str) for name in ("provider", "model")
    )


async def _listed(function: Callable[..., Any], query: str, texts: list[str]) -> Any:
    """As `call_host`; what a sync function returns is read in the thread, too."""

    def run() -> Any:
        return _read(function(query, texts))

    return _read(await (call_host(function, query, texts) if is_async(function) else call_host(run)))


def _read(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterable | Iterator) and not isinstance(answer, str | bytes) else answer
