"""A submission that is cancelled, at each of its await points in turn, leaves no half state."""

from __future__ import annotations

import asyncio
import functools
import itertools
import types

import pytest

from lamina.agents import AgentAnswer, define_agent
from lamina.domain.intent import IntentStatus
from lamina.domain.message import Message, Role, ToolCall

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
