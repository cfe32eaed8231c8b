"""Sessions of short-term memory as a resource; that they behave as in the library is shown with `RemoteMemory`."""

from __future__ import annotations

from served import client_of

from lamina.kernel import Kernel, ModelRouter
from lamina.server import Access, Principal, create_app
from lamina.testing import HashingEmbedder


async def added(http, session, *texts, **query):
    events = [{"message": {"role": "user", "content": text}} for text in texts]
    answer = await http.post(f"/v1/sessions/{session}/events", json={"events": events}, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def test_events_are_added_and_read_back_with_their_state(http):
    events = [{"message": {"role": "user", "content": "hello", "id": "m1"}, "state": {"mood": [1, None]}}]
    answer = await http.post("/v1/sessions/s/events", json={"events": events})
    (event,) = answer.json()["data"]
    assert (event["message"]["content"], event["message"]["index"], event["state"]) == ("hello", 1, {"mood": [1, None]})
    assert (await http.get("/v1/sessions/s/events")).json()["data"] == [event]
    again = await http.post("/v1/sessions/s/events", json={"format": "lamina", "events": [event]})
    assert again.json()["data"] == [event]
    assert (await http.get("/v1/sessions/s")).json() == {"id": "s", "count": 1, "tier": 1}
    assert (await http.get("/v1/sessions")).json()["data"] == ["s"]


async def test_one_bad_event_means_that_none_is_added(http):
    events = [{"message": {"role": "user", "content": "good"}}, {"message": {"role": "robot", "content": "bad"}}]
    answer = await http.post("/v1/sessions/s/events", json={"events": events})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "event.message.role"
    assert (await http.get("/v1/sessions")).json()["data"] == []


async def test_an_event_is_edited_deleted_and_found(http):
    await added(http, "s", "the cat sleeps", "the dog barks")
    edited = await http.patch("/v1/sessions/s/events/1", params={"by_index": True}, json={"content": "the cat is up"})
    assert edited.json()["message"]["content"] == "the cat is up"
    found = await http.post("/v1/sessions/s/search", json={"text": "CAT"})
    assert [each["message"]["content"] for each in found.json()["data"]] == ["the cat is up"]
    assert (await http.delete("/v1/sessions/s/events/2", params={"by_index": True})).json() == {"deleted": 1}
    assert (await http.get("/v1/sessions/s/events/2")).status_code == 404
    assert (await http.delete("/v1/sessions/s")).json() == {"cleared": 1}
    assert (await http.get("/v1/sessions/s")).status_code == 404


async def test_a_large_session_is_summarised_by_the_settings_and_keeps_its_originals(tmp_path):
    settings = {"context_engineering": {"pre_rot_threshold": 600, "recent_to_keep": 4}}
    router = ModelRouter(embed=HashingEmbedder())
    async with (
        Kernel(data_dir=tmp_path, model_router=router, conversation=settings) as kernel,
        client_of(create_app(kernel, auth={"the-token"})) as http,
    ):
        texts = [f"Turn {number}: the lamp of the harbour was seen again, and then again." for number in range(60)]
        await added(http, "s", *texts)
        report = (await http.post("/v1/sessions/s/compact")).json()
        events = (await http.get("/v1/sessions/s/events")).json()["data"]
        summaries = (await http.get("/v1/sessions/s/summaries")).json()["data"]
        archive = (await http.get("/v1/sessions/s/archive", params={"limit": 100})).json()["data"]
        first = (await http.get("/v1/sessions/s/events/1", params={"by_index": True})).json()
        context = (await http.get("/v1/sessions/s/context", params={"max_tokens": 300})).json()["data"]
    assert report["tokens_after"] <= 600
    assert events[0]["message"]["content"].startswith("[SUMMARY of")
    assert summaries[0]["count"] == len(archive) > 40
    assert [each["message"]["content"] for each in archive] == texts[: len(archive)]
    assert first["content"] == texts[0]
    assert context[-1]["content"] == texts[-1]


async def test_only_the_administrator_deletes_the_sessions_of_all_owners(kernel):
    async def authenticate(token):
        return Principal(access=frozenset(Access(each) for each in token.split("+")), id=token)

    app = create_app(kernel, auth=authenticate)
    async with client_of(app, token="write") as http:
        await added(http, "s", "hello", owner="ann")
        assert (await http.delete("/v1/sessions")).status_code == 403
        assert (await http.delete("/v1/sessions", params={"owner": "bob"})).json() == {"cleared": 0}
    async with client_of(app, token="write+admin") as http:
        assert (await http.delete("/v1/sessions")).json() == {"cleared": 1}


REFUSED = [
    ("POST", "/s/events", {"events": []}, "events"),
    ("POST", "/s/events", {"events": [{"message": {"role": "user", "content": "x"}, "stat": {}}]}, "stat"),
    ("POST", "/s/events", {"events": [{"message": {"content": "x"}}]}, "role"),
    ("POST", "/s/events", {"events": [{"message": {"role": "user", "content": "x"}, "state": []}]}, "state"),
    (
        "POST",
        "/s/events",
        {"events": [{"message": {"role": "user", "content": "x"}, "state": {"__summary__": {}}}]},
        "state.__summary__",
    ),
    (
        "POST",
        "/s/events",
        {"events": [{"message": {"role": "user", "content": "x"}, "state": {"__compaction__": {}}}]},
        "__compaction__",
    ),
    ("GET", "/s/events?limit=-1", None, "limit"),
    ("GET", "/s/events?order=up", None, "order"),
    ("GET", "/s/events?max_tokens=0", None, "max_tokens"),
    ("GET", "/s/archive?limit=0", None, "limit"),
    ("GET", "/s/archive?limit=1000000000", None, "limit"),
    ("GET", "/s/events/x?by_index=true", None, "event"),
    ("GET", "/s/events/0?by_index=true", None, "id"),
    ("POST", "/s/search", {"text": " "}, "text"),
    ("POST", "/s/search", {"text": "x", "limit": 0}, "limit"),
    ("PATCH", "/s/events/1", {"contents": "x"}, "contents"),
    ("PATCH", "/s/events/1", {"content": [{"type": "sound"}]}, "content"),
    ("GET", "/%20/events", None, "session"),
]


async def test_what_cannot_be_taken_is_422_and_names_the_field(http):
    await added(http, "s", "one")
    for method, path, body, field in REFUSED:
        answer = await http.request(method, f"/v1/sessions{path}", json=body)
        assert answer.status_code == 422, answer.text
        assert field in answer.json()["errors"][0]["field"]
        assert len((await http.get("/v1/sessions/s/events")).json()["data"]) == 1
