"""Run by `test_processes`: adds messages to one thread, one after the other, and says when each is kept."""

import asyncio
import sys

from lamina.state.postgres import PostgresStateStore
from lamina.testing.state_contract.material import NOW, REF, begin, event


async def main(url: str, schema: str, name: str, number: int) -> None:
    async with PostgresStateStore(url, schema=schema) as store:
        await begin(store)
        for count in range(number):
            pair = [event(f"{name}-{count}-{part}") for part in ("q", "a")]
            print("tries", name, count, flush=True)  # noqa: T201 - this is how it reports
            await store.append(REF, pair, now=NOW)
            print("added", name, count, flush=True)  # noqa: T201 - as above


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
