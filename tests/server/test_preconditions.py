"""`If-Match`: what is changed is what was read."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from fastapi import APIRouter, Response
from served import app_of, client_of

from lamina.errors import Conflict, PackExists
from lamina.server.preconditions import OptionalPrecondition, Precondition, set_etag

router = APIRouter(prefix="/v1/things")


@router.patch("/edited")
async def edit(precondition: Precondition, response: Response) -> dict[str, int | None]:
    expected = precondition.check(3)
    set_etag(response, 4)
    return {"expected": expected}


@router.patch("/overtaken")
async def overtaken(precondition: Precondition) -> None:
    with precondition.held():
        raise Conflict("The thing", "has another revision")


@router.patch("/taken")
async def taken(precondition: Precondition) -> None:
    with precondition.held():
        raise PackExists("a")


@router.delete("/edited")
async def delete(precondition: OptionalPrecondition) -> dict[str, int | None]:
    return {"expected": precondition.check(3)}


@pytest.fixture
async def things():
    async with client_of(app_of(router)) as client:
        yield client


@pytest.mark.parametrize(
    ("given", "expected"), [('"3"', 3), ("*", None), ('"2", "3"', 3), ('W/"3","3"', 3), ('"other" , "3"', 3)]
)
async def test_an_edit_of_what_was_read_goes_through(things, given, expected):
    answer = await things.patch("/v1/things/edited", headers={"If-Match": given})
    assert (answer.status_code, answer.json()) == (200, {"expected": expected})
    assert answer.headers["ETag"] == '"4"'


@pytest.mark.parametrize("given", ['"2"', 'W/"3"', '"03x"', '""', '"99999999999999999999"'])
async def test_an_edit_of_something_else_is_412(things, given):
    answer = await things.patch("/v1/things/edited", headers={"If-Match": given})
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")


async def test_an_edit_that_does_not_say_of_what_is_428(things):
    answer = await things.patch("/v1/things/edited")
    assert (answer.status_code, answer.json()["code"]) == (428, "precondition_required")


@pytest.mark.parametrize("given", ["3", '"3', '"3" "4"', "", '"a"b"', ", ".join(['"1"'] * 17)])
async def test_a_header_that_is_no_list_of_tags_is_422(things, given):
    answer = await things.patch("/v1/things/edited", headers={"If-Match": given})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "header.if-match")


async def test_whoever_is_overtaken_gets_412_and_under_a_star_409(things):
    assert (await things.patch("/v1/things/overtaken", headers={"If-Match": '"3"'})).status_code == 412
    assert (await things.patch("/v1/things/overtaken", headers={"If-Match": "*"})).status_code == 409


async def test_another_conflict_stays_what_it_is(things):
    answer = await things.patch("/v1/things/taken", headers={"If-Match": '"3"'})
    assert (answer.status_code, answer.json()["code"]) == (409, "already_exists")


async def test_a_delete_need_not_say_what(things):
    assert (await things.delete("/v1/things/edited")).json() == {"expected": None}
    assert (await things.delete("/v1/things/edited", headers={"If-Match": '"2"'})).status_code == 412


async def one_of(http, kind):
    """A new thing: its path, and what changes it."""
    if kind == "memory":
        id = (await http.post("/v1/memories", json={"content": "first"})).json()["id"]
        return f"/v1/memories/{id}", {"content": "second"}
    if kind == "thread":
        id = (await http.post("/v1/threads", json={})).json()["id"]
        return f"/v1/threads/{id}", {"status": "archived"}
    name = f"n{uuid.uuid4().hex}"
    await http.post("/utils/context-packs", json={"name": name, "type": "domain"})
    path = f"/utils/context-packs/{name}"
    if kind == "pack":
        return path, {"description": "second"}
    id = (await http.post(f"{path}/memories", json={"content": "first", "memory_type": "fact"})).json()["data"]["id"]
    return f"/utils/memories/{id}", {"content": "second"}


@pytest.mark.parametrize("kind", ["memory", "thread", "pack", "memory of a pack"])
async def test_of_an_edit_and_a_deletion_of_the_same_one_wins_and_the_other_is_told(http, kind):
    for turn in range(6):
        path, change = await one_of(http, kind)
        held = {"If-Match": '"1"'}
        calls = [http.patch(path, json=change, headers=held), http.delete(path, headers=held)]
        answers = await asyncio.gather(*(calls if turn % 2 else calls[::-1]))
        edited, deleted = (each.status_code for each in (answers if turn % 2 else answers[::-1]))
        assert (edited, deleted) in {(200, 412), (404, 204), (412, 204)}
        left = await http.get(path)
        assert (left.status_code, left.headers.get("ETag")) == ((200, '"2"') if edited == 200 else (404, None))
        assert (await http.delete(path)).status_code == (204 if edited == 200 else 404)
