"""Memories as a resource: what a client sends, sees, and loses never."""

from __future__ import annotations

import asyncio

import pytest
from served import TOKEN, client_of

from lamina.server import Access, Principal, create_app
from lamina.server.wire.memories import Recalled
from lamina.settings import ServerConfig

LINES = {"Content-Type": "application/x-ndjson"}


async def stored(http, content, **fields):
    answer = await http.post("/v1/memories", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def test_what_is_stored_is_read_back_with_all_that_was_said_of_it(http):
    said = {
        "content": "Ann prefers tea.",
        "layer": "session",
        "owner": "ann",
        "namespace": "kitchen",
        "tags": ["drink"],
        "metadata": {"topic": {"deep": [1, 2.5, None, True]}},
        "relevance": 0.25,
        "confidence": 0.5,
        "ttl": 60,
        "source": "talk",
        "trust": "untrusted",
        "derived_from": ["x"],
        "occurred_at": "2026-01-02T03:04:05Z",
    }
    id = await stored(http, **said)
    read = (await http.get(f"/v1/memories/{id}", params={"owner": "ann"})).json()
    assert {name: read[name] for name in said} == said
    assert read["expires_at"] is not None


async def test_a_ttl_of_null_means_never_and_none_means_the_default_of_the_layer(http):
    never = await stored(http, "never", layer="working", ttl=None)
    soon = await stored(http, "soon", layer="working")
    assert (await http.get(f"/v1/memories/{never}")).json()["expires_at"] is None
    assert (await http.get(f"/v1/memories/{soon}")).json()["expires_at"] is not None


async def test_storing_many_is_all_or_none(http):
    bad = {"memories": [{"content": "good"}, {"content": "bad", "relevance": 2}]}
    answer = await http.post("/v1/memories/batch", json=bad)
    assert answer.status_code == 422
    assert "relevance" in answer.text
    assert (await http.get("/v1/memories")).json()["data"] == []
    answer = await http.post("/v1/memories/batch", json={"memories": [{"content": "one"}, {"content": "two"}]})
    assert len(answer.json()["ids"]) == 2


async def test_pages_tile_while_memories_come_and_go(http):
    ids = [await stored(http, f"memory number {number}") for number in range(7)]
    seen, cursor = [], None
    while True:
        page = (await http.get("/v1/memories", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [each["id"] for each in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        if len(seen) == 3:
            await http.delete(f"/v1/memories/{ids[0]}")
            ids.append(await stored(http, "one that comes late"))
    assert seen == ids


async def test_recall_explains_itself(http):
    id = await stored(http, "The cat is called Mimi.", owner="ann")
    await stored(http, "The weather is fine.", owner="ann")
    body = {"query": "what is the cat called", "owner": "ann", "explain": True, "limit": 1}
    answer = (await http.post("/v1/memories/recall", json=body)).json()
    (hit,) = answer["data"]
    assert hit["memory"]["id"] == id
    assert hit["explanation"]["contributions"]
    assert answer["explanation"]["dropped"]


async def test_an_edit_needs_what_it_edits_and_a_second_one_of_the_same_loses_nothing(http):
    id = await stored(http, "first")
    assert (await http.patch(f"/v1/memories/{id}", json={"content": "x"})).status_code == 428
    edits = [
        http.patch(f"/v1/memories/{id}", json={"content": text}, headers={"If-Match": '"1"'})
        for text in ("second", "third")
    ]
    answers = await asyncio.gather(*edits)
    assert sorted(each.status_code for each in answers) == [200, 412]
    won = next(each for each in answers if each.status_code == 200)
    assert won.headers["ETag"] == '"2"'
    history = (await http.get(f"/v1/memories/{id}/history")).json()["data"]
    assert [each["content"] for each in history] == ["first"]


async def test_an_edit_of_nothing_is_refused(http):
    id = await stored(http, "first")
    answer = await http.patch(f"/v1/memories/{id}", json={}, headers={"If-Match": "*"})
    assert answer.status_code == 422


async def test_forgetting_can_be_tried_first_and_needs_a_condition(http):
    await stored(http, "keep", tags=["keep"])
    await stored(http, "go", tags=["go"])
    assert (await http.post("/v1/memories/forget", json={})).status_code == 422
    tried = await http.post("/v1/memories/forget", json={"tags": ["go"], "dry_run": True})
    assert tried.json() == {"count": 1, "dry_run": True}
    assert len((await http.get("/v1/memories")).json()["data"]) == 2
    await http.post("/v1/memories/forget", json={"tags": ["go"]})
    assert [each["content"] for each in (await http.get("/v1/memories")).json()["data"]] == ["keep"]


async def test_a_forgotten_memory_is_gone(http):
    id = await stored(http, "go")
    assert (await http.delete(f"/v1/memories/{id}", headers={"If-Match": '"9"'})).status_code == 412
    assert (await http.delete(f"/v1/memories/{id}")).status_code == 204
    assert (await http.get(f"/v1/memories/{id}")).status_code == 404
    assert (await http.delete(f"/v1/memories/{id}")).status_code == 404


async def test_export_and_import_give_equal_memories(http, kernel, tmp_path):
    ids = {await stored(http, f"memory {number}", owner="ann") for number in range(5)}
    lines = (await http.get("/v1/export", params={"embeddings": "true"})).content
    await kernel.memory_engine.clear(confirm=True)
    report = await http.post("/v1/import", content=lines, headers=LINES)
    assert report.json()["written"] == 5
    assert {each["id"] for each in (await http.get("/v1/memories")).json()["data"]} == ids
    assert (await http.get("/v1/export", params={"embeddings": "true"})).content == lines


async def test_one_bad_line_means_that_nothing_was_imported(http):
    answer = await http.post("/v1/import", content=b'{"content": "good"}\nnonsense\n', headers=LINES)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "line 2"
    assert (await http.get("/v1/memories")).json()["data"] == []


async def test_maintenance_and_statistics_are_served(http):
    await stored(http, "something")
    assert (await http.get("/v1/stats")).json()["memories"] == 1
    assert (await http.post("/v1/maintenance", json={"decay": True})).json()["failures"] == {}


async def test_a_check_a_backup_and_an_erasure_are_served(kernel, tmp_path):
    app = create_app(kernel, auth={TOKEN}, settings=ServerConfig(backup_folder=tmp_path))
    async with client_of(app) as http:
        await http.post("/v1/memories", json={"content": "mira keeps bees behind the mill", "owner": "mira"})
        await http.post("/v1/memories", json={"content": "tomas swims", "owner": "tomas"})
        sound = {"is_sound": True, "problems": {}, "repaired": {}, "unchecked": []}
        for repair in (False, True):
            assert (await http.post("/v1/check", json={"repair": repair})).json() == sound

        made = await http.post("/v1/backup", json={"name": "monday.db"})
        assert (made.status_code, made.json()["bytes"]) == (201, (tmp_path / "monday.db").stat().st_size)
        assert (await http.post("/v1/backup", json={"name": "monday.db"})).json()["code"] == "conflict"
        assert (tmp_path / (await http.post("/v1/backup", json={})).json()["name"]).is_file()
        for name in ("../out.db", "/out.db", "a/b.db", ".hidden", "lamina.db-wal", "a\n.db", "a.db\n", ""):
            assert (await http.post("/v1/backup", json={"name": name})).status_code == 422, name

        for slip in ({"owner": "mira"}, {"owner": "mira", "confirm": "tomas"}):
            assert (await http.post("/v1/erase", json=slip)).status_code == 422
        assert (await http.get("/v1/stats")).json()["memories"] == 2
        said = {"json": {"owner": "mira", "confirm": "mira"}, "headers": {"Idempotency-Key": "once"}}
        receipt = (await http.post("/v1/erase", **said)).json()
        assert (receipt["before"]["memories"], receipt["after"]["memories"], receipt["pending"]) == (1, 0, 0)
        assert (receipt["is_complete"], receipt["bytes_left"]) == (True, 0)
        assert (await http.post("/v1/erase", json=said["json"])).json()["before"]["memories"] == 0
        assert (await http.get("/v1/stats")).json()["memories"] == 1


async def test_a_server_without_a_folder_for_backups_makes_none(http, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert (await http.post("/v1/backup", json={})).json()["code"] == "unsupported"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/memories", {"content": " "}),
        ("POST", "/v1/memories", {"content": "x", "contents": "y"}),
        ("POST", "/v1/memories", {"content": "x", "ttl": 0}),
        ("POST", "/v1/memories", {"content": "x", "relevance": True}),
        ("POST", "/v1/memories", {"content": "x", "layer": "attic"}),
        ("POST", "/v1/memories/recall", {"query": "x", "limit": 0}),
        ("POST", "/v1/memories/recall", {"query": "x", "limit": -1}),
        ("POST", "/v1/memories/recall", {"query": "x", "limit": 10**9}),
        ("POST", "/v1/memories/recall", {"query": "x", "where": {"a": {"no_such": 1}}}),
        ("POST", "/v1/memories/forget", {"older_than": "yesterday"}),
        ("GET", "/v1/memories?limit=0", None),
        ("GET", "/v1/memories?cursor=nonsense", None),
    ],
)
async def test_what_cannot_be_taken_is_422_and_names_the_field(http, method, path, body):
    answer = await http.request(method, path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"]


async def test_a_token_without_a_scope_is_refused_by_the_routes_of_that_scope(kernel):
    async def authenticate(token):
        return Principal(access=frozenset({Access(token)}))

    app = create_app(kernel, auth=authenticate)
    async with client_of(app, token="read") as http:
        assert (await http.post("/v1/memories", json={"content": "x"})).status_code == 403
        assert (await http.get("/v1/memories")).status_code == 200
    async with client_of(app, token="write") as http:
        assert (await http.post("/v1/memories", json={"content": "x"})).status_code == 201
        assert (await http.get("/v1/memories")).status_code == 403
        assert (await http.get("/v1/export")).status_code == 403


async def test_a_recall_is_written_as_its_description_says_byte_for_byte(http):
    metadata = {"topic": {"deep": [1, 2.5, None, True, "é"]}}
    await stored(http, "Ann prefers tea.", tags=["drink"], metadata=metadata, occurred_at="2026-01-02T03:04:05Z")
    await stored(http, "Bob prefers tea, too.", layer="session", ttl=60)
    for explain in (False, True):
        body = {"query": "who prefers tea", "explain": explain, "limit": 1, "touch": False, "rerank": "none"}
        answer = await http.post("/v1/memories/recall", json=body)
        assert answer.headers["Content-Type"] == "application/json"
        described = Recalled.model_validate_json(answer.content)
        assert (len(described.data), described.explanation is not None) == (1, explain)
        assert described.model_dump_json().encode() == answer.content
