"""Threads as a resource."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from served import TOKEN, client_of

from lamina.kernel import Kernel
from lamina.server import create_app


async def begun(http, **fields):
    answer = await http.post("/v1/threads", json=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def said(http, id, *texts, **query):
    messages = [{"role": "user", "content": text} for text in texts]
    answer = await http.post(f"/v1/threads/{id}/messages", json={"messages": messages}, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def test_a_thread_is_begun_and_begun_again_it_is_the_same(http):
    made = await begun(http, id="t", owner="ann", namespace="n", metadata={"topic": "tea"})
    assert (made["owner"], made["namespace"], made["metadata"]) == ("ann", "n", {"topic": "tea"})
    assert await begun(http, id="t", owner="ann") == made
    assert (await begun(http))["id"].startswith("thread_")


async def test_an_id_that_another_owner_has_taken_is_a_conflict(http):
    await begun(http, id="t", owner="ann")
    assert (await http.post("/v1/threads", json={"id": "t", "owner": "bob"})).status_code == 409


async def test_messages_are_added_together_and_read_in_pages_that_tile(http):
    await begun(http, id="t")
    await said(http, "t", *(f"message {number}" for number in range(5)))
    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await http.get("/v1/threads/t/messages", params=query)).json()
        seen += [each["content"] for each in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"message {number}" for number in range(5)]


async def test_one_bad_message_means_that_none_is_added(http):
    await begun(http, id="t")
    bad = {"messages": [{"role": "user", "content": "good"}, {"role": "robot", "content": "bad"}]}
    answer = await http.post("/v1/threads/t/messages", json=bad)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "messages[1].role"
    assert (await http.get("/v1/threads/t/messages")).json()["data"] == []


async def test_a_message_goes_out_as_it_came_in_and_can_be_sent_as_it_went_out(http):
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "odd", "deep": [1, 2.5, None]},
    ]
    openai = [
        {"role": "user", "content": parts, "id": "m1", "metadata": {"a": 1}, "cache": {"ttl": 5}},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
    ]
    first = await http.post("/v1/threads/one/messages", json={"messages": openai})
    assert first.status_code == 201, first.text
    given = first.json()["data"]
    assert given[0]["content"][1] == {"type": "image", "url": "https://example.org/a.png"}
    body = {"format": "lamina", "messages": given}
    again = await http.post("/v1/threads/two/messages", json=body)
    assert again.status_code == 201, again.text
    assert again.json()["data"] == given


async def test_adding_a_message_of_a_known_id_again_changes_nothing(http):
    message = {"role": "user", "content": "once", "id": "m1"}
    for _ in range(2):
        assert (await http.post("/v1/threads/t/messages", json={"messages": [message]})).status_code == 201
    other = {**message, "content": "something else"}
    assert (await http.post("/v1/threads/t/messages", json={"messages": [other]})).status_code == 409
    assert len((await http.get("/v1/threads/t/messages")).json()["data"]) == 1


async def test_archiving_needs_what_was_read_and_loses_nobodys_change(http):
    await begun(http, id="t")
    await said(http, "t", "hello")
    read = await http.get("/v1/threads/t")
    assert (await http.patch("/v1/threads/t", json={"status": "archived"})).status_code == 428
    change = {"json": {"status": "archived"}, "headers": {"If-Match": read.headers["ETag"]}}
    answers = await asyncio.gather(*(http.patch("/v1/threads/t", **change) for _ in range(2)))
    assert sorted(each.status_code for each in answers) == [200, 412]
    body = {"messages": [{"role": "user", "content": "late"}]}
    assert (await http.post("/v1/threads/t/messages", json=body)).json()["code"] == "thread_archived"
    assert [each["id"] for each in (await http.get("/v1/threads?status=archived")).json()["data"]] == ["t"]
    assert (await http.get("/v1/threads")).json()["data"] == []
    back = await http.patch("/v1/threads/t", json={"status": "active"}, headers={"If-Match": "*"})
    assert back.json()["status"] == "active"
    await said(http, "t", "again")


async def test_a_deleted_thread_is_gone(http):
    await begun(http, id="t")
    assert (await http.delete("/v1/threads/t", headers={"If-Match": '"9"'})).status_code == 412
    assert (await http.delete("/v1/threads/t")).status_code == 204
    for path in ("", "/messages", "/messages/1", "/context"):
        assert (await http.get(f"/v1/threads/t{path}")).status_code == 404
    assert (await http.delete("/v1/threads/t")).status_code == 404
    assert (await http.post("/v1/threads/t/compact", json={})).status_code == 404
    assert (await http.post("/v1/threads/t/extract")).status_code == 404


async def test_a_compacted_thread_shows_a_summary_and_gives_the_originals(http, kernel):
    texts = [f"The harbour log says number {number}." for number in range(60)]
    await said(http, "t", *texts)
    report = (await http.post("/v1/threads/t/compact", json={})).json()
    assert report["kept"] == 50
    context = (await http.get("/v1/threads/t/context", params={"max_messages": 3})).json()
    assert context["summary"]
    assert [each["content"] for each in context["messages"]] == texts[-3:]
    assert (await http.get("/v1/threads/t")).json()["summaries"][0]["to_index"] == 10
    for reference in ("1", "%231"):
        assert (await http.get(f"/v1/threads/t/messages/{reference}")).json()["content"] == texts[0]
    assert (await http.get("/v1/threads/t/messages/61")).status_code == 404


async def test_extracting_without_a_model_says_what_is_missing(tmp_path):
    async with Kernel(data_dir=tmp_path) as kernel, client_of(create_app(kernel, auth={TOKEN})) as http:
        await said(http, "t", "I like tea.")
        answer = await http.post("/v1/threads/t/extract")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_model")


@pytest.mark.parametrize("id", ["a/b", "a%2Fb", "a b", ".", "..", "a?b#c", "é", "日本", "a:b", "%00", "messages"])
async def test_a_thread_of_any_id_is_reached_by_its_encoded_name(http, id):
    await begun(http, id=id)
    path = "/v1/threads/" + quote(id, safe="").replace(".", "%2E")
    assert (await http.get(path)).json()["id"] == id
    answer = await http.post(f"{path}/messages", json={"messages": [{"role": "user", "content": "x"}]})
    assert answer.status_code == 201
    assert (await http.delete(path)).status_code == 204


REFUSED = [
    ("POST", "/v1/threads", {"id": " "}),
    ("POST", "/v1/threads", {"idd": "x"}),
    ("POST", "/v1/threads", {"id": "a\x00b"}),
    ("POST", "/v1/threads", {"metadata": {"lamina:setbacks": 1}}),
    ("POST", "/v1/threads/t/messages", {"messages": []}),
    ("POST", "/v1/threads/t/messages", {"messages": [{"role": "user", "content": " "}]}),
    ("POST", "/v1/threads/t/messages", {"messages": [{"role": "user", "content": 5}]}),
    ("POST", "/v1/threads/t/messages", {"messages": [{"content": "x"}]}),
    ("POST", "/v1/threads/t/messages", {"messages": ["x"]}),
    ("POST", "/v1/threads/t/messages", {"format": "lamina", "messages": [{"role": "user", "content": 5}]}),
    ("POST", "/v1/threads/t/messages", {"format": "lamina", "messages": [{"role": "u", "content": "x"}]}),
    (
        "POST",
        "/v1/threads/t/messages",
        {"format": "lamina", "messages": [{"role": "user", "content": [{"type": "x"}]}]},
    ),
    ("POST", "/v1/threads/t/messages", {"format": "other", "messages": [{"role": "user", "content": "x"}]}),
    ("GET", "/v1/threads?limit=0", None),
    ("GET", "/v1/threads?limit=1000000000", None),
    ("GET", "/v1/threads?status=gone", None),
    ("GET", "/v1/threads?cursor=x", None),
    ("GET", "/v1/threads/t/context?max_messages=0", None),
    ("PATCH", "/v1/threads/t", {"status": "gone"}),
    ("GET", "/v1/threads/a%00b", None),
]


async def test_what_cannot_be_taken_is_422_and_names_the_field(http):
    for method, path, body in REFUSED:
        answer = await http.request(method, path, json=body, headers={"If-Match": "*"} if method == "PATCH" else {})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"]
        assert (await http.get("/v1/threads")).json()["data"] == []
