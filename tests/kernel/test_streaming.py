"""Answers in pieces: kept only when they are whole and were read to the end."""

from __future__ import annotations

import asyncio

import pytest

from lamina.agents import define_agent
from lamina.domain.intent import IntentResult, IntentStatus
from lamina.errors import InvalidInput, ProviderError, ScopeError
from lamina.testing import EchoModel


async def pieces_of(stream):
    return [each async for each in stream]


async def test_the_pieces_come_first_and_the_result_last(kernel, model):
    model._replies.append("one two three")
    *pieces, result = await pieces_of(kernel.stream(goal="Count", owner="mira", thread_id="t"))
    assert pieces == ["one ", "two ", "three"]
    assert isinstance(result, IntentResult)
    assert (result.status, result.answer) == (IntentStatus.COMPLETED, "one two three")
    assert [each.text for each in await kernel.conversation.history("t")] == ["Count", "one two three"]


async def test_whoever_stops_reading_leaves_nothing_in_the_thread(kernel, model):
    model._replies.append("one two three")
    stream = kernel.stream(goal="Count", thread_id="t")
    assert await anext(stream) == "one "
    await stream.aclose()
    assert await kernel.conversation.retrieve("t") is None


async def test_whoever_stops_after_the_last_piece_leaves_nothing_in_the_thread(kernel, model):
    model._replies.append("one two")
    stream = kernel.stream(goal="Count", thread_id="t")
    assert [await anext(stream), await anext(stream)] == ["one ", "two"]
    await asyncio.sleep(0)
    await stream.aclose()
    assert await kernel.conversation.retrieve("t") is None


async def test_when_a_stream_is_closed_the_models_stream_is_closed_and_no_task_goes_on(open_kernel):
    closed = []

    class Counting(EchoModel):
        async def stream(self, messages, *, max_tokens=None):
            try:
                for piece in ("one ", "two "):
                    yield piece
            finally:
                await asyncio.sleep(0)
                closed.append(True)

    kernel = await open_kernel(complete=Counting())
    before = asyncio.all_tasks()
    for read in (1, 2):
        stream = kernel.stream(goal="Count", thread_id="t")
        for _ in range(read):
            await anext(stream)
        await stream.aclose()
        assert len(closed) == read
        assert asyncio.all_tasks() == before
    assert await kernel.conversation.retrieve("t") is None


async def test_a_reader_that_is_cancelled_leaves_nothing_in_the_thread(kernel):
    read = asyncio.Event()

    async def endless(intent, context, model):
        while True:
            yield "more "

    async def reader():
        async for _ in kernel.stream(goal="Go", thread_id="t"):
            read.set()
            await asyncio.sleep(0)

    kernel.agent_registry.register(define_agent("endless", executor=endless))
    task = asyncio.create_task(reader())
    await read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kernel.conversation.retrieve("t") is None


async def test_an_answer_that_breaks_off_fails_and_nothing_is_kept(kernel):
    async def breaking(intent, context, model):
        yield "so far "
        raise ProviderError("testing", "the line broke")

    kernel.agent_registry.register(define_agent("breaking", executor=breaking))
    *pieces, result = await pieces_of(kernel.stream(goal="Go", thread_id="t"))
    assert pieces == ["so far "]
    assert (result.status, result.error.kind, result.answer) == (IntentStatus.FAILED, "ProviderError", None)
    assert await kernel.conversation.retrieve("t") is None


async def test_an_executor_that_does_not_stream_gives_one_piece(kernel):
    async def whole(intent, context, model):
        return "all at once"

    kernel.agent_registry.register(define_agent("whole", executor=whole))
    *pieces, result = await pieces_of(kernel.stream(goal="Go"))
    assert pieces == ["all at once"]
    assert result.answer == "all at once"


async def test_a_model_that_does_not_stream_gives_one_piece(open_kernel):
    async def complete(messages):
        return "The blue one."

    kernel = await open_kernel(complete=complete)
    piece, result = await pieces_of(kernel.stream(goal="Which key?", thread_id="t"))
    assert (piece, result.answer, result.status) == ("The blue one.", "The blue one.", IntentStatus.COMPLETED)
    assert [each.text for each in await kernel.conversation.history("t")] == ["Which key?", "The blue one."]


async def test_a_generator_is_joined_where_nobody_asked_for_pieces(kernel):
    closed = []

    async def by_and_by(intent, context, model):
        try:
            yield "by "
            yield "and "
            yield "by"
        finally:
            closed.append(True)

    kernel.agent_registry.register(define_agent("by", executor=by_and_by))
    assert (await kernel.submit(goal="Go")).answer == "by and by"
    assert closed == [True]


async def test_a_generator_that_yields_no_text_fails_and_is_closed(kernel):
    closed = []

    async def numbers(intent, context, model):
        try:
            yield 5
        finally:
            closed.append(True)

    kernel.agent_registry.register(define_agent("numbers", executor=numbers))
    result = await kernel.submit(goal="Go")
    assert result.error.kind == "InvalidType"
    assert closed == [True]


async def test_what_is_refused_is_raised_by_the_stream_too(kernel):
    await kernel.conversation.create("private", owner="tomas")
    with pytest.raises(InvalidInput):
        await pieces_of(kernel.stream(goal=""))
    with pytest.raises(ScopeError):
        await pieces_of(kernel.stream(goal="Go", owner="mira", thread_id="private"))


async def test_a_stream_that_takes_too_long_ends_with_a_failed_result(open_kernel):
    kernel = await open_kernel(agents={"timeout": 0.05})

    async def stuck(intent, context, model):
        yield "begun "
        await asyncio.Event().wait()

    kernel.agent_registry.register(define_agent("stuck", executor=stuck))
    *pieces, result = await pieces_of(kernel.stream(goal="Go", thread_id="t"))
    assert pieces == ["begun "]
    assert result.error.kind == "TimeoutError"
    assert await kernel.conversation.retrieve("t") is None
