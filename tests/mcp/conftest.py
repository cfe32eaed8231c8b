"""MCP servers over a kernel of a real file, and clients that talk to them in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from mcp import Client

from lamina.kernel import Kernel, ModelRouter
from lamina.mcp import Binding, create_mcp_server
from lamina.testing import EchoModel, HashingEmbedder


class Talker:
    """A client whose answers are what a test looks at: the structured result, or the sentence of a refusal."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, **arguments):
        answer = await self.client.call_tool(name, arguments)
        assert not answer.is_error, answer.content[0].text
        return answer.structured_content

    async def said(self, name: str, **arguments) -> str:
        answer = await self.client.call_tool(name, arguments)
        assert not answer.is_error, answer.content[0].text
        return answer.content[0].text

    async def refused(self, name: str, **arguments) -> str:
        answer = await self.client.call_tool(name, arguments)
        assert answer.is_error
        assert answer.structured_content is None
        return answer.content[0].text

    async def tools(self):
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}


@pytest.fixture
async def kernel(tmp_path):
    router = ModelRouter(EchoModel(), embed=HashingEmbedder())
    async with Kernel(data_dir=tmp_path / "data", model_router=router) as started:
        yield started


@pytest.fixture
def connected(kernel):
    """Connects a client, as an owner and with the server's options."""

    @asynccontextmanager
    async def connect(owner="ann", *, namespace=None, kernel_of=None, tenant="default", **options):
        binding = Binding(tenant=tenant, owner=owner, namespace=namespace)
        server = create_mcp_server(kernel_of or kernel, binding=binding, **options)
        async with Client(server) as client:
            yield Talker(client)

    return connect
