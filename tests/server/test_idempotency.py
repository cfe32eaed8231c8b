"""Under one `Idempotency-Key` a request is done once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from served import TOKEN, app_of, client_of, listening

from lamina.domain.idempotency import KeptResponse, RequestState
from lamina.server.middleware.idempotency import MAX_KEPT_BYTES
from lamina.server.problems import Problem
from lamina.server.requests import RequestsInProcess
from lamina.settings import ServerConfig
from lamina.state.sqlite import SqliteServerStore

MEBIBYTE = 1024 * 1024
READ = 500_000
"""As much as a route of this test reads before it answers."""
START = datetime(2026, 1, 31, tzinfo=UTC)


class Order(BaseModel):
    what: str


class Shop:
    """Counts what is done, and can be made to wait or to fail."""

    def __init__(self):
        self.done = []
        self.open = asyncio.Event()
        self.open.set()
        self.entered = asyncio.Event()
        self.failure = None
        self.now = START
        self.router = APIRouter(prefix="/v1/orders")
        self.router.post("", status_code=201)(self.order)
        self.router.patch("/{id}")(self.order)
        self.router.post("/long")(self.long)
        self.router.post("/stream")(self.stream)
        self.router.post("/whole")(self.whole)
        self.router.post("/begun")(self.begun)

    async def order(self, order: Order, response: Response) -> dict[str, int]:
        self.entered.set()
        await self.open.wait()
        self.done.append(order.what)
        if self.failure is not None:
            raise self.failure
        response.headers["ETag"] = '"1"'
        return {"number": len(self.done)}

    async def whole(self, request: Request) -> dict[str, int]:
        async for _ in request.stream():
            pass
        self.done.append("whole")
        return {"number": len(self.done)}

    async def begun(self, request: Request) -> dict[str, int]:
        read = 0
        async for piece in request.stream():
            read += len(piece)
            if read >= READ:
                break
        self.done.append("begun")
        return {"number": len(self.done)}

    async def long(self) -> str:
        self.done.append("long")
        return "x" * MAX_KEPT_BYTES

    async def stream(self) -> StreamingResponse:
        self.done.append("stream")

        async def pieces():
            for each in ("a\n", "b\n"):
                yield each

        return StreamingResponse(pieces(), media_type="application/x-ndjson")


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
async def http(shop):
    settings = ServerConfig(request_timeout=30, rate_limited=False)
    app = app_of(shop.router, auth={TOKEN, "other"}, settings=settings, clock=lambda: shop.now)
    async with client_of(app) as client:
        yield client


def order(http, what="tea", key="k", path="/v1/orders", method="POST", **headers):
    return http.request(method, path, json={"what": what}, headers={"Idempotency-Key": key, **headers})


async def test_the_same_request_is_done_once_and_answered_alike(shop, http):
    first, second = await order(http), await order(http)
    assert shop.done == ["tea"]
    assert (second.status_code, second.content) == (first.status_code, first.content) == (201, b'{"number":1}')
    assert second.headers["ETag"] == first.headers["ETag"]
    assert second.headers["Content-Type"] == first.headers["Content-Type"]
    assert (first.headers.get("Idempotency-Replayed"), second.headers["Idempotency-Replayed"]) == (None, "true")
    assert first.headers["X-Request-ID"] != second.headers["X-Request-ID"]


async def test_without_a_key_it_is_done_each_time(shop, http):
    for _ in range(2):
        await http.post("/v1/orders", json={"what": "tea"})
    assert shop.done == ["tea", "tea"]


async def test_a_key_of_another_request_is_refused(shop, http):
    await order(http)
    answer = await order(http, "milk")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
    changed = await order(http, **{"If-Match": '"1"'})
    assert changed.status_code == 409
    assert shop.done == ["tea"]


async def test_a_key_belongs_to_a_token_a_method_and_a_path(shop, http):
    await order(http)
    await order(http, Authorization="Bearer other")
    await order(http, path="/v1/orders/1", method="PATCH")
    await order(http, path="/v1/orders/2", method="PATCH")
    assert len(shop.done) == 4


async def test_while_it_is_being_done_another_is_told_to_wait(shop, http):
    shop.open.clear()
    first = asyncio.create_task(order(http))
    await shop.entered.wait()
    second = await order(http)
    assert (second.status_code, second.json()["code"], second.headers["Retry-After"]) == (409, "in_progress", "1")
    shop.open.set()
    assert (await first).status_code == 201
    assert (await order(http)).headers["Idempotency-Replayed"] == "true"
    assert shop.done == ["tea"]


async def test_what_a_dead_process_began_is_taken_over_after_its_lease(shop, http):
    shop.open.clear()
    first = asyncio.create_task(order(http))
    await shop.entered.wait()
    shop.now += timedelta(seconds=59)
    assert (await order(http)).status_code == 409
    shop.now += timedelta(seconds=2)
    shop.open.set()
    assert (await order(http)).status_code == 201
    await first


async def test_a_refusal_is_kept_and_a_failure_of_the_server_is_not(shop, http):
    shop.failure = Problem(409, "conflict", "No", "No")
    assert [(await order(http)).status_code for _ in range(2)] == [409, 409]
    assert shop.done == ["tea"]
    for failure in (Problem(503, "no", "No", "No"), ValueError("a defect")):
        shop.failure = failure
        assert (await order(http, key="f")).status_code >= 500
    shop.failure = None
    assert (await order(http, key="f")).status_code == 201


async def test_a_client_that_goes_away_leaves_the_key_free(shop, http):
    shop.open.clear()
    first = asyncio.create_task(order(http))
    await shop.entered.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    shop.open.set()
    assert (await order(http)).status_code == 201


@pytest.mark.parametrize("what", ["long", "stream"])
async def test_an_answer_that_is_not_kept_is_not_made_twice(shop, http, what):
    first = await http.post(f"/v1/orders/{what}", headers={"Idempotency-Key": "k"})
    second = await http.post(f"/v1/orders/{what}", headers={"Idempotency-Key": "k"})
    assert first.status_code == 200
    assert (second.status_code, second.json()["code"]) == (409, "answer_not_kept")
    assert shop.done == [what]


@pytest.mark.parametrize("way", ["with its length", "in chunks"])
@pytest.mark.parametrize("path", ["whole", "begun"])
async def test_a_streamed_body_is_told_from_others_by_what_was_read_of_it(shop, path, way):
    """Over a socket, since a body comes in pieces there."""
    size = 3 * MEBIBYTE if path == "whole" else 3 * READ
    bodies = {each: each.encode() * size for each in "ab"}
    bodies["longer"] = bodies["a"] + b"a"
    bodies["shorter"] = bodies["a"][:10]
    bodies["other end"] = bodies["a"][:-1] + b"b"

    async def pieces(body):
        for start in range(0, len(body), 70_001):
            yield body[start : start + 70_001]

    async def answer_to(body):
        content = bodies[body] if way == "with its length" else pieces(bodies[body])
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/plain", "Idempotency-Key": "k"}
        answer = await http.post(f"/v1/orders/{path}", content=content, headers=headers)
        assert "lamina-request-body" not in answer.headers
        return answer.status_code, answer.json().get("number", answer.json().get("code"))

    app = app_of(shop.router, settings=ServerConfig(request_timeout=30), clock=lambda: shop.now)
    async with (
        listening(app) as (host, port, _),
        httpx2.AsyncClient(base_url=f"http://{host}:{port}", timeout=20) as http,
    ):
        done, reused = (200, 1), (409, "idempotency_key_reused")
        # Where a route answers before the end, what stands behind is no reason for another answer.
        behind = reused if path == "whole" else done
        expected = {"a": done, "b": reused, "longer": behind, "shorter": reused, "other end": behind}
        assert await answer_to("a") == done
        assert {each: await answer_to(each) for each in expected} == expected
    assert shop.done == [path]


@pytest.mark.parametrize("key", ["", " ", "a b", "a" * 256, "\u00e9".encode(), "a\tb"])
async def test_what_is_no_key_is_refused_and_named(shop, http, key):
    answer = await order(http, key=key)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "header.idempotency-key")
    assert shop.done == []


async def test_two_keys_are_none(shop, http):
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert (await http.post("/v1/orders", json={"what": "tea"}, headers=headers)).status_code == 422
    assert shop.done == []


@pytest.mark.parametrize("key", ["a", "~" * 255])
async def test_every_key_that_may_be_is_taken(shop, http, key):
    assert (await order(http, key=key)).status_code == 201


async def test_processes_over_one_store_answer_alike_and_take_over_from_a_dead_one(shop, tmp_path):
    async with SqliteServerStore(tmp_path / "a.db") as one, SqliteServerStore(tmp_path / "a.db") as two:
        settings = ServerConfig(request_timeout=30)
        apps = [app_of(shop.router, settings=settings, store=each, clock=lambda: shop.now) for each in (one, two)]
        async with client_of(apps[0]) as first, client_of(apps[1]) as second:
            done, again = await order(first), await order(second)
            assert (again.content, again.headers["Idempotency-Replayed"]) == (done.content, "true")
            # A process that dies amid a request neither finishes nor abandons it.
            one.abandon = never
            shop.failure = ValueError("the process dies")
            await order(first, key="dead")
            shop.failure = None
            assert (await order(second, key="dead")).status_code == 409
            shop.now += timedelta(seconds=61)
            assert (await order(second, key="dead")).status_code == 201


async def test_answers_that_are_kept_in_the_process_have_a_budget_and_the_oldest_leave_first():
    requests, now = RequestsInProcess(most_bytes=100), datetime(2026, 1, 1, tzinfo=UTC)

    async def begin(key):
        return await requests.begin("t", "c", key, "f", now=now, lease_until=now + timedelta(minutes=1))

    async def do(key):
        claim = (await begin(key)).claim
        await requests.finish("t", "c", key, claim, response=KeptResponse(200, (), b"x" * 40))

    await begin("under way")
    for key in ("one", "two", "three"):
        await do(key)
    states = [(await begin(key)).state for key in ("under way", "two", "three", "one")]
    assert states == [RequestState.IN_PROGRESS, RequestState.FINISHED, RequestState.FINISHED, RequestState.NEW]
    assert await requests.purge(now + timedelta(hours=1)) == 4
    for key in ("four", "five"):  # what was dropped counts no more
        await do(key)
    assert [(await begin(key)).state for key in ("four", "five")] == [RequestState.FINISHED] * 2


async def never(*_):
    return False
