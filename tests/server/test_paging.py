"""Pages that tile, and cursors that cannot be used for anything else."""

from __future__ import annotations

import base64
import json

import pytest
from fastapi import APIRouter
from served import app_of, client_of

from lamina.server import paging
from lamina.server.paging import Page, Paging
from lamina.settings import ServerConfig

NUMBERS = list(range(25))
router = APIRouter(prefix="/v1/numbers")


@router.get("/counted")
async def counted(paging: Paging, owner: str | None = None) -> Page[int]:
    return paging.counted(NUMBERS[paging.number :][: paging.limit + 1], lambda each: each)


@router.get("/sorted")
async def by_key(paging: Paging) -> Page[int]:
    after = -1 if paging.after is None else paging.after[0]
    rows = [each for each in NUMBERS if each > after][: paging.limit + 1]
    return paging.sorted(rows, lambda each: each, lambda each: (each,))


@pytest.fixture
async def numbers():
    async with client_of(app_of(router)) as client:
        yield client


@pytest.mark.parametrize("kind", ["counted", "sorted"])
@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 100])
async def test_pages_tile(numbers, kind, limit):
    seen, cursor = [], None
    while True:
        given = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        page = (await numbers.get(f"/v1/numbers/{kind}", params=given)).json()
        seen += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        assert len(page["data"]) == limit
    assert seen == NUMBERS


async def begin(http, kind, name):
    """Make a document, thread or session of this name; its id in the list."""
    if kind == "documents":
        answer = await http.post("/v1/documents", json={"content": "some text", "source": name})
    elif kind == "threads":
        answer = await http.post("/v1/threads", json={"id": name})
    else:
        body = {"events": [{"message": {"role": "user", "content": "hello"}}]}
        answer = await http.post(f"/v1/sessions/{name}/events", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"] if kind == "documents" else name


def id_of(row):
    return row if isinstance(row, str) else row["id"]


@pytest.mark.parametrize("kind", ["documents", "threads", "sessions"])
async def test_what_comes_and_goes_between_two_pages_neither_doubles_nor_hides_anything(http, kind):
    made = [await begin(http, kind, f"n{number}{'é' * 200}") for number in range(5)]
    whole = made if kind == "documents" else made[::-1]
    seen, cursor = [], None
    while True:
        params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await http.get(f"/v1/{kind}", params=params)).json()
        rows = [id_of(row) for row in page["data"]]
        seen += rows
        cursor = page["next_cursor"]
        if cursor is None:
            break
        for row in rows:
            assert (await http.delete(f"/v1/{kind}/{row}")).is_success
        await begin(http, kind, f"a{len(seen)}")
    assert seen == whole
    answer = await http.get(f"/v1/{kind}", params={"cursor": "AQ"})
    assert answer.status_code == 422


async def test_a_cursor_into_chunks_of_what_was_replaced_is_refused(http):
    text = " ".join(f"Sentence number {number} says so." for number in range(60))
    body = {"content": text, "source": "s", "chunk_size": 50, "chunk_overlap": 0}
    id = (await http.post("/v1/documents", json=body)).json()["id"]
    first = (await http.get(f"/v1/documents/{id}/chunks?limit=1")).json()
    params = {"limit": 100, "cursor": first["next_cursor"]}
    rest = (await http.get(f"/v1/documents/{id}/chunks", params=params)).json()["data"]
    assert [each["chunk_index"] for each in first["data"] + rest] == list(range(len(rest) + 1))
    await http.post("/v1/documents", json=body | {"content": f"Anew. {text}"})
    answer = await http.get(f"/v1/documents/{id}/chunks", params=params)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor")


async def cursor_of(numbers, kind="sorted", **params):
    return (await numbers.get(f"/v1/numbers/{kind}", params={"limit": 3, **params})).json()["next_cursor"]


def changed(cursor):
    """Every cursor with one character another, and some that were never one."""
    for place in range(len(cursor)):
        yield cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
    yield from (cursor + "A", cursor[:-1], "x", "AQ", base64.urlsafe_b64encode(b"[99]").decode().rstrip("="))


async def test_a_cursor_that_was_tampered_with_is_refused(numbers):
    for cursor in changed(await cursor_of(numbers)):
        answer = await numbers.get("/v1/numbers/sorted", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cursor"), cursor


@pytest.mark.parametrize(
    "payload", [b"[" * 12_000, b"[" + b"9" * 5_000 + b"]", b'["\\ud800","a"]', b"[NaN]", b"{}", b"[[]]", b"\xff"]
)
async def test_a_cursor_that_somebody_made_is_refused_whatever_it_holds(numbers, payload):
    """Its digest is no secret: who reads the source can make one that fits."""
    ours = await cursor_of(numbers)
    binding = json.dumps(["/v1/numbers/sorted", "default", None, []]).encode()
    position = base64.urlsafe_b64decode(ours + "=" * (-len(ours) % 4))[13:]
    assert paging._encoded(tuple(json.loads(position)), binding) == ours
    forged = base64.urlsafe_b64encode(b"\x01" + paging._digest(payload, binding) + payload).decode().rstrip("=")
    answer = await numbers.get("/v1/numbers/sorted", params={"cursor": forged})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor")


async def test_a_cursor_goes_on_with_its_own_list_only(numbers):
    cursor = await cursor_of(numbers, "counted", owner="ann")
    assert (await numbers.get("/v1/numbers/counted", params={"owner": "ann", "cursor": cursor})).json()["data"][0] == 3
    for kind, params in (("counted", {"owner": "bob"}), ("counted", {}), ("sorted", {"owner": "ann"})):
        answer = await numbers.get(f"/v1/numbers/{kind}", params={"cursor": cursor, **params})
        assert answer.status_code == 422


@pytest.mark.parametrize("limit", ["0", "-1", "1000000000", "x", "101", ""])
async def test_a_limit_out_of_bounds_is_refused_and_named(numbers, limit):
    answer = await numbers.get("/v1/numbers/counted", params={"limit": limit})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "query.limit"


async def test_the_settings_may_lower_the_limit():
    async with client_of(app_of(router, settings=ServerConfig(max_results=2))) as client:
        assert (await client.get("/v1/numbers/counted", params={"limit": 50})).json()["data"] == [0, 1]
