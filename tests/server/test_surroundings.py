"""Ids, headers, hosts, limits and logs: what surrounds every route."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from datetime import UTC, datetime

import pytest
from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from served import TOKEN, app_of, client_of

from lamina.domain.api_token import TokenScope
from lamina.kernel.api_tokens import issue_token
from lamina.server import running
from lamina.server.app import ask_for_tokens
from lamina.server.authentication import one_of
from lamina.server.caller import Reader
from lamina.server.logs import configure_logs
from lamina.settings import RateLimit, ServerConfig
from lamina.state.sqlite import SqliteServerStore

router = APIRouter(prefix="/v1/parts")
forever = asyncio.Event


@router.get("/long")
async def long() -> str:
    return "word " * 2000


@router.get("/slow")
async def slow() -> str:
    await asyncio.Event().wait()
    return "never"


@router.get("/stream")
async def stream() -> StreamingResponse:
    async def pieces():
        yield "first\n"
        await asyncio.sleep(0.3)
        yield "last\n"

    return StreamingResponse(pieces(), media_type="application/x-ndjson")


@router.get("/secret/{id}")
async def secret(id: str, query: str = "") -> str:
    return id


def served(token=TOKEN, auth=frozenset({TOKEN}), **settings):
    return client_of(app_of(router, auth=auth, settings=ServerConfig(**settings)), token=token)


@pytest.mark.parametrize("id", ["a", "0f-A_.:9", "a" * 128])
async def test_the_id_of_a_request_comes_back(id):
    async with served() as http:
        assert (await http.get("/healthz", headers={"X-Request-ID": id})).headers["X-Request-ID"] == id


@pytest.mark.parametrize("id", ["", "a b", "a" * 129, "\u00e9", "a\tb", '"'])
async def test_what_is_no_id_is_replaced_by_one(id):
    async with served() as http:
        made = [
            (await http.get("/healthz", headers={"X-Request-ID": id.encode()})).headers["X-Request-ID"]
            for _ in range(2)
        ]
    assert made[0] != made[1]
    assert all(each.isalnum() and len(each) == 32 for each in made)


async def test_every_answer_tells_browsers_to_guess_and_keep_nothing():
    async with served() as http:
        for path in ("/healthz", "/v1/nothing", "/openapi.json", "/v1/parts/long"):
            headers = (await http.get(path)).headers
            assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:80", "[", "[::2]"]
)
async def test_without_tokens_the_server_answers_to_this_machine_alone(host):
    async with served(auth=None, token=None) as http:
        answer = await http.get("/healthz", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765"])
async def test_without_tokens_the_names_of_this_machine_are_known(host):
    async with served(auth=None, token=None) as http:
        assert (await http.get("/healthz", headers={"Host": host})).status_code == 200


async def test_allowed_hosts_may_be_said():
    async with served(allowed_hosts=["api.example", "*.lamina.example"]) as http:
        statuses = [
            (await http.get("/healthz", headers={"Host": host})).status_code
            for host in ("api.example", "a.lamina.example", "lamina.example", "b.example")
        ]
    assert statuses == [200, 200, 421, 421]


async def test_without_tokens_no_foreign_web_page_is_served():
    async with served(auth=None, token=None) as http:
        for origin, status in (
            ("http://localhost", 200),
            ("https://evil.example", 403),
            ("null", 403),
            ("http://[", 403),
        ):
            assert (await http.get("/healthz", headers={"Origin": origin})).status_code == status


async def test_pages_of_an_origin_that_is_named_may_call():
    async with served(cors_origins=["https://app.example"]) as http:
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "PATCH"}
        answer = await http.options("/v1/parts/long", headers=asked)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        other = await http.options("/v1/parts/long", headers={**asked, "Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


async def test_a_long_answer_is_compressed_where_the_client_takes_that():
    async with served() as http:
        assert (await http.get("/v1/parts/long", headers={"Accept-Encoding": "gzip"})).headers[
            "Content-Encoding"
        ] == "gzip"
        assert "Content-Encoding" not in (await http.get("/v1/parts/long", headers={"Accept-Encoding": "br"})).headers
        assert "Content-Encoding" not in (await http.get("/healthz", headers={"Accept-Encoding": "gzip"})).headers


@pytest.mark.parametrize("minimum", [None, 100_000])
async def test_compression_may_be_switched_off(minimum):
    async with served(gzip_minimum=minimum) as http:
        answer = await http.get("/v1/parts/long", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers


async def test_whoever_asks_too_often_is_told_when_to_come_back():
    async with served(rate_limit=RateLimit(per_second=0.1, burst=3)) as http:
        answers = [await http.get("/v1/parts/long") for _ in range(4)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert answers[-1].json()["code"] == "rate_limited"
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 10
        assert (await http.get("/v1/parts/long", headers={"Authorization": "Bearer wrong"})).status_code == 200


async def test_each_token_has_a_rate_of_its_own():
    async with served(auth={TOKEN, "other"}, rate_limit=RateLimit(per_second=0.1, burst=1)) as http:
        statuses = [
            (await http.get("/v1/parts/long", headers={"Authorization": f"Bearer {each}"})).status_code
            for each in (TOKEN, "other", TOKEN, "other")
        ]
    assert statuses == [200, 200, 429, 429]


@pytest.mark.parametrize(
    ("settings", "last"), [({}, 429), ({"rate_limited": False}, 200), ({"rate_limit": RateLimit(burst=9)}, 200)]
)
async def test_a_limit_holds_from_when_tokens_are_asked_for_unless_the_settings_say_otherwise(settings, last):
    app = app_of(router, auth=None, settings=ServerConfig(**settings))
    async with client_of(app) as http:
        assert [(await http.get("/v1/parts/long")).status_code for _ in range(3)] == [200] * 3
        ask_for_tokens(app, one_of({TOKEN}), limit=RateLimit(per_second=0.1, burst=1))
        assert [(await http.get("/v1/parts/long")).status_code for _ in range(2)] == [200, last]


async def test_a_server_that_shuts_its_door_has_the_default_limit_from_then_on(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "REMEMBERED_SECONDS", 0.01)
    app = app_of(router, auth=None)
    async with SqliteServerStore(tmp_path / "lamina.db") as store:
        await issue_token(store, now=datetime.now(UTC), tenant="default", scopes=[TokenScope.READ])
        async with running._shutting_the_door(app, store, one_of({TOKEN})), client_of(app) as http:
            async with asyncio.timeout(20):
                # Nothing tells when it is shut but that it is.
                while (await http.get("/metrics", headers={"Authorization": ""})).status_code != 401:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    assert app.state.rate_limit == RateLimit()


@pytest.mark.parametrize("settings", [{}, {"rate_limit": RateLimit(burst=1), "rate_limited": False}])
async def test_there_is_no_limit_unless_one_is_said(settings):
    async with served(**settings) as http:
        assert {(await http.get("/healthz")).status_code for _ in range(250)} == {200}


async def test_what_takes_too_long_is_given_up():
    async with served(request_timeout=0.05) as http:
        answer = await http.get("/v1/parts/slow")
    assert (answer.status_code, answer.json()["code"]) == (503, "too_slow")


async def test_an_answer_that_has_begun_may_take_its_time():
    async with served(request_timeout=0.2) as http:
        assert (await http.get("/v1/parts/stream")).text == "first\nlast\n"


@pytest.fixture
def logged():
    """What is logged, by the format: the lines of one run."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def start(kind):
        configure_logs(kind)
        stream = io.StringIO()
        root.handlers[0].setStream(stream)
        return stream

    yield start
    root.handlers[:], root.level = before
    for name in ("lamina", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize("kind", ["json", "text"])
async def test_the_log_tells_of_a_request_all_but_what_is_in_it(logged, kind):
    stream = logged(kind)
    async with served() as http:
        await http.get("/v1/parts/secret/NAME?query=QUESTION", headers={"X-Request-ID": "the-id"})
        await http.get("/v1/elsewhere/NAME?token=QUESTION")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    for hidden in ("NAME", "QUESTION", TOKEN):
        assert hidden not in stream.getvalue()
    assert "the-id" in lines[0]
    assert "/v1/parts/secret/{id}" in lines[0]
    if kind == "json":
        first, second = map(json.loads, lines)
        assert (first["status"], first["principal"], first["request_id"]) == (200, "token-0", "the-id")
        assert (second["status"], second["route"]) == (404, "unmatched")


async def test_a_log_line_is_one_line_whatever_is_in_it(logged):
    stream = logged("text")
    logging.getLogger("lamina.anything").warning("a\nb\x1b[31m")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


async def test_metrics_count_requests_by_template_and_name_nobody(kernel):
    from lamina.server import create_app

    app = create_app(kernel, auth={TOKEN})
    id = await kernel.memory_engine.store("Ann likes tea.", owner="ann-the-owner")
    async with client_of(app) as http:
        await http.get(f"/v1/memories/{id}?owner=ann-the-owner")
        await http.get("/v1/memories/missing")
        text = (await http.get("/metrics")).text
        assert 'lamina_http_requests_total{method="GET",route="/v1/memories/{id}",status="200"} 1.0' in text
        assert 'lamina_http_requests_total{method="GET",route="/v1/memories/{id}",status="404"} 1.0' in text
        for hidden in (id, "ann-the-owner", "default", "missing"):
            assert hidden not in text


@pytest.mark.parametrize(
    ("how", "auth", "status"),
    [("admin", {TOKEN}, 401), ("open", {TOKEN}, 200), ("off", {TOKEN}, 404), ("admin", None, 200)],
)
async def test_who_reads_the_metrics_is_a_setting(how, auth, status):
    async with served(token=None, auth=auth, metrics=how) as http:
        assert (await http.get("/metrics")).status_code == status


async def test_memory_operations_are_counted(kernel):
    from lamina.server import create_app

    memories = APIRouter()

    @memories.get("/v1/searched")
    async def searched(caller: Reader) -> int:
        return len(await caller.kernel.memory_engine.recall("tea"))

    app = create_app(kernel, auth={TOKEN})
    app.include_router(memories)
    async with client_of(app) as http:
        await http.get("/v1/searched")
        text = (await http.get("/metrics")).text
    assert 'lamina_memory_operations_total{operation="search_memory",outcome="ok"} 1.0' in text
    assert "lamina_search_results_count 1.0" in text
