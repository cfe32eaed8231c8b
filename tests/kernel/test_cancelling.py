"""A submission that is cancelled, at each of its await points in turn, leaves no half state."""

from __future__ import annotations

import asyncio
import functools
import itertools
import threading
import types

import pytest

from lamina import Kernel, ModelRouter
from lamina.agents import AgentAnswer, define_agent
from lamina.domain.intent import IntentStatus
from lamina.domain.message import Message, Role, ToolCall
from lamina.testing import EchoModel

MOST = 400
GOAL = "My name is Mira and I prefer tea."


@types.coroutine
def stopping(coroutine, number, when):
    """The coroutine, whose task is cancelled at its await point of this number.

    `waiting`: while it waits there. `done`: when what it waits for has come, and before it learns of it.
    """
    task = asyncio.current_task()
    step = functools.partial(coroutine.send, None)
    for point in itertools.count():
        try:
            waited = step()
        except StopIteration as end:
            return end.value
        if point == number and when == "done" and waited is not None:
            waited.add_done_callback(lambda _: task.cancel())
        elif point == number:
            asyncio.get_running_loop().call_soon(task.cancel)
        try:
            yield waited
        except asyncio.CancelledError as error:
            step = functools.partial(coroutine.throw, error)
        else:
            step = functools.partial(coroutine.send, None)


async def cancelled_at(coroutine, number, when):
    """Whether it was cancelled; False if it had ended before that point."""

    async def run():
        return await stopping(coroutine, number, when)

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    if task.cancelled():
        return True
    task.result()
    return False


async def whole_agent(intent, context, model):
    await asyncio.sleep(0)
    call = ToolCall("call_1", "look", '{"at": "x"}')
    return AgentAnswer(
        "the answer",
        messages=[Message(Role.ASSISTANT, "", tool_calls=[call]), Message.tool("found", call_id="call_1")],
    )


async def said(kernel, thread):
    await kernel.conversation.create("another")  # what was being written when the caller was cancelled is decided now
    if await kernel.conversation.retrieve(thread) is None:
        return []
    return [each.role.value for each in await kernel.conversation.history(thread, limit=1_000)]


EXCHANGE = ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("when", ["waiting", "done"])
@pytest.mark.parametrize("before", [0, 1], ids=["new thread", "old thread"])
async def test_a_cancelled_submission_leaves_the_whole_exchange_or_nothing(open_kernel, place, before, when):
    settings = {"memory": {"auto_save": True}, "conversation": {"window": 4}}
    kernel = await open_kernel(**place, **settings)
    kernel.agent_registry.register(define_agent("whole", executor=whole_agent))
    counts = set()
    for number in range(MOST):
        thread = f"t{number}"
        for _ in range(before):
            await kernel.submit(goal=GOAL, thread_id=thread)
        was_cancelled = await cancelled_at(kernel.submit(goal=GOAL, thread_id=thread), number, when)
        roles = await said(kernel, thread)
        assert roles in (EXCHANGE * before, EXCHANGE * (before + 1)), number
        assert bool(roles) == (await kernel.conversation.retrieve(thread) is not None), number
        counts.add(len(roles))
        result = await kernel.submit(goal=GOAL, thread_id=thread)
        assert result.status is IntentStatus.COMPLETED
        assert await said(kernel, thread) == [*roles, *EXCHANGE]
        if not was_cancelled:
            break
    else:
        pytest.fail("it never came to its end")
    assert len(counts) == 2, "it was never cancelled both before and after the exchange was kept"
    await kernel.memory_engine.store("still works")


@pytest.mark.parametrize("when", ["waiting", "done"])
async def test_a_cancelled_stream_leaves_the_whole_exchange_or_nothing(open_kernel, place, when):
    kernel = await open_kernel(**place, complete=EchoModel(["one two three"] * 2 * MOST))

    async def read(thread):
        async for _ in kernel.stream(goal=GOAL, thread_id=thread):
            pass

    counts = set()
    for number in range(MOST):
        thread = f"t{number}"
        was_cancelled = await cancelled_at(read(thread), number, when)
        roles = await said(kernel, thread)
        assert roles in ([], ["user", "assistant"]), number
        assert bool(roles) == (await kernel.conversation.retrieve(thread) is not None), number
        counts.add(len(roles))
        await read(thread)
        assert await said(kernel, thread) == [*roles, "user", "assistant"]
        if not was_cancelled:
            break
    else:
        pytest.fail("it never came to its end")
    assert len(counts) == 2


@pytest.mark.parametrize("when", ["waiting", "done"])
async def test_a_cancelled_ingestion_leaves_the_old_document_or_the_new_one(open_kernel, place, when):
    kernel = await open_kernel(**place)
    texts = [f"# {name}\n\n" + "\n\n".join(f"## {name} {n}\n\n{name} lamp {n}." for n in range(5)) for name in "AB"]
    seen = set()
    for number in range(MOST):
        id = await kernel.rag.ingest(texts[0], f"{number}.md", chunk_size=20, chunk_overlap=0)
        again = kernel.rag.ingest(texts[1], f"{number}.md", chunk_size=20, chunk_overlap=0)
        was_cancelled = await cancelled_at(again, number, when)
        await kernel.conversation.create("another")
        chunks = await kernel.rag.chunks(id)
        found = "\n\n".join(each.content for each in chunks)
        assert [text for text in texts if found.split() == text.split()], number
        seen.add(found[2])
        assert await kernel.rag.ingest(texts[1], f"{number}.md", chunk_size=20, chunk_overlap=0) == id
        assert len(await kernel.rag.chunks(id)) == len(chunks)
        if not was_cancelled:
            break
    else:
        pytest.fail("it never came to its end")
    assert seen == {"A", "B"}
    await kernel.rag.purge_orphans()
    stats = await kernel.rag.stats()
    assert (stats.documents, await kernel.rag.purge_orphans()) == (number + 1, 0)


def sqlite_threads():
    return {each for each in threading.enumerate() if each.name.startswith("lamina-sqlite")}


async def ended(threads):
    for each in threads:
        await asyncio.to_thread(each.join, 30)
    return not any(each.is_alive() for each in threads)


@pytest.mark.parametrize("when", ["waiting", "done"])
@pytest.mark.parametrize("what", ["start", "stop"])
async def test_a_start_or_a_stop_that_is_cancelled_leaves_nothing_open(place, what, when):
    before = sqlite_threads()
    for number in range(MOST):
        kernel = Kernel(place, memory={"embedding": "none"}, model_router=ModelRouter(EchoModel()))
        if what == "stop":
            await kernel.start()
        was_cancelled = await cancelled_at(getattr(kernel, what)(), number, when)
        if was_cancelled:
            assert not kernel.is_started
            assert await ended(sqlite_threads() - before), number
        await kernel.start()
        assert (await kernel.submit(goal="hi", thread_id="t")).error is None
        await kernel.stop()
        assert await ended(sqlite_threads() - before), number
        if not was_cancelled:
            break
    else:
        pytest.fail("it never came to its end")
