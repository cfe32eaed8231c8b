from __future__ import annotations

import asyncio
import functools
import threading
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import anyio.lowlevel
import numpy as np
import pytest
from stable_ids import stable

from lamina.errors import (
    ConfigError,
    EmbeddingDimensionError,
    InvalidType,
    ProviderError,
    ProviderUnavailable,
    Unsupported,
)
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, Usage
from lamina.providers.callables import as_embedder, as_language_model
from lamina.providers.resilience import TimeLimitedEmbedder

ASK = [ChatMessage(ChatRole.USER, "How many?")]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def one(text: str) -> list[float]:
    assert isinstance(text, str)
    return [float(len(text)), 1.0]


async def one_async(text: str) -> list[float]:
    await anyio.lowlevel.checkpoint()
    return one(text)


def many(texts: list[str]) -> list[list[float]]:
    assert isinstance(texts, list)
    return [one(text) for text in texts]


async def many_async(texts: list[str]) -> list[list[float]]:
    return many(texts)


class Chain:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return many(texts)

    def embed_query(self, text: str) -> list[float]:
        return one(text)


class AsyncChain:
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return many(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return one(text)


class Encoder:
    model_name = "mini"

    def encode(self, texts: list[str]) -> Any:
        return np.array(many(texts))


class Generating:
    def embed(self, texts: list[str]) -> Iterator[Any]:
        for text in texts:
            yield np.array(one(text), np.float32)


def deferred(text: str) -> Any:
    """Not a coroutine function, and yet it returns an awaitable."""
    return one_async(text)


class AsyncCall:
    async def __call__(self, text: str) -> list[float]:
        return one(text)


@pytest.mark.parametrize(
    "arguments",
    [
        {"thing": one},
        {"thing": one_async},
        {"thing": functools.partial(one)},
        {"thing": deferred},
        {"thing": AsyncCall()},
        {"thing": Chain()},
        {"thing": AsyncChain()},
        {"thing": Encoder()},
        {"thing": Generating()},
        {"embed": one},
        {"embed": one_async},
        {"embed_batch": many},
        {"embed_batch": many_async},
        {"embed_batch": Encoder().encode},
    ],
    ids=stable,
)
async def test_whatever_embeds_becomes_an_embedder(arguments: dict[str, Any]) -> None:
    embedder = as_embedder(**arguments)
    vectors = await embedder.embed_documents(["a", " ", "ccc"])
    assert vectors == [array("f", [1, 1]), array("f", [0, 0]), array("f", [3, 1])]
    assert await embedder.embed_query("bb") == array("f", [2, 1])
    assert embedder.provider == "custom"
    await embedder.close()


async def test_what_is_an_embedder_already_is_returned_as_it_is() -> None:
    embedder = as_embedder(one)
    assert as_embedder(embedder) is embedder


def test_the_fingerprint_is_what_was_given_or_else_where_the_callable_is_defined() -> None:
    assert as_embedder(one).model == f"{__name__}.one"
    assert as_embedder(Chain()).model == f"{__name__}.Chain"
    assert as_embedder(Encoder()).model == f"{__name__}.Encoder:mini"
    named = as_embedder(one, provider="ours", model="v7")
    assert (named.provider, named.model) == ("ours", "v7")


@pytest.mark.parametrize("arguments", [{}, {"thing": one, "embed": one}, {"embed": one, "embed_batch": many}])
def test_exactly_one_embedder_must_be_given(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Give one of"):
        as_embedder(**arguments)


@pytest.mark.parametrize("thing", ["a name", 7, object()])
def test_what_cannot_embed_or_answer_is_refused(thing: object) -> None:
    with pytest.raises(InvalidType):
        as_embedder(thing)
    with pytest.raises(InvalidType):
        as_language_model(thing)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda vectors: vectors[:-1], "1 vectors for 2 texts"),
        (lambda vectors: [*vectors, vectors[0]], "3 vectors for 2 texts"),
        (lambda vectors: [vectors[0], [float("nan"), 1.0]], "not finite"),
        (lambda vectors: [vectors[0], [0.0, 0.0]], "all zero"),
        (lambda vectors: vectors[0], "no list of numbers"),
        (lambda vectors: None, "in place of vectors"),
    ],
)
async def test_a_wrong_answer_names_what_is_wrong(spoil: Any, problem: str) -> None:
    embedder = as_embedder(embed_batch=lambda texts: spoil(many(texts)))
    with pytest.raises(ProviderError, match=problem):
        await embedder.embed_documents(["a", "bb"])


async def test_a_vector_of_another_length_than_declared_is_refused() -> None:
    with pytest.raises(EmbeddingDimensionError):
        await as_embedder(one, dimensions=3).embed_query("a")


async def test_what_is_sync_runs_outside_the_event_loop_and_so_does_a_generator_it_returns() -> None:
    threads: list[int] = []

    def generated(texts: list[str]) -> Iterator[list[float]]:
        for text in texts:
            threads.append(threading.get_ident())
            yield one(text)

    await as_embedder(embed_batch=generated).embed_documents(["a", "b"])
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_the_event_loop_goes_on_while_a_sync_callable_blocks_and_a_time_limit_holds() -> None:
    release = threading.Event()

    def blocks(text: str) -> list[float]:
        release.wait()
        return one(text)

    try:
        with pytest.raises(ProviderUnavailable):
            await TimeLimitedEmbedder(as_embedder(blocks), seconds=0.05).embed_query("a")
        waiting = asyncio.create_task(as_embedder(blocks).embed_query("a"))
        await anyio.lowlevel.checkpoint()
        assert not waiting.done()
    finally:
        release.set()
    assert list(await waiting) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ConnectionRefusedError("refused"), ProviderUnavailable),
        (TimeoutError("late"), ProviderUnavailable),
        (RuntimeError("broken"), ProviderError),
        (StopIteration(), ProviderError),
        (ProviderUnavailable("x", "y"), ProviderUnavailable),
    ],
)
async def test_what_a_callable_raises_becomes_an_error_of_ours(raised: Exception, expected: type[Exception]) -> None:
    def fails(argument: object) -> Any:
        raise raised

    async def fails_async(argument: object) -> Any:
        raise raised

    for callable_ in (fails, fails_async):
        with pytest.raises(ProviderError) as caught:
            await as_embedder(callable_).embed_query("a")
        assert type(caught.value) is expected
        with pytest.raises(ProviderError) as caught:
            await as_language_model(callable_).complete(ASK)
        assert type(caught.value) is expected


# Language models --------------------------------------------------------------------------


def answers(*texts: str) -> Any:
    remaining = list(texts)
    seen: list[Sequence[ChatMessage]] = []

    def complete(messages: Sequence[ChatMessage]) -> str:
        seen.append(messages)
        return remaining.pop(0)

    complete.seen = seen  # type: ignore[attr-defined]
    return complete


async def test_a_callable_completes_sync_or_async_with_text_or_a_completion() -> None:
    async def counted(messages: Sequence[ChatMessage]) -> Completion:
        return Completion("three", Usage(5, 1))

    assert (await as_language_model(answers("two")).complete(ASK)).text == "two"
    assert await as_language_model(counted).complete(ASK) == Completion("three", Usage(5, 1))
    assert (await as_language_model(answers("a\ud83d")).complete(ASK)).text == "a\ufffd"


async def test_an_answer_that_is_no_text_is_refused() -> None:
    with pytest.raises(ProviderError, match="NoneType in place of text"):
        await as_language_model(lambda messages: None).complete(ASK)


async def test_a_schema_is_told_to_the_model_and_a_wrong_answer_is_asked_for_again() -> None:
    complete = answers('{"n": "two"}', '{"n": 2}')
    completion = await as_language_model(complete).complete(ASK, schema=NUMBER)
    assert completion.data == {"n": 2}
    first, second = complete.seen
    assert '"integer"' in first[-1].content
    assert "$.n does not satisfy type" in second[-1].content


async def test_streaming_takes_sync_and_async_iterators_and_is_refused_without_one() -> None:
    def pieces(messages: Sequence[ChatMessage]) -> Iterator[str]:
        yield from ("one ", "two")

    async def pieces_async(messages: Sequence[ChatMessage]) -> AsyncIterator[str]:
        yield "one "
        yield "two"

    for stream in (pieces, pieces_async, lambda messages: ["one ", "two"]):
        model = as_language_model(answers(), stream=stream)
        assert [piece async for piece in model.stream(ASK)] == ["one ", "two"]
    with pytest.raises(Unsupported, match="streaming"):
        [piece async for piece in as_language_model(answers()).stream(ASK)]


async def test_a_stream_that_breaks_raises_after_what_it_said() -> None:
    def breaks(messages: Sequence[ChatMessage]) -> Iterator[str]:
        yield "one"
        raise ConnectionResetError("gone")

    stream = as_language_model(answers(), stream=breaks).stream(ASK)
    assert await anext(stream) == "one"
    with pytest.raises(ProviderUnavailable):
        await anext(stream)


async def test_what_is_a_language_model_already_is_returned_as_it_is() -> None:
    model = as_language_model(answers(), provider="p", model="m")
    assert as_language_model(model) is model
    assert (model.provider, model.model) == ("p", "m")
    await model.close()
