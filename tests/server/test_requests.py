"""What requests may not hold, whatever the route: a 4xx that names the field, never a 5xx."""

from __future__ import annotations

import json

import pytest
from fastapi import APIRouter
from pydantic import BaseModel
from served import app_of, client_of

from lamina.server.caller import Reader
from lamina.server.wire.strict import JsonObject, Name, StrictBody, Text

router = APIRouter(prefix="/v1/notes")


class Note(StrictBody):
    text: Text
    metadata: JsonObject | None = None


class Kept(BaseModel):
    text: str


@router.post("")
async def keep(note: Note) -> Kept:
    return Kept(text=note.text)


@router.get("/{id}")
async def find(id: Name, tag: str | None = None, layer: str | None = None) -> dict[str, str]:
    return {"id": id}


@router.get("")
async def all_of(caller: Reader) -> list[str]:
    return []


@router.get("/broken/{id}")
async def broken(id: str) -> None:
    raise ValueError("SECRET CONTENT")


@pytest.fixture
async def notes():
    async with client_of(app_of(router)) as client:
        yield client


async def post(notes, body, **headers):
    headers = {"Content-Type": "application/json", **headers}
    return await notes.post("/v1/notes", content=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 100_000,
        b'{"text": ' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": "a", "text": "b"}',
        b'{"text": "\xff"}',
        '{"text": "a"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"text": "a"}',
        b'{"text": "a"} x',
        b'{"text": "a\n"}',
        b'{"text": "\\ud8"}',
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_a_body_that_is_no_json_is_400(notes, body):
    answer = await post(notes, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"text": "\\ud800"}', "body.text"),
        (b'{"text": "a", "metadata": {"a": {"b": [0, 1e999]}}}', "body.metadata.a.b.1"),
        (b'{"text": "a", "metadata": {"a": 9223372036854775808}}', "body.metadata.a"),
        (b'{"text": "a", "metadata": {"a": -9223372036854775809}}', "body.metadata.a"),
        (b'{"text": "a", "metadata": {"a": 1' + b"0" * 5000 + b"}}", "body.metadata.a"),
        (b'{"text": "a", "metadata": {"\\ud800": 1}}', "body.metadata"),
        (b'{"text": "a", "unknown": 1}', "body.unknown"),
        (b'{"text": 1}', "body.text"),
        (b'{"text": ""}', "body.text"),
        (b'{"text": "\\u0000"}', "body.text"),
        (b"{}", "body.text"),
        (b"[]", "body"),
        (b"null", "body"),
        (b"", "body"),
    ],
    ids=lambda value: repr(value[:40]),
)
async def test_a_body_that_cannot_be_taken_is_422_and_names_the_field(notes, body, field):
    answer = await post(notes, body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize("text", ["a", "\U0001f600", "\u00e9", "9" * 1000])
async def test_what_is_right_is_taken(notes, text):
    body = json.dumps({"text": text, "metadata": {"a": [9223372036854775807, -9223372036854775808, 1e308, None]}})
    assert (await post(notes, body)).json() == {"text": text}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json", "application/xml"])
async def test_a_body_of_another_kind_is_415(notes, kind):
    answer = await notes.post("/v1/notes", content=b'{"text": "a"}', headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.lamina+json"])
async def test_other_words_for_json_are_taken(notes, kind):
    assert (await post(notes, b'{"text": "a"}', **{"Content-Type": kind})).status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("unknown=1", "query.unknown"),
        ("tag=a&tag=b", "query.tag"),
        ("tag=a&tag=a", "query.tag"),
        ("tag=a%00b", "query.tag"),
        ("Tag=a", "query.Tag"),
    ],
)
async def test_a_query_that_is_not_understood_is_422_and_names_the_parameter(notes, query, field):
    answer = await notes.get(f"/v1/notes/a?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize("path", ["a%00b", "%00", "%20", "a" * 513])
async def test_an_id_that_cannot_be_one_is_422(notes, path):
    assert (await notes.get(f"/v1/notes/{path}")).status_code == 422


@pytest.mark.parametrize("path", ["a%2Fb", "..%2f..%2fetc", "a/b", "", "/"])
async def test_a_path_of_no_route_is_404(notes, path):
    answer = await notes.get(f"/v1/nothing/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_method_that_there_is_not_is_405_and_says_which_there_are(notes):
    answer = await notes.put("/v1/notes/a")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET"


async def test_without_a_token_that_is_said_before_anything_else():
    async with client_of(app_of(router), token=None) as http:
        assert (await http.get("/v1/notes?unknown=1")).status_code == 401


async def test_a_defect_is_500_with_the_request_id_and_its_log_has_no_content(notes, caplog):
    answer = await notes.get("/v1/notes/broken/a", headers={"X-Request-ID": "my-id"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert answer.headers["X-Request-ID"] == "my-id"
    assert "my-id" in answer.json()["detail"]
    assert "SECRET" not in answer.text + caplog.text
    assert "ValueError at" in caplog.text


async def test_below_utils_errors_have_the_envelope(notes):
    answer = await notes.get("/utils/nothing")
    assert answer.json() == {"error": {"code": "not_found", "message": "Not Found", "details": []}}
