"""What the client does with a server that is busy, broken or hostile: a scripted one on a real socket."""

from __future__ import annotations

import json

import pytest

from lamina.client.transport import Request, Transport
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, Conflict, InvalidInput, LaminaError

TOKEN = "made-up-token-0123456789"
READ = Request(method="GET", path=("things", "a/b"), query={"owner": "é", "none": None, "many": ["x", "y"], "is": True})
WRITE = Request(method="POST", path=("things",), body={"a": 1})
QUESTION = Request(method="POST", path=("things",), body={"a": 1}, reads=True)


class Sleep:
    """Waits no time, and remembers how long it was asked to."""

    def __init__(self):
        self.waits = []

    async def __call__(self, seconds):
        self.waits.append(seconds)


@pytest.fixture
def sleep():
    return Sleep()


@pytest.fixture
async def transport(server, sleep):
    made = Transport(server.url, token=TOKEN, timeout=5, max_retries=3, transport=None, sleep=sleep)
    yield made
    await made.close()


async def test_a_request_carries_the_token_the_query_and_encoded_segments(server, transport):
    server.plays(server.json({"answer": "ä"}))
    assert await transport.ask(READ) == {"answer": "ä"}
    (request,) = server.requests
    assert request.path == "/v1/things/a%2Fb?owner=%C3%A9&many=x&many=y&is=true"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert "idempotency-key" not in request.headers


@pytest.mark.parametrize("status", [429, 503, 504])
@pytest.mark.parametrize("request_", [READ, WRITE, QUESTION])
async def test_a_busy_server_is_asked_again_with_growing_waits(server, transport, sleep, status, request_):
    server.plays(*[server.raw(b"busy", status)] * 3, server.json("done"))
    assert await transport.ask(request_) == "done"
    assert len(server.requests) == 4
    assert all(0.25 * 2**n <= wait <= 0.375 * 2**n for n, wait in enumerate(sleep.waits))


async def test_a_write_is_repeated_under_one_key_and_the_next_has_another(server, transport):
    server.plays(server.resets, server.raw(b"", 503), server.json("done"), server.json("done"))
    await transport.ask(WRITE)
    await transport.ask(WRITE)
    keys = [each.headers["idempotency-key"] for each in server.requests]
    assert len(keys) == 4
    assert keys[0] == keys[1] == keys[2] != keys[3]


async def test_a_question_that_changes_nothing_has_no_key(server, transport):
    server.plays(server.json("done"))
    await transport.ask(QUESTION)
    assert "idempotency-key" not in server.requests[0].headers


async def test_a_request_that_is_being_done_is_asked_for_again(server, transport, sleep):
    under_way = {"code": "in_progress", "detail": "A request with this key is being done.", "status": 409}
    busy = server.raw(_json(under_way), 409, content_type="application/problem+json", retry_after="2")
    server.plays(busy, server.json("done"))
    assert await transport.ask(WRITE) == "done"
    assert sleep.waits == [2.0]


async def test_a_wait_that_is_asked_for_is_bounded(server, transport, sleep):
    server.plays(server.raw(b"", 429, retry_after="86400"), server.json("done"))
    await transport.ask(READ)
    assert sleep.waits == [20.0]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInput),
        (404, LaminaError),
        (409, Conflict),
        (412, Conflict),
        (422, InvalidInput),
        (500, AdapterError),
    ],
)
async def test_what_is_wrong_for_good_is_not_tried_again(server, transport, sleep, status, error):
    server.plays(server.raw(b"<html>no problem", status))
    with pytest.raises(error):
        await transport.ask(WRITE)
    assert (len(server.requests), sleep.waits) == (1, [])


async def test_a_server_that_stays_busy_is_unavailable_in_the_end(server, transport):
    server.plays(server.raw(b"", 503))
    with pytest.raises(AdapterUnavailable):
        await transport.ask(READ)
    assert len(server.requests) == 4


async def test_a_server_that_never_answers_is_unavailable_within_the_time_limit(server):
    server.plays(server.hangs)
    transport = Transport(server.url, token=None, timeout=0.2, max_retries=0, transport=None)
    with pytest.raises(AdapterUnavailable, match=r"within 0\.2 s"):
        await transport.ask(READ)
    await transport.close()


async def test_a_redirect_is_not_followed_and_the_token_stays_here(server, transport):
    server.plays(server.raw(b"", 307, Location=f"{server.url}/elsewhere"))
    with pytest.raises(AdapterError, match="redirects"):
        await transport.ask(WRITE)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"no json", b"\xff", b"[" * 100_000])
async def test_an_answer_that_cannot_be_read_is_an_error_of_the_adapter(server, transport, body):
    server.plays(server.raw(body))
    with pytest.raises(AdapterError, match="cannot be read"):
        await transport.ask(READ)


async def test_no_error_shows_the_token(server, transport):
    server.plays(server.raw(b"", 503))
    with pytest.raises(LaminaError) as failure:
        await transport.ask(WRITE)
    shown = str(failure.value) + repr(failure.value) + repr(transport)
    assert TOKEN not in shown
    assert server.url in repr(transport)


@pytest.mark.parametrize("segment", [".", "..", "...", "a/b", "a?b", "a#b", "%2F", "é", " ", "\x00"])
async def test_any_id_stays_one_segment(server, transport, segment):
    server.plays(server.json(None))
    await transport.ask(Request(method="GET", path=("things", segment, "below")))
    path = server.requests[0].path
    assert path.count("/") == 4
    assert path.endswith("/below")
    assert path.split("/")[3] not in {".", ".."}


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ({"code": "not_found", "errors": [{"field": "memory", "id": "x"}]}, "No memory here has the id 'x'."),
        ({"code": "conflict", "errors": [{"field": "It", "problem": "is", "remedy": "Go."}]}, "It: is. Go."),
        ({"code": "context_overflow", "errors": [{"tokens": 9, "limit": 5}]}, "The context has 9 tokens"),
        ({"code": "invalid_request", "errors": [{"field": "body.a", "problem": "is wrong"}]}, "a: is wrong."),
        ({"errors": "odd", "code": 5, "detail": None}, "It"),
        ({"code": "context_overflow", "errors": [{"tokens": "many"}]}, ""),
    ],
)
async def test_a_problem_becomes_an_error_whatever_is_in_it(server, transport, problem, expected):
    server.plays(server.raw(_json(problem), 422, content_type="application/problem+json"))
    with pytest.raises(LaminaError) as failure:
        await transport.ask(READ)
    assert expected.lower() in str(failure.value).lower()


def test_a_transport_without_a_server_is_refused():
    with pytest.raises(ConfigError):
        Transport("", token=None, timeout=1, max_retries=0, transport=None)


def _json(value):
    return json.dumps(value).encode()
