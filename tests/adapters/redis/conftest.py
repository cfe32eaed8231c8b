"""Adapters on tables of their own, and servers that a test may stop, fill or hold up."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import services
from cutting_proxy import CuttingProxy
from opening import opening
from real_redis import RedisServer

from lamina.adapters.redis import RedisAdapter


@pytest.fixture
def table() -> str:
    """A name that no other test uses."""
    return f"t{secrets.token_hex(6)}"


@pytest.fixture
async def opened(redis_server, table) -> AsyncIterator[Callable]:
    """Opens adapters, on the shared server and the test's table unless told otherwise, and closes them."""
    async with opening(RedisAdapter, redis_server.url, table=table) as open_one:
        yield open_one


@pytest.fixture
def server_of_its_own(redis_server) -> Iterator[Callable]:
    """Starts servers for this test alone."""
    del redis_server  # which says it where the means are lacking
    made = []

    def start(*settings, **options) -> RedisServer:
        server = RedisServer(*settings, **options)
        made.append(server)
        return server

    yield start
    for server in made:
        server.stop()


@pytest.fixture
def proxy(redis_server) -> Iterator[CuttingProxy]:
    """Between the adapter and the shared server; cuts connections where it is told."""
    proxy = CuttingProxy(redis_server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def nobody() -> str:
    """The address of a server that is not there."""
    return f"redis://127.0.0.1:{services.free_port()}/0"
