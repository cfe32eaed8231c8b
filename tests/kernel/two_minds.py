"""Run by `test_processes`: submits to one thread until it is done or killed, and says what it was told.

python two_minds.py <data_dir> <name> <turns> <what>
"""

from __future__ import annotations

import asyncio
import sys

from lamina import Kernel, ModelRouter
from lamina.agents import AgentAnswer, define_agent
from lamina.domain.message import Message, ToolCall

TEXT = "\n\n".join(f"# Part {number}\n\n{'The harbour lamp is lit at dusk. ' * 30}" for number in range(40))


async def answer(intent, context, model):
    call = ToolCall(f"call of {intent.goal}", "look", "{}")
    found = Message.tool(f"result of {intent.goal}", call_id=call.id)
    return AgentAnswer(f"answer to {intent.goal}", messages=[Message.assistant("", tool_calls=[call]), found])


async def main(folder, name, turns, what):
    router = ModelRouter(lambda messages: "a summary")
    settings = {"memory": {"embedding": "none"}, "conversation": {"window": 6}}
    async with Kernel(settings, data_dir=folder, model_router=router) as kernel:
        kernel.agent_registry.register(define_agent("two", executor=answer))
        print("ready", flush=True)  # noqa: T201 - it says it to the test
        sys.stdin.readline()
        for turn in range(int(turns)):
            if what == "submit":
                result = await kernel.submit(goal=f"{name} {turn}", thread_id="shared")
                print(f"{name} {turn}" if result.error is None else result.error, flush=True)  # noqa: T201 - it says it to the test
            else:
                id = await kernel.rag.ingest(f"{TEXT}\n\n# {name} {turn}\n\nThe end.", "lamp.md")
                print(f"{id} {name} {turn}", flush=True)  # noqa: T201 - it says it to the test


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
