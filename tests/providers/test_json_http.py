from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from lamina.errors import ConfigError, ProviderError, ProviderUnavailable
from lamina.providers.json_http import HttpLimits, JsonHttpClient

KEY = "sk-made-up-0123456789"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Sleep:
    """Waits no time, and remembers how long it was asked to."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def sleep() -> Sleep:
    return Sleep()


@pytest.fixture
async def client(server, sleep):
    limits = HttpLimits(timeout=5, max_retries=3, max_elapsed=60)
    client = JsonHttpClient("scripted", server.url, api_key=KEY, limits=limits, sleep=sleep, clock=lambda: NOW)
    yield client
    await client.close()


async def test_the_payload_goes_out_and_the_answer_comes_back(server, client) -> None:
    server.plays(server.json({"answer": "ä"}))
    assert await client.post("path", {"question": "ö"}) == {"answer": "ä"}
    [request] = server.requests
    assert request.path == "/v1/path"
    assert request.json == {"question": "ö"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
async def test_a_busy_or_broken_server_is_tried_again_with_growing_waits(server, client, sleep, status: int) -> None:
    server.plays(*[server.raw(b"busy", status)] * 3, server.json("done"))
    assert await client.post("path", {}) == "done"
    assert len(server.requests) == 4
    assert all(0.5 * 2**n <= wait <= 0.75 * 2**n for n, wait in enumerate(sleep.waits))
    assert len(sleep.waits) == 3


async def test_retries_end_and_say_what_the_server_said(server, client) -> None:
    server.plays(server.raw(b'{"error": "overloaded"}', 503))
    with pytest.raises(ProviderUnavailable, match=r"503.*overloaded.*4 attempts"):
        await client.post("path", {})
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        ("0", 0.0),
        (format_datetime(NOW + timedelta(seconds=20), usegmt=True), 20.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
        ("Sun, 01 Mar 2026 12:00:05 -0000", 5.0),
    ],
)
async def test_a_retry_after_is_honoured_in_seconds_and_as_a_date(server, client, sleep, header, wait) -> None:
    server.plays(server.raw(b"", 429, Retry_After=header), server.json(1))
    await client.post("path", {})
    assert sleep.waits == [wait]


@pytest.mark.parametrize("header", ["soon", "-5", "1e9", "", "²"])
async def test_a_retry_after_that_says_nothing_usable_is_as_none(server, client, sleep, header: str) -> None:
    server.plays(server.raw(b"", 503, Retry_After=header), server.json(1))
    await client.post("path", {})
    assert 0.5 <= sleep.waits[0] <= 0.75


async def test_a_retry_after_beyond_the_time_left_fails_at_once(server, client, sleep) -> None:
    server.plays(server.raw(b"", 429, Retry_After="3600"))
    with pytest.raises(ProviderUnavailable, match="asks to wait 3600 s"):
        await client.post("path", {})
    assert (len(server.requests), sleep.waits) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_not_tried_again_and_shows_what_the_server_said(server, client, status: int) -> None:
    server.plays(server.raw(b'{"error": {"message": "input 3 is blank"}}', status))
    with pytest.raises(ProviderError, match=rf"{status}.*input 3 is blank") as caught:
        await client.post("path", {})
    assert type(caught.value) is ProviderError
    assert len(server.requests) == 1


async def test_a_long_error_body_is_shortened_and_the_key_in_it_is_hidden(server, client) -> None:
    server.plays(server.raw(f"bad key {KEY}, header Bearer {KEY} ".encode() + b"x" * 2_000_000, 400))
    with pytest.raises(ProviderError) as caught:
        await client.post("path", {})
    assert len(str(caught.value)) < 500
    assert "made-up" not in str(caught.value)
    assert "[key]" in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(server, client, status: int) -> None:
    server.plays(server.raw(b"", status, Location=f"{server.url}/elsewhere"))
    with pytest.raises(ProviderError, match="redirects elsewhere"):
        await client.post("path", {})
    assert [request.path for request in server.requests] == ["/v1/path"]


async def test_a_reset_connection_or_a_cut_answer_is_tried_again(server, client) -> None:
    server.plays(server.resets, server.raw(b'{"a": [1, 2', missing=10), server.json("done"))
    assert await client.post("path", {}) == "done"


async def test_a_server_that_is_not_there_is_unavailable(unused_url: str, sleep: Sleep) -> None:
    client = JsonHttpClient("scripted", unused_url, sleep=sleep)
    with pytest.raises(ProviderUnavailable, match="4 attempts"):
        await client.post("path", {})
    await client.close()


@pytest.mark.parametrize("reply", ["hangs", "drips"])
async def test_a_server_that_does_not_answer_or_answers_without_end_times_out(server, sleep, reply: str) -> None:
    server.plays(server.hangs if reply == "hangs" else server.drips(b" " * 10_000))
    limits = HttpLimits(timeout=0.5, max_retries=1)
    client = JsonHttpClient("scripted", server.url, limits=limits, sleep=sleep)
    with pytest.raises(ProviderUnavailable, match=r"within 0\.5 s"):
        await client.post("path", {})
    assert len(server.requests) == 2
    await client.close()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": [1,', b"\xff\xfe", b"[" * 100_000])
async def test_an_answer_that_is_no_json_is_an_error_that_does_not_quote_it(server, client, body: bytes) -> None:
    server.plays(server.raw(body))
    with pytest.raises(ProviderError, match=f"answer of {len(body)} bytes is no JSON"):
        await client.post("path", {})
    assert len(server.requests) == 1


async def test_an_answer_beyond_the_limit_is_refused_while_it_comes_in(server) -> None:
    server.plays(server.json("x" * 1_000_000))
    client = JsonHttpClient("scripted", server.url, limits=HttpLimits(max_response_bytes=10_000))
    with pytest.raises(ProviderError, match="exceeds 10000 bytes"):
        await client.post("path", {})
    await client.close()


async def test_a_stream_gives_each_event_even_with_line_separators_in_it(server, client) -> None:
    server.plays(server.events("one", 'tw\u2028o\x85"', "three"))
    assert [data async for data in client.stream("path", {})] == ["one", 'tw\u2028o\x85"', "three"]


async def test_the_opening_of_a_stream_is_tried_again_but_not_the_rest(server, client, sleep) -> None:
    cut = server.raw(b"data: one\n\n", missing=100, content_type="text/event-stream")
    server.plays(server.raw(b"", 503), cut)
    stream = client.stream("path", {})
    assert await anext(stream) == "one"
    with pytest.raises(ProviderUnavailable, match="broke off"):
        await anext(stream)
    assert (len(server.requests), len(sleep.waits)) == (2, 1)


async def test_an_answer_that_is_no_stream_is_an_error(server, client) -> None:
    server.plays(server.json({"not": "a stream"}))
    with pytest.raises(ProviderError, match="event-stream"):
        [data async for data in client.stream("path", {})]


async def test_a_stream_can_be_left_and_the_client_used_again(server, client) -> None:
    server.plays(server.events("one", "two"), server.json("done"))
    async with aclosing(client.stream("path", {})) as events:
        async for data in events:
            assert data == "one"
            break
    assert await client.post("path", {}) == "done"


async def test_cancellation_ends_a_call(server, client) -> None:
    arrived = asyncio.Event()

    async def hangs(request, writer) -> None:
        arrived.set()
        await server.hangs(request, writer)

    server.plays(hangs)
    call = asyncio.create_task(client.post("path", {}))
    await arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_one_client_serves_two_event_loops_in_turn() -> None:
    async def serve_once(client_of: dict[str, JsonHttpClient]) -> Any:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n1")
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(answer, "127.0.0.1", client_of.get("port", 0))
        port = listening.sockets[0].getsockname()[1]
        client = client_of.setdefault("client", JsonHttpClient("scripted", f"http://127.0.0.1:{port}"))
        client_of["port"] = port
        result = await client.post("path", {})
        await client.close()
        listening.close()
        await listening.wait_closed()
        return result

    shared: dict[str, Any] = {}
    assert asyncio.run(serve_once(shared)) == 1
    assert asyncio.run(serve_once(shared)) == 1
    gc.collect()


async def test_the_key_is_in_no_log_and_no_repr(server, client, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    server.plays(server.raw(b"no", 401))
    with pytest.raises(ProviderError) as caught:
        await client.post("path", {})
    assert "made-up" not in caplog.text + repr(client) + repr(caught.value)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:1", "ftp://host/v1", "http://", "http://user:pw@host/v1", "http://host/v1?key=1", "http://host/#a"],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url") as caught:
        JsonHttpClient("scripted", url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "with space", "line\n", "ключ", "nul\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ConfigError, match="api_key") as caught:
        JsonHttpClient("scripted", "http://host", api_key=key)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    "limits", [{"timeout": 0}, {"timeout": "5"}, {"max_retries": -1}, {"max_elapsed": float("nan")}]
)
def test_limits_that_cannot_be_kept_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(limits))):
        HttpLimits(**limits)
