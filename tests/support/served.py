"""A server in this process, reached as over the network."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2

from lamina.server import create_app

TOKEN = "the-token"


class NoKernels:
    """For routes that need none."""

    async def of(self, tenant):
        raise AssertionError(f"nobody asked for a kernel of {tenant}")


def app_of(router, **options):
    """A server with these routes of a test, and no kernel."""
    app = create_app(NoKernels(), **{"auth": {TOKEN}, **options})
    app.include_router(router)
    return app


@asynccontextmanager
async def client_of(app, *, token=TOKEN):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client
