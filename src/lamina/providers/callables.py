"""Any callable or object as an embedder or a language model.

What is sync runs in a worker thread, so the event loop goes on. What comes back is checked.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeGuard, cast

from anyio import to_thread

from lamina.domain.memory import Vector
from lamina.domain.text import clean
from lamina.errors import ConfigError, InvalidType, ProviderError, ProviderUnavailable, Unsupported
from lamina.ports.embedder import Embedder, matches_from, weighted_parts
from lamina.ports.language_model import ChatMessage, Completion, LanguageModel
from lamina.providers.host_calls import call_host, is_async
from lamina.providers.structured_output import ObjectSchema, request_object
from lamina.providers.vectors import BatchEmbed, embed_checked

__all__ = [
    "CallableEmbedder",
    "CallableLanguageModel",
    "as_embedder",
    "as_language_model",
    "guarded_embedder",
    "name_of",
    "translated",
]

Streaming: TypeAlias = Callable[[Sequence[ChatMessage]], AsyncIterator[str] | Iterable[str]]
"""Answers a conversation piece by piece."""


class CallableEmbedder:
    """An embedder made of functions: one that embeds documents and, if the model tells them apart, one for queries."""

    def __init__(
        self,
        documents: BatchEmbed,
        queries: BatchEmbed | None = None,
        *,
        provider: str,
        model: str,
        dimensions: int | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._documents = documents
        self._queries = queries or documents
        self._provider = provider
        self._model = model
        self._dimensions = dimensions
        self._close = close

    @property
    def provider(self) -> str:
        """Who makes the vectors."""
        return self._provider

    @property
    def model(self) -> str:
        """Which model makes the vectors."""
        return self._model

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found; see `embed_checked`."""
        return await self._embed(texts, self._documents)

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""
        return (await self._embed([text], self._queries))[0]

    async def close(self) -> None:
        """Call `close`, if it was given; otherwise what was wrapped belongs to the caller."""
        if self._close is not None:
            with translated(self._provider):
                await self._close()

    async def _embed(self, texts: Sequence[str], embed: BatchEmbed) -> list[Vector]:
        async def answered(wanted: list[str]) -> Iterable[Any]:
            with translated(self._provider):
                answer = await embed(wanted)
                # Read here, since reading may raise anything as well; what cannot be read is refused by its check.
                return list(answer) if hasattr(answer, "__iter__") else answer

        return await embed_checked(self._provider, texts, answered, dimensions=self._dimensions)


def as_embedder(
    thing: object = None,
    *,
    embed: Callable[[str], Any] | None = None,
    embed_batch: Callable[[list[str]], Any] | None = None,
    provider: str = "custom",
    model: str | None = None,
    dimensions: int | None = None,
) -> Embedder:
    """An embedder made of what there is; give exactly one of `thing`, `embed` and `embed_batch`.

    Args:
        thing: An `Embedder`, which is returned as it is; an object with `embed_documents` and `embed_query`, or with
            their async twins `aembed_documents` and `aembed_query`; an object with `encode` or `embed`, which take a
            list of texts; or a callable, which is taken as `embed`.
        embed: Takes one text and returns its vector; called once per text.
        embed_batch: Takes a list of texts and returns their vectors.
        provider: Part of the fingerprint.
        model: Part of the fingerprint; by default the module and name of the callable or of the object's class, with
            the object's own `model_name` or `model` if it has one. Change it whenever the vectors change.
        dimensions: The length that every vector must have; by default that of the first one in each answer.

    Raises:
        ConfigError: none or several of the three are given.
        InvalidType: the thing cannot embed.
    """
    if isinstance(thing, str | bytes):  # which have an `encode` of their own
        raise InvalidType("embed", "is a text", "Give a callable or an object; a name goes to load_embedder.")
    given = [each for each in (thing, embed, embed_batch) if each is not None]
    if len(given) != 1:
        raise ConfigError("embed", f"{len(given)} embedders are given", "Give one of thing, embed and embed_batch.")
    if thing is not None and _is_embedder(thing):
        return thing
    if embed_batch is not None:
        documents, queries = _batch(embed_batch), None
    elif embed is not None:
        documents, queries = _one_by_one(embed), None
    else:
        documents, queries = _functions_of(thing)
    return CallableEmbedder(
        documents, queries, provider=provider, model=model or name_of(given[0]), dimensions=dimensions
    )


def guarded_embedder(embedder: Embedder, *, dimensions: int | None = None, owned: bool = False) -> Embedder:
    """Somebody else's embedder, trusted no more than a function: only `ProviderError`s and checked vectors get through.

    It keeps its provider and model. It is closed only if it is `owned`; otherwise it belongs to the caller.
    """
    return _GuardedEmbedder(embedder, dimensions=dimensions, owned=owned)


class _GuardedEmbedder(CallableEmbedder):
    """As `guarded_embedder` says; what the embedder says of its vectors is passed on."""

    def __init__(self, embedder: Embedder, *, dimensions: int | None, owned: bool) -> None:
        super().__init__(
            _batch(embedder.embed_documents),
            _one_by_one(embedder.embed_query),
            provider=embedder.provider,
            model=embedder.model,
            dimensions=dimensions,
            close=embedder.close if owned else None,
        )
        self._guarded = embedder

    def clear_cache(self) -> int:
        """The guarded embedder's, if it has one."""
        clear = getattr(self._guarded, "clear_cache", None)
        return 0 if clear is None else int(clear())

    def matches_from(self, query: str) -> float:
        """The guarded embedder's."""
        with translated(self.provider):
            return matches_from(self._guarded, query)

    def weighted_parts(self, query: str, overlap: float | None) -> Sequence[tuple[int, float]]:
        """The guarded embedder's."""
        with translated(self.provider):
            return weighted_parts(self._guarded, query, overlap)


class CallableLanguageModel:
    """A language model made of a function."""

    def __init__(
        self,
        complete: Callable[[Sequence[ChatMessage]], Any],
        stream: Streaming | None = None,
        *,
        provider: str,
        model: str,
        schema_attempts: int = 3,
    ) -> None:
        self._complete = complete
        self._stream = stream
        self._provider = provider
        self._model = model
        self._schema_attempts = schema_attempts

    @property
    def provider(self) -> str:
        """Who answers."""
        return self._provider

    @property
    def model(self) -> str:
        """Which model answers."""
        return self._model

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The callable's answer; `max_tokens` is the callable's own affair.

        A schema is told to the model in the conversation, and the answer is checked against it.
        """
        del max_tokens
        if schema is None:
            return await self._ask(messages)
        wanted = ObjectSchema(schema)
        return await request_object(
            self._provider, self._ask, [*messages, wanted.instruction()], wanted, attempts=self._schema_attempts
        )

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The answer of the streaming callable, if one was given."""
        del max_tokens
        if self._stream is None:
            raise Unsupported(f"The language model {self._model}", "streaming", "Give as_language_model a stream=.")
        with translated(self._provider):
            pieces = await call_host(self._stream, messages)
            async for piece in _iterated(pieces):
                yield self._text(piece)

    async def close(self) -> None:
        """Nothing to let go of: what was wrapped belongs to the caller."""

    async def _ask(self, messages: Sequence[ChatMessage]) -> Completion:
        with translated(self._provider):
            answer = await call_host(self._complete, messages)
        return answer if isinstance(answer, Completion) else Completion(text=self._text(answer))

    def _text(self, answer: object) -> str:
        if not isinstance(answer, str):
            raise ProviderError(self._provider, f"it answered {type(answer).__name__} in place of text")
        return clean(answer)


def as_language_model(
    thing: object,
    *,
    stream: Streaming | None = None,
    provider: str = "custom",
    model: str | None = None,
    schema_attempts: int = 3,
) -> LanguageModel:
    """A language model made of what there is.

    Args:
        thing: A `LanguageModel`, which is returned as it is, or a callable, sync or async, that takes the list of
            `ChatMessage`s and returns the answer's text or a `Completion`.
        stream: Takes the same and returns an iterator, sync or async, over pieces of the answer.
        provider: Who answers, for messages.
        model: Which model answers; by default the module and name of the callable.
        schema_attempts: How often the model is asked, in all, for an object of a schema.

    Raises:
        InvalidType: the thing cannot be called.
    """
    if _is_language_model(thing):
        return thing
    if not callable(thing):
        raise InvalidType("complete", f"cannot be called: {type(thing).__name__}", "Give a callable.")
    return CallableLanguageModel(
        thing, stream, provider=provider, model=model or name_of(thing), schema_attempts=schema_attempts
    )


def _is_embedder(thing: object) -> TypeGuard[Embedder]:
    methods = all(
        inspect.iscoroutinefunction(getattr(thing, name, None)) for name in ("embed_documents", "embed_query")
    )
    return methods and all(isinstance(getattr(thing, name, None), str) for name in ("provider", "model"))


def _is_language_model(thing: object) -> TypeGuard[LanguageModel]:
    methods = inspect.iscoroutinefunction(getattr(thing, "complete", None)) and callable(getattr(thing, "stream", None))
    return methods and all(isinstance(getattr(thing, name, None), str) for name in ("provider", "model"))


def _functions_of(thing: object) -> tuple[BatchEmbed, BatchEmbed | None]:
    for prefix in ("a", ""):
        documents, query = (getattr(thing, f"{prefix}{name}", None) for name in ("embed_documents", "embed_query"))
        if callable(documents) and callable(query):
            return _batch(documents), _one_by_one(query)
    for name in ("encode", "embed"):
        method = getattr(thing, name, None)
        if callable(method):
            return _batch(method), None
    if callable(thing):
        return _one_by_one(thing), None
    raise InvalidType(
        "embed", f"{type(thing).__name__} cannot embed", "Give a callable, or an object with embed_documents or encode."
    )


def _batch(function: Callable[[list[str]], Any]) -> BatchEmbed:
    listed = _listing(function)

    async def embed(texts: list[str]) -> Iterable[Any]:
        return cast("Iterable[Any]", await listed(texts))

    return embed


def _one_by_one(function: Callable[[str], Any]) -> BatchEmbed:
    listed = _listing(function)

    async def embed(texts: list[str]) -> Iterable[Any]:
        return [await listed(text) for text in texts]

    return embed


def _listing(function: Callable[..., Any]) -> Callable[[Any], Awaitable[Any]]:
    """As `call_host`; a generator that a sync function returns is read in the thread, too."""

    def run(argument: object) -> Any:
        result = function(argument)
        return list(result) if isinstance(result, Iterator) else result

    async def called(argument: object) -> Any:
        result = function(argument)
        return await result if inspect.isawaitable(result) else result

    return called if is_async(function) else partial(call_host, run)


async def _iterated(pieces: Any) -> AsyncIterator[Any]:
    if isinstance(pieces, AsyncIterator):
        async for piece in pieces:
            yield piece
        return
    remaining, end = iter(pieces), object()
    while (piece := await to_thread.run_sync(next, remaining, end, abandon_on_cancel=True)) is not end:
        yield piece


def name_of(thing: object) -> str:
    """The module and name of a function or of an object's class, with the name of the object's own model."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
    for attribute in ("model_name", "model"):
        own = getattr(thing, attribute, None)
        if isinstance(own, str) and own:
            return f"{name}:{own}"
    return name


@contextmanager
def translated(provider: str) -> Iterator[None]:
    """Whatever code that is not ours raises, as a `ProviderError`."""
    try:
        yield
    except ProviderError:
        raise
    except OSError as error:  # connection errors and time-outs are OSErrors
        raise ProviderUnavailable(provider, f"{type(error).__name__}: {error}") from error
    except Exception as error:  # the edge to code that is not ours, which may raise anything
        raise ProviderError(provider, f"{type(error).__name__}: {error}") from error
