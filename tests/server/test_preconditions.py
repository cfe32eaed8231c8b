"""`If-Match`: what is changed is what was read."""

from __future__ import annotations

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
