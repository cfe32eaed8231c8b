"""An intent that names a namespace keeps to it: memories, its thread, what auto-save adds."""

from __future__ import annotations

import pytest

from lamina.errors import InvalidInput, ScopeError


async def test_only_memories_of_the_namespace_are_looked_up(kernel):
    await kernel.memory_engine.store("Tea is on the top shelf", owner="mira", namespace="home")
    await kernel.memory_engine.store("Tea is in the second kitchen", owner="mira", namespace="work")
    result = await kernel.submit(goal="Where is the tea?", owner="mira", namespace="work")
    assert [each.content for each in result.context.memories] == ["Tea is in the second kitchen"]


async def test_a_thread_that_is_made_is_of_the_namespace_and_refused_to_others(kernel):
    await kernel.submit(goal="Begin", owner="mira", thread_id="t", namespace="work")
    assert (await kernel.conversation.retrieve("t")).namespace == "work"
    with pytest.raises(ScopeError, match="another namespace"):
        await kernel.submit(goal="Go on", owner="mira", thread_id="t", namespace="home")
    assert len(await kernel.conversation.history("t")) == 2


async def test_auto_save_adds_to_the_namespace(open_kernel):
    kernel = await open_kernel(memory={"auto_save": True})
    (saved,) = (await kernel.submit(goal="My name is Mira.", owner="mira", namespace="work")).saved
    assert (await kernel.memory_engine.get(saved)).namespace == "work"


async def test_a_namespace_may_stand_in_the_metadata_and_not_differ_from_itself(kernel):
    result = await kernel.submit({"goal": "Hello", "metadata": {"namespace": "work"}, "threadId": "t"})
    assert (await kernel.conversation.retrieve(result.thread_id)).namespace == "work"
    with pytest.raises(InvalidInput, match="namespace"):
        await kernel.submit(goal="Hello", namespace="home", metadata={"namespace": "work"})
    with pytest.raises(InvalidInput):
        await kernel.submit(goal="Hello", namespace=" ")
