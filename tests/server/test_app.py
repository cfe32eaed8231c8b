"""What holds for every route."""

from __future__ import annotations

import pytest
from served import client_of


async def test_a_server_that_lives_says_so_without_a_token(app):
    async with client_of(app, token=None) as http:
        answer = await http.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("token", [None, "", "wrong", "the-token the-token", "the-tokeñ"])
async def test_a_missing_or_wrong_token_is_401_and_says_what_to_send(app, token):
    async with client_of(app, token=None) as http:
        headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
        answer = await http.get("/v1/memories/x", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "unauthenticated"


async def test_a_memory_is_served_with_its_revision_as_etag(kernel, http):
    id = await kernel.memory_engine.store("Ann likes tea.", owner="ann")
    answer = await http.get(f"/v1/memories/{id}", params={"owner": "ann"})
    assert answer.headers["ETag"] == '"1"'
    assert answer.json()["content"] == "Ann likes tea."


async def test_a_memory_that_is_not_there_is_a_problem_of_404(http):
    answer = await http.get("/v1/memories/nothing")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"
