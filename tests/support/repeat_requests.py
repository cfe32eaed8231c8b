"""Run by tests: goes through the same requests as other processes do, and says which ones it does itself."""

import asyncio
import sys
from datetime import timedelta

from lamina.domain.idempotency import KeptResponse, RequestState
from lamina.ports.clock import utc_now
from lamina.state.opening import open_server_store


async def main(place: str, schema: str, name: str, number: int, *, hangs: bool) -> None:
    options = {"schema": schema} if schema else {}
    async with open_server_store(place, **options) as store:
        print("ready", flush=True)  # noqa: T201 - this is how it reports
        for count in range(number):
            where = ("acme", "caller", f"k{count}")
            now = utc_now()
            begun = await store.begin(*where, "f", now=now, lease_until=now + timedelta(seconds=2 if hangs else 600))
            if begun.state is RequestState.NEW:
                assert begun.claim is not None
                print("does", count, flush=True)  # noqa: T201
                if hangs:
                    await asyncio.sleep(3600)
                assert await store.finish(*where, begun.claim, response=KeptResponse(200, (), name.encode()))
            leased = await store.acquire_lease(f"l{count}", name, now=now, until=now + timedelta(seconds=600))
            if leased:
                print("leases", count, flush=True)  # noqa: T201


asyncio.run(main(*sys.argv[1:4], int(sys.argv[4]), hangs=sys.argv[5:] == ["hangs"]))
