"""Engines on each store, and everything over one kernel: the library, HTTP, MCP. Clocks are driven, ids counted."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager

import pytest
from mcp import Client
from served import TOKEN, client_of

from lamina.adapters.postgres import PostgresAdapter
from lamina.conversation.manager import ConversationManager
from lamina.kernel import Kernel, ModelRouter
from lamina.mcp import Binding, create_mcp_server
from lamina.memory.factory import create_memory_engine
from lamina.server import create_app
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder, counting_ids


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(scope="session")
def collection(postgres):
    """The options of one collection in PostgreSQL, whose tables are made once: tests keep to tenants of their own."""
    options = {"url": postgres.url, "schema": f"cases_{secrets.token_hex(6)}"}

    async def prepare():
        adapter = PostgresAdapter(**options)
        await adapter.initialize()
        await adapter.close()

    asyncio.run(prepare())
    yield options
    postgres.run(f'DROP SCHEMA IF EXISTS "{options["schema"]}" CASCADE')


@pytest.fixture
def place(request, tmp_path):
    """Where the engine of a test keeps its memories; a test that names no store has a file."""
    match getattr(request, "param", "sqlite"):
        case "memory":
            return {"provider": "memory"}
        case "postgres":
            options = request.getfixturevalue("collection")
            return {"adapter": PostgresAdapter(**options, connections=2), "tenant": secrets.token_hex(6)}
        case _:
            return {"path": tmp_path / "lamina.db"}


@pytest.fixture
async def open_engine(clock):
    """Opens engines with any settings, and closes them at the end."""
    engines = []
    new_id = counting_ids()

    async def open_one(**settings):
        defaults = {"clock": clock, "new_id": new_id}
        if "embedding" not in settings:
            defaults["embed"] = HashingEmbedder()
        engine = await create_memory_engine(**{**defaults, **settings})
        engines.append(engine)
        return engine

    yield open_one
    for engine in engines:
        await engine.close()


@pytest.fixture
async def engine(open_engine, place):
    return await open_engine(**place)


@pytest.fixture
async def manager(tmp_path, clock):
    async with SqliteStateStore(tmp_path / "threads.db") as store:
        yield ConversationManager(store, clock=clock, new_id=counting_ids("msg_"))


@pytest.fixture
async def kernel(tmp_path):
    async with Kernel(data_dir=tmp_path / "data", model_router=ModelRouter(EchoModel(), embed=HashingEmbedder())) as it:
        yield it


@pytest.fixture
def app(kernel):
    return create_app(kernel, auth={TOKEN})


@pytest.fixture
async def http(app):
    async with client_of(app) as client:
        yield client


@pytest.fixture
def tools(kernel):
    """Calls the tools of MCP as an owner; a refusal is an AssertionError with its sentence."""

    @asynccontextmanager
    async def connect(owner="ann", **options):
        server = create_mcp_server(kernel, binding=Binding(tenant="default", owner=owner), **options)
        async with Client(server) as client:

            async def call(name, **arguments):
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content[0].text
                return answer.structured_content

            yield call

    return connect
