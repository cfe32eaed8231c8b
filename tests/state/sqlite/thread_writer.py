"""Run by `test_processes`: adds messages to one thread, one after the other, and says under which index each is."""

import asyncio
import sys

from lamina.state.sqlite import SqliteStateStore
from lamina.testing.state_contract.material import NOW, REF, begin, event


async def main(file: str, name: str, number: int) -> None:
    store = SqliteStateStore(file, busy_timeout=60)
    await store.initialize()
    await begin(store)
    for count in range(number):
        for added in await store.append(REF, [event(f"{name}-{count}")], now=NOW):
            print("added", added.message.id, added.message.index, flush=True)  # noqa: T201 - this is how it reports
    await store.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
