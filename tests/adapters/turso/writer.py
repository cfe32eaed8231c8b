"""Writes to a local file from a process of its own: `python writer.py FILE NAME NUMBER`."""

import asyncio
import sys

from lamina.adapters.turso import TursoAdapter
from lamina.testing.memory_contract.material import MINE, memory


async def main(file: str, name: str, number: int) -> None:
    adapter = TursoAdapter(path=file)
    await adapter.initialize()
    await adapter.store_many(MINE, [memory("shared")], if_new=True)
    for each in range(number):
        await adapter.store(MINE, memory(f"{name}-{each}", f"{name} {each}", embedding=[1.0, each]))
        await adapter.touch(MINE, ["shared"], memory().created_at)
    await adapter.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
