import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from opening import opening
from real_sqld import SqldServer

from lamina.adapters.turso import TursoAdapter


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Any]]:
    """Makes an adapter, opens it, and closes it when the test is over."""
    async with opening(TursoAdapter) as open_one:
        yield open_one


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
