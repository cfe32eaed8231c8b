"""A server in this process, reached as over the network."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2

TOKEN = "the-token"


@asynccontextmanager
async def client_of(app, *, token=TOKEN):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://server", headers=headers) as client:
        yield client
