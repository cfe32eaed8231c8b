"""Run by `test_processes`: adds messages to one thread until it is killed or done, and says what it does.

`tries` comes before messages are added; `added` and `folded` come after the store has answered.
"""

import asyncio
import sys

from lamina.state.sqlite import SqliteStateStore
from lamina.testing.state_contract.material import NOW, REF, begin, event, summary


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - this is how it reports


async def main(file: str, name: str, number: int, folds: bool) -> None:
    store = SqliteStateStore(file, busy_timeout=60)
    await store.initialize()
    await begin(store)
    for count in range(number):
        pair = [event(f"{name}-{count}-{part}", f"{part} of {count}") for part in ("q", "a")] if folds else []
        events = pair or [event(f"{name}-{count}")]
        for each in events:
            say("tries", each.message.id)
        added = await store.append(REF, events, now=NOW)
        for each in added:
            say("added", each.message.id, each.message.index)
        if folds and count % 5 == 4:
            head = await store.get_thread(REF)
            assert head is not None
            through = added[-1].message.index
            if await store.fold(
                REF, summary(through, f"to {through}"), expected_folded_through=head.folded_through, now=NOW
            ):
                say("folded", through, "-")
    await store.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "folds"))
