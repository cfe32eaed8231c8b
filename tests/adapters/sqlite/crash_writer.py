"""Run by `test_processes`: writes to a file until it is done, and says what it does.

`tries` and `drops` come before a memory is stored and deleted; `stored`, `deleted` and `updated`
come after the adapter has answered.
"""

import asyncio
import random
import sys

from lamina.adapters.sqlite import SqliteAdapter
from lamina.testing.memory_contract.material import MINE, NOW, memory


def say(*words: str) -> None:
    print(*words, flush=True)  # noqa: T201 - this is how it reports


async def main(file: str, name: str, number: int) -> None:
    chance = random.Random(name)
    adapter = SqliteAdapter(file, busy_timeout=60)
    await adapter.initialize()
    stored: list[str] = []

    async def write(count: int) -> None:
        id = f"{name}-{count}"
        vector = [chance.gauss(0, 1) for _ in range(8)]
        say("tries", id)
        await adapter.store(MINE, memory(id, f"note word{count} by {name}", embedding=vector))
        say("stored", id)
        stored.append(id)
        if count % 5 == 4:
            old = stored.pop(chance.randrange(len(stored)))
            say("drops", old)
            await adapter.delete(MINE, old)
            say("deleted", old)
        if count % 3 == 2 and stored:
            old = chance.choice(stored)
            if await adapter.update(MINE, old, {"content": f"changed word{count} by {name}", "updated_at": NOW}):
                say("updated", old, f"word{count}")

    for start in range(0, number, 4):
        await asyncio.gather(*(write(count) for count in range(start, start + 4)))
    await adapter.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
