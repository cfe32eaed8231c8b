"""The server behind a real HTTP server on the loopback address."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from served_mcp import served
from starlette.exceptions import HTTPException

from lamina.errors import NotStarted
from lamina.mcp import Binding, bearer, create_mcp_server, mcp_app

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
OWNERS = {b"Bearer one": Binding(owner="ann"), b"Bearer two": Binding(owner="bob", read_only=True)}


def by_token(scope):
    return OWNERS.get(dict(scope["headers"]).get(b"authorization"))


@asynccontextmanager
async def talking(url, token):
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
async def test_each_token_reaches_its_own_memories(kernel, stateless, as_json):
    app = mcp_app(create_mcp_server(kernel), binding_of=by_token, stateless_http=stateless, json_response=as_json)
    await kernel.memory_engine.store("The secret of bob", owner="bob")
    async with served(app) as url, talking(url, "one") as ann, talking(url, "two") as bob:
        added = await ann.call_tool("add_memory", {"text": "The secret of ann"})
        assert not added.is_error
        for client, text in ((ann, "The secret of ann"), (bob, "The secret of bob")):
            listed = (await client.call_tool("list_memories", {})).structured_content["memories"]
            assert [each["text"] for each in listed] == [text]
        assert "add_memory" not in {tool.name for tool in (await bob.list_tools()).tools}


async def test_who_is_served_may_be_found_out_asynchronously_and_what_fails_there_is_the_app_s_to_answer(kernel):
    async def binding_of(scope):
        await asyncio.sleep(0)
        if b"x-broken" in dict(scope["headers"]):
            raise HTTPException(418, "broken")
        return Binding(owner="ann")

    app = mcp_app(create_mcp_server(kernel), binding_of=binding_of)
    async with served(app) as url, httpx2.AsyncClient() as http:
        assert (await http.post(url, json=LIST, headers=HEADERS)).status_code == 200
        assert (await http.post(url, json=LIST, headers={**HEADERS, "X-Broken": "1"})).status_code == 418


async def test_a_session_is_of_no_use_to_another_token(kernel):
    app = mcp_app(create_mcp_server(kernel), binding_of=by_token, stateless_http=False)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    async with served(app) as url, httpx2.AsyncClient() as http:
        begun = await http.post(url, json=hello, headers={**HEADERS, "Authorization": "Bearer one"})
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        own = await http.post(url, json=LIST, headers={**HEADERS, **session, "Authorization": "Bearer one"})
        foreign = await http.post(url, json=LIST, headers={**HEADERS, **session, "Authorization": "Bearer two"})
    assert (own.status_code, foreign.status_code) == (200, 404)


async def test_who_has_no_token_is_asked_for_one(kernel):
    app = mcp_app(create_mcp_server(kernel), binding_of=bearer("s\u00e9cret", Binding(owner="ann")))
    right = "Bearer sécret".encode()
    async with served(app) as url, httpx2.AsyncClient() as http:
        for headers, status in (
            ([], 401),
            ([(b"Authorization", b"")], 401),
            ([(b"Authorization", b"Bearer")], 401),
            ([(b"Authorization", b"Bearer x")], 401),
            ([(b"Authorization", right[:-1])], 401),
            ([(b"Authorization", right + b"x")], 401),
            ([(b"Authorization", b"Bearer \xff\xfe")], 401),
            ([(b"Authorization", right.replace(b"Bearer", b"Basic"))], 401),
            ([(b"Authorization", right), (b"Authorization", right)], 401),
            ([(b"Authorization", right)], 200),
            ([(b"authorization", right.replace(b"Bearer", b"bearer"))], 200),
        ):
            given = [(name.encode(), value.encode()) for name, value in HEADERS.items()] + headers
            answer = await http.post(url, json=LIST, headers=given)
            assert answer.status_code == status
            assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
    ],
)
async def test_only_this_machine_may_be_called_by_a_browser(kernel, headers, status):
    app = mcp_app(create_mcp_server(kernel, binding=Binding()))
    async with served(app) as url, httpx2.AsyncClient() as http:
        assert (await http.post(url, json=LIST, headers={**HEADERS, **headers})).status_code == status


async def test_other_hosts_are_allowed_by_name_or_left_to_another_check(kernel):
    server = create_mcp_server(kernel, binding=Binding())
    for app, allowed in (
        (mcp_app(server, allowed_hosts=["memory.example"]), {"memory.example", "memory.example:8765"}),
        (mcp_app(server, rebinding_protection=False), {"memory.example", "memory.example:8765", "evil.example"}),
    ):
        async with served(app) as url, httpx2.AsyncClient() as http:
            for host in ("memory.example", "memory.example:8765", "evil.example", "xmemory.example"):
                answer = await http.post(url, json=LIST, headers={**HEADERS, "Host": host})
                assert (answer.status_code == 200) is (
                    host in allowed or not app._security.enable_dns_rebinding_protection
                )


async def test_a_megabyte_of_characters_is_taken_and_fifty_are_not(kernel):
    text = "👩" * 1_000_000
    app = mcp_app(create_mcp_server(kernel, binding=Binding()))
    async with served(app) as url, httpx2.AsyncClient(timeout=60) as http:
        call = {**LIST, "method": "tools/call", "params": {"name": "add_memory", "arguments": {"text": text}}}
        answer = await http.post(url, content=json.dumps(call), headers=HEADERS)
        assert answer.json()["result"]["structuredContent"]["stored"] is True
        with_length = await http.post(url, content=b"x" * 50_000_000, headers=HEADERS)
        assert with_length.status_code == 413


@pytest.mark.parametrize("body", [b"", b"nonsense", b"\xff", b"[]", b'{"jsonrpc": "1.0"}', b"[" * 100_000])
async def test_a_body_that_is_no_message_is_the_client_s_error(kernel, body):
    app = mcp_app(create_mcp_server(kernel, binding=Binding()))
    async with served(app) as url, httpx2.AsyncClient() as http:
        answer = await http.post(url, content=body, headers=HEADERS)
        assert 400 <= answer.status_code < 500


async def test_without_state_there_is_nothing_to_wait_for(kernel):
    app = mcp_app(create_mcp_server(kernel, binding=Binding()))
    async with served(app) as url, httpx2.AsyncClient() as http:
        for method in ("GET", "DELETE", "PUT"):
            answer = await http.request(method, url, headers=HEADERS)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_the_app_serves_again_after_its_lifespan_was_left(kernel):
    app = mcp_app(create_mcp_server(kernel, binding=Binding()))
    for _ in range(2):
        async with served(app) as url, httpx2.AsyncClient() as http:
            assert (await http.post(url, json=LIST, headers=HEADERS)).status_code == 200
    with pytest.raises(NotStarted, match="lifespan"):
        await app({"type": "http", "method": "POST", "headers": []}, None, None)


async def test_many_clients_at_once_are_all_served(kernel):
    app = mcp_app(create_mcp_server(kernel), binding_of=by_token)

    async def remember(client, number):
        return await client.call_tool("add_memory", {"text": f"Fact number {number}"})

    async with served(app) as url, talking(url, "one") as one, talking(url, "one") as two:
        answers = await asyncio.gather(*(remember(client, n) for client in (one, two) for n in range(25)))
        assert len({each.structured_content["id"] for each in answers}) == 25
