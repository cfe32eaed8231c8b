"""Run by tests: begins to maintain the database of a folder, and hangs in it, renewing its lease."""

import asyncio
import sys
from datetime import timedelta

from lamina.kernel import ModelRouter
from lamina.kernel.tenants import TenantKernels
from lamina.server.upkeep import Upkeep
from lamina.testing import HashingEmbedder


class Hanging(TenantKernels):
    """Kernels whose maintenance never ends."""

    async def run_maintenance(self, tenant, *, decay=False):
        print("maintains", flush=True)  # noqa: T201 - this is how it reports
        await asyncio.sleep(3600)


async def main(url: str, lease: float) -> None:
    memory = {"url": url} if "://" in url else {"path": url}
    async with Hanging({"memory": memory}, model_router=ModelRouter(embed=HashingEmbedder())) as kernels:
        await Upkeep(kernels, interval=timedelta(hours=1), lease=timedelta(seconds=lease)).look()


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
