"""MCP in the same app: at one address with the resources, with the same tokens."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from served import client_of, listening

from lamina.server import Access, Principal, create_app
from lamina.settings import ServerConfig

TOKENS = {
    "ann": Principal(owner="ann", id="ann"),
    "bob": Principal(owner="bob", id="bob"),
    "reader": Principal(owner="ann", access=frozenset({Access.READ}), id="reader"),
    "writer": Principal(owner="ann", access=frozenset({Access.WRITE}), id="writer"),
}


@pytest.fixture
async def place(kernel):
    app = create_app(kernel, auth=TOKENS.get, settings=ServerConfig(mcp=True))
    async with listening(app) as (host, port, _):
        yield f"http://{host}:{port}"


@asynccontextmanager
async def mcp_client(place, token):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(f"{place}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_a_token_reaches_its_owners_memories_and_no_others(place):
    async with mcp_client(place, "ann") as ann:
        added = await ann.call_tool("add_memory", {"text": "Ann likes tea."})
        assert not added.is_error
    async with mcp_client(place, "bob") as bob:
        found = await bob.call_tool("search_memories", {"query": "Who likes tea?"})
        assert "Ann" not in str(found)
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer ann"}) as http:
        listed = (await http.get(f"{place}/v1/memories")).json()["data"]
    assert [each["content"] for each in listed] == ["Ann likes tea."]


async def test_a_token_that_only_reads_is_offered_no_tool_that_writes(place):
    async with mcp_client(place, "ann") as ann, mcp_client(place, "reader") as reader:
        all_tools = {tool.name for tool in (await ann.list_tools()).tools}
        offered = {tool.name for tool in (await reader.list_tools()).tools}
    assert all_tools - offered == {"add_memory", "update_memory", "delete_memory"}


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("nobody", 401), ("writer", 403)])
async def test_who_may_not_read_is_refused_as_everywhere(place, token, status):
    headers = {"Accept": "application/json, text/event-stream"}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        answer = await http.post(f"{place}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer.status_code == status
    assert answer.json()["code"] in {"unauthenticated", "forbidden"}


async def test_without_the_setting_there_is_no_mcp(kernel):
    async with client_of(create_app(kernel, auth={"the-token"})) as http:
        assert (await http.post("/mcp", json={})).status_code == 404
