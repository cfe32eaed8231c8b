from __future__ import annotations

import asyncio
import sys

from lamina.conversation.manager import ConversationManager
from lamina.state.sqlite import SqliteStateStore

WRITER = """
import asyncio, sys
from lamina.conversation.manager import ConversationManager
from lamina.conversation.window import WindowPolicy
from lamina.state.sqlite import SqliteStateStore

async def main(path, name):
    async with SqliteStateStore(path) as store:
        manager = ConversationManager(store, policy=WindowPolicy(7, 4))
        for number in range(60):
            await manager.add_message_to_thread("t", "user", f"{name} {number}")

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_add_to_one_thread_and_fold_it_lose_no_message(path):
    names = ["a", "b", "c"]
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(path), name) for name in names]
    assert [await process.wait() for process in running] == [0, 0, 0]
    async with SqliteStateStore(path) as store:
        manager = ConversationManager(store)
        history = await manager.history("t", limit=1_000)
        for name in names:
            own = [message.text for message in history if message.text.startswith(f"{name} ")]
            assert own == [f"{name} {number}" for number in range(60)]
        thread = await manager.retrieve("t")
        summaries = await store.summaries(thread.ref)
        ends = [summary.to_index for summary in summaries]
        assert ends == sorted(set(ends), reverse=True)
        assert {summary.from_index for summary in summaries} == {1}
        assert [message.index for message in thread.messages] == list(range(ends[0] + 1, 181))
