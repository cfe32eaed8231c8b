import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from real_sqld import SqldServer

from lamina.adapters.turso import TursoAdapter


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Any]]:
    """Makes an adapter, opens it, and closes it when the test is over."""
    async with AsyncExitStack() as stack:

        async def make(*args: Any, **options: Any) -> TursoAdapter:
            adapter = TursoAdapter(*args, **options)
            stack.push_async_callback(adapter.close)
            await adapter.initialize()
            return adapter

        yield make


@pytest.fixture
def table(turso: SqldServer):
    """A name that no other test uses on the server; what was made under it is dropped."""
    name = f"t{secrets.token_hex(6)}"
    yield name
    turso.drop(name)


@pytest.fixture
def own_server(turso: SqldServer):
    """A server that the test may end; where `turso` cannot be started, this one cannot either."""
    server = SqldServer()
    yield server
    server.stop()
