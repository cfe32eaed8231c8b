"""What only shows on a real connection: long and endless bodies, streams, clients that go away, and the end."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from served import TOKEN, app_of, listening

from lamina.settings import ServerConfig

MEBIBYTE = 1024 * 1024


class Routes:
    """Counts what reached a route."""

    def __init__(self):
        self.received = []
        self.entered = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.router = APIRouter(prefix="/v1/parts")
        self.router.post("/json")(self.json)
        self.router.post("/import")(self.take)
        self.router.get("/pieces")(self.pieces)
        self.router.get("/broken")(self.broken)
        self.router.get("/waiting")(self.waiting)

    async def json(self, body: dict[str, str]) -> int:
        self.received.append(len(body))
        return len(body)

    async def take(self, request: Request) -> int:
        size = 0
        async for piece in request.stream():
            size += len(piece)
        self.received.append(size)
        return size

    async def pieces(self) -> StreamingResponse:
        async def given():
            yield "first\n"
            await self.may_go_on.wait()
            yield "last\n"

        return StreamingResponse(given(), media_type="application/x-ndjson")

    async def broken(self) -> StreamingResponse:
        async def given():
            yield "first\n"
            raise ValueError("SECRET")

        return StreamingResponse(given(), media_type="application/x-ndjson")

    async def waiting(self) -> str:
        self.entered.set()
        await self.may_go_on.wait()
        return "done"


@pytest.fixture
def routes():
    return Routes()


@pytest.fixture
async def served(routes):
    async with listening(
        app_of(routes.router, settings=ServerConfig(gzip_minimum=None, max_import_bytes=4 * MEBIBYTE))
    ) as place:
        yield place


@pytest.fixture
async def http(served):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=f"http://{served[0]}:{served[1]}", headers=headers, timeout=20) as client:
        yield client


def head(path, **headers):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}"]
    return "\r\n".join(
        [*lines, *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    ).encode()


async def status_of(reader):
    return int((await asyncio.wait_for(reader.readline(), 20)).split()[1])


async def test_a_body_of_50_mb_is_413_and_the_server_serves_on(http, routes):
    for kind in ("application/json", "application/x-ndjson"):
        answer = await http.post("/v1/parts/json", content=b"x" * (50 * MEBIBYTE), headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await http.get("/healthz")).status_code == 200
    assert routes.received == []


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize("path", ["/v1/parts/json", "/v1/parts/import"])
async def test_an_endless_body_is_cut_off(served, routes, kind, path):
    reader, writer = await asyncio.open_connection(*served[:2])
    writer.write(head(path, Content_Type=kind, Transfer_Encoding="chunked"))

    async def send():
        while True:
            writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        assert await status_of(reader) == 413
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(sending, 20)  # it is closed, not left to send for ever
    finally:
        sending.cancel()
        writer.close()
    assert routes.received == []


async def test_a_length_that_is_announced_is_refused_before_anything_is_sent(served):
    reader, writer = await asyncio.open_connection(*served[:2])
    writer.write(head("/v1/parts/json", Content_Type="application/json", Content_Length=50 * MEBIBYTE))
    assert await status_of(reader) == 413
    writer.close()


async def test_a_body_of_exactly_the_limit_is_taken(http, routes):
    body = json.dumps({"a": "x" * (MEBIBYTE - 9)}, separators=(",", ":"))
    assert len(body) == MEBIBYTE - 1
    assert (
        await http.post("/v1/parts/json", content=body + " ", headers={"Content-Type": "application/json"})
    ).json() == 1
    over = await http.post("/v1/parts/json", content=body + "  ", headers={"Content-Type": "application/json"})
    assert over.status_code == 413


async def test_an_import_may_be_longer_up_to_a_limit_of_its_own(http, routes):
    async def pieces(count):
        for _ in range(count):
            yield b"x" * MEBIBYTE

    headers = {"Content-Type": "application/x-ndjson"}
    assert (await http.post("/v1/parts/import", content=pieces(4), headers=headers)).json() == 4 * MEBIBYTE
    assert (await http.post("/v1/parts/import", content=b"x" * (4 * MEBIBYTE), headers=headers)).json() == 4 * MEBIBYTE
    assert (await http.post("/v1/parts/import", content=b"x" * (4 * MEBIBYTE + 1), headers=headers)).status_code == 413
    assert routes.received == [4 * MEBIBYTE] * 2


async def test_a_client_that_goes_away_amid_its_body_disturbs_nobody(served, http, routes):
    _, writer = await asyncio.open_connection(*served[:2])
    writer.write(head("/v1/parts/json", Content_Type="application/json", Content_Length=100) + b'{"a":')
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await http.get("/healthz")).status_code == 200
    assert routes.received == []


async def test_a_stream_goes_out_as_it_comes(http, routes):
    async with http.stream("GET", "/v1/parts/pieces") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "first"
        routes.may_go_on.set()
        assert await anext(lines) == "last"


async def test_a_stream_that_fails_is_not_taken_for_whole_and_its_log_has_no_content(http, caplog):
    with pytest.raises(httpx2.RemoteProtocolError):
        await http.get("/v1/parts/broken")
    assert "ValueError at" in caplog.text
    assert "SECRET" not in caplog.text


async def test_a_server_that_is_stopped_finishes_what_was_begun_and_takes_nothing_new(served, http, routes):
    host, port, server = served
    asked = asyncio.create_task(http.get("/v1/parts/waiting"))
    await routes.entered.wait()
    server.should_exit = True
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except ConnectionError:
            break
        writer.close()
        await asyncio.sleep(0.02)
    assert not asked.done()
    routes.may_go_on.set()
    assert (await asked).json() == "done"
