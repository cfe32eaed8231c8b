"""Run by `test_pack_processes`: adds, reads and fades memories of a pack until it is killed, and says what it does.

`tries` comes before memories are added; `added`, `touched` and `superseded` come after the store has answered.
"""

import asyncio
import sys
from contextlib import suppress

from lamina.domain.pack_decay import Tier
from lamina.errors import PackExists
from lamina.state.sqlite import SqlitePackStore
from lamina.testing.pack_contract.material import NOW, TENANT, memory, pack


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - this is how it reports


async def main(file: str, name: str, number: int) -> None:
    async with SqlitePackStore(file, busy_timeout=60) as store:
        with suppress(PackExists):  # another process was faster
            await store.create_pack(pack())
        for count in range(number):
            old, new = f"{name}-{count}-a", f"{name}-{count}-b"
            say("tries", old)
            say("tries", new)
            batch = [memory(old, f"{old} " * 50, superseded_by=new), memory(new, f"{new} " * 50, name=name)]
            await store.add_memories(batch, now=NOW)
            say("added", old)
            say("added", new)
            await asyncio.gather(*(store.touch(TENANT, [new], now=NOW) for _ in range(2)))
            say("touched", new)
            await store.set_tier(TENANT, new, Tier.SUMMARY, expected_revision=1, now=NOW)


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
