"""Context Packs over HTTP: the paths, shapes and envelopes that clients of packs know."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from urllib.parse import quote

import pytest
from served import TOKEN, client_of

from lamina.domain.pack_decay import Tier
from lamina.kernel import Kernel, ModelRouter
from lamina.server import Access, Principal, create_app
from lamina.settings import ServerConfig
from lamina.testing import FrozenClock, HashingEmbedder

PACKS = "/utils/context-packs"
LONG = (
    "After the audit of 14 March 2025 the team of Dr. Ines Okafor decided, following a long discussion of what had "
    "gone wrong in the night shift, that every lot is measured twice. The second measurement takes 40 minutes. "
    "Several people had pointed out before that a single one says little, and the numbers have borne them out."
)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def kernel(tmp_path, clock):
    async with Kernel(data_dir=tmp_path, model_router=ModelRouter(embed=HashingEmbedder()), clock=clock) as started:
        yield started


async def made(http, name="chip_domain", **fields):
    answer = await http.post(PACKS, json={"name": name, "type": "domain", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def added(http, content, pack="chip_domain", **fields):
    answer = await http.post(f"{PACKS}/{pack}/memories", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def left_of(http, id):
    """The memory as it is, without reading it."""
    return (await http.get(f"/utils/memories/{id}", params={"touch": "false"})).json()["data"]


# Packs.


async def test_a_pack_is_made_shown_changed_and_deleted(http):
    answer = await http.post(
        PACKS,
        json={
            "name": "chip_domain",
            "type": "domain",
            "description": "How chips are made",
            "tags": ["wafers"],
            "metadata": {"team": "fab"},
            "decay": {"unit": 3600, "steps": [1, 2, 3, 4]},
        },
    )
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{PACKS}/chip_domain"
    assert answer.headers["ETag"] == '"1"'
    pack = answer.json()["data"]
    assert pack["decay"] == {"unit": 3600.0, "steps": [1.0, 2.0, 3.0, 4.0]}
    assert pack["metadata"]["custom"] == {"team": "fab"}
    assert pack["owner"] is None

    await added(http, "A lot has 25 wafers", memory_type="glossary", metadata={"confidence": 0.5})
    shown = (await http.get(f"{PACKS}/chip_domain")).json()["data"]
    assert shown["metadata"]["memory_count"] == 1
    assert shown["metadata"]["type_distribution"] == {"glossary": 1}
    assert shown["metadata"]["confidence"] == {"min": 0.5, "mean": 0.5, "max": 0.5}
    assert shown["metadata"]["access"]["total"] == 0

    changes = {"description": "Old", "tags": [], "status": "archived", "name": "old_domain", "decay": None}
    changed = await http.patch(f"{PACKS}/chip_domain", json=changes)
    assert changed.headers["ETag"] == '"2"'
    told = changed.json()["data"]
    assert {name: told[name] for name in ("description", "tags", "status", "name", "revision")} == {
        "description": "Old",
        "tags": [],
        "status": "archived",
        "name": "old_domain",
        "revision": 2,
    }
    assert told["decay"]["unit"] == timedelta(days=365).total_seconds()

    assert (await http.delete(f"{PACKS}/old_domain")).status_code == 204
    assert (await http.get(f"{PACKS}/old_domain")).status_code == 404
    deleted = (await http.get(PACKS, params={"status": "deleted"})).json()["data"]
    assert [each["id"] for each in deleted] == [pack["id"]]
    await made(http, "old_domain")


async def test_packs_are_listed_in_pages_by_type_by_tag_and_by_status(http):
    for number in range(5):
        await made(http, f"p{number}", tags=["even" if number % 2 == 0 else "odd"])
    await made(http, "a_project", type="project")
    page = (await http.get(PACKS, params={"type": "domain", "limit": 2, "page": 2})).json()
    assert [each["name"] for each in page["data"]] == ["p2", "p3"]
    assert page["pagination"] == {
        "page": 2,
        "limit": 2,
        "total_items": 5,
        "total_pages": 3,
        "next_page": 3,
        "prev_page": 1,
    }
    assert set(page) == {"data", "pagination"}
    by_alias = (await http.get(PACKS, params={"pack_type": "project"})).json()
    assert [each["name"] for each in by_alias["data"]] == ["a_project"]
    assert [each["name"] for each in (await http.get(PACKS, params={"tag": "odd"})).json()["data"]] == ["p1", "p3"]
    beyond = (await http.get(PACKS, params={"page": 10**9, "page_size": 100})).json()
    assert beyond["data"] == []
    assert (beyond["pagination"]["next_page"], beyond["pagination"]["prev_page"]) == (None, 1)
    empty = (await http.get(PACKS, params={"status": "archived"})).json()["pagination"]
    assert (empty["limit"], empty["total_pages"], empty["next_page"], empty["prev_page"]) == (20, 0, None, None)


async def test_a_name_that_is_taken_is_a_conflict(http):
    await made(http)
    answer = await http.post(PACKS, json={"name": "chip_domain", "type": "project"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "already_exists"
    assert set(answer.json()["error"]) == {"code", "message", "details"}


async def test_discovering_tells_packs_with_their_scores(http):
    await made(http, description="What wafer yield depends on", tags=["yield"])
    await made(http, "cooking", description="Recipes for soup")
    body = {"query": "wafer yield", "type": "domain", "tags": ["yield"], "limit": 3}
    found = (await http.post(f"{PACKS}/discover", json=body)).json()
    assert [each["name"] for each in found["data"]] == ["chip_domain"]
    assert 0 < found["data"][0]["score"] <= 1
    assert found["pagination"]["total_items"] == 1
    assert found["degraded"] == []


async def test_what_fades_next_is_told_of_one_pack_and_reads_nothing(http, clock):
    await made(http)
    await made(http, "talk", type="session", owner="ann")
    memory = await added(http, LONG, memory_type="fact", name="audit")
    await http.post(f"{PACKS}/talk/memories", params={"owner": "ann"}, json={"content": LONG})
    told = (await http.get(f"{PACKS}/chip_domain/fading")).json()
    assert told["data"] == [
        {
            "id": memory["id"],
            "pack_id": memory["pack_id"],
            "name": "audit",
            "degradation_tier": "full",
            "next_tier": "summary",
            "at": (clock() + timedelta(days=365)).isoformat().replace("+00:00", "Z"),
        }
    ]
    assert (await http.get(f"{PACKS}/chip_domain/fading", params={"until": clock().isoformat()})).json()["data"] == []
    assert (await left_of(http, memory["id"]))["metadata"]["access_count"] == 0


# Memories.


async def test_a_memory_is_shown_in_the_shape_that_clients_of_packs_know(http):
    await made(http)
    old = await added(http, "Wafer yield drops above 21 degrees")
    new = await added(
        http,
        "Wafer yield drops above 22 degrees",
        memory_type="fact",
        name="yield_rule",
        tags=["yield"],
        metadata={"source": "document", "confidence": 0.92, "provenance": "Session #142, turn 3", "custom": {"a": 1}},
        relationships=[{"type": "supersedes", "target_id": old["id"]}],
        expires_at="2100-01-01T00:00:00Z",
    )
    read = (await http.get(f"/utils/memories/{new['id']}")).json()["data"]
    assert set(read) == {
        "id",
        "content",
        "memory_type",
        "name",
        "metadata",
        "relationships",
        "degradation_tier",
        "tier_since",
        "tags",
        "pinned",
        "pinned_at",
        "expires_at",
        "updated_at",
        "revision",
        "pack_id",
    }
    assert read["relationships"] == [{"type": "supersedes", "target_id": old["id"]}]
    assert (read["memory_type"], read["name"], read["degradation_tier"]) == ("fact", "yield_rule", "full")
    facts = read["metadata"]
    assert set(facts) == {
        "source",
        "confidence",
        "created_at",
        "last_accessed",
        "access_count",
        "superseded_by",
        "provenance",
        "custom",
    }
    assert (facts["source"], facts["confidence"], facts["provenance"]) == ("document", 0.92, "Session #142, turn 3")
    assert (facts["access_count"], facts["custom"], facts["superseded_by"]) == (1, {"a": 1}, None)
    assert facts["created_at"].endswith("Z")
    assert (await left_of(http, old["id"]))["metadata"]["superseded_by"] == new["id"]


async def test_the_vector_is_there_where_it_is_asked_for(http):
    await made(http)
    memory = await added(http, "A lot has 25 wafers")
    (wanted,) = await HashingEmbedder().embed_documents(["A lot has 25 wafers"])
    asked = {"include": "embedding"}
    one = (await http.get(f"/utils/memories/{memory['id']}", params=asked)).json()["data"]
    assert one["embedding"] == pytest.approx(list(wanted))
    for params in (asked, asked | {"query": "wafers"}):
        (listed,) = (await http.get(f"{PACKS}/chip_domain/memories", params=params)).json()["data"]
        assert listed["embedding"] == one["embedding"]


async def test_listing_reads_the_page_that_it_returns_and_only_that(http, kernel, clock):
    await made(http)
    ids = [(await added(http, f"{LONG} Number {number}."))["id"] for number in range(5)]
    clock.advance(timedelta(days=366))
    await kernel.packs.degrade()
    page = (await http.get(f"{PACKS}/chip_domain/memories", params={"limit": 2, "page": 2})).json()
    assert [each["id"] for each in page["data"]] == ids[2:4]
    assert page["data"][0]["content"] == f"{LONG} Number 2."
    assert page["pagination"]["total_items"] == 5
    assert set(page) == {"data", "pagination"}
    counted = [(await left_of(http, id)) for id in ids]
    assert [each["metadata"]["access_count"] for each in counted] == [0, 0, 1, 1, 0]
    assert [each["degradation_tier"] for each in counted] == ["summary", "summary", "full", "full", "summary"]
    assert 0 < len(counted[0]["content"]) < len(LONG) * 0.4


async def test_without_a_touch_nothing_counts_and_the_tier_shows_what_it_has_left(http, kernel, clock):
    await made(http)
    id = (await added(http, LONG))["id"]
    clock.advance(timedelta(days=2 * 365 + 1))
    await kernel.packs.degrade()
    for params in (
        {"touch": "false"},
        {"touch": "false", "query": "the team decided that every lot is measured twice"},
    ):
        (left,) = (await http.get(f"{PACKS}/chip_domain/memories", params=params)).json()["data"]
        assert (left["degradation_tier"], left["metadata"]["access_count"]) == ("key_facts", 0)
        assert left["content"] != LONG
    (whole,) = (await http.get(f"{PACKS}/chip_domain/memories")).json()["data"]
    assert (whole["content"], whole["degradation_tier"], whole["id"]) == (LONG, "full", id)


async def test_pages_of_a_search_tile_and_each_reads_only_itself(http):
    await made(http)
    ids = {(await added(http, f"wafer yield {'very ' * number}high"))["id"] for number in range(5)}
    await added(http, "nothing in common")
    pages = []
    for number in (1, 2, 3):
        params = {"query": "wafer yield high", "limit": 2, "page": number}
        page = (await http.get(f"{PACKS}/chip_domain/memories", params=params)).json()
        pages.append(page["data"])
        total = page["pagination"]["total_items"]
        assert page["degraded"] == []
    found = [each for page in pages for each in page]
    assert len({each["id"] for each in found}) == len(found) == min(total, 6)
    assert ids <= {each["id"] for each in found}
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert {each["metadata"]["access_count"] for each in found} == {1}


async def test_memories_are_filtered_by_type_name_tag_and_confidence(http):
    await made(http)
    fact = await added(http, "first", name="one", tags=["x", "y"])
    policy = await added(http, "second", memory_type="policy", metadata={"confidence": 0.4}, tags=["x"])

    async def listed(**params):
        answer = await http.get(f"{PACKS}/chip_domain/memories", params=params)
        return [each["id"] for each in answer.json()["data"]]

    assert await listed(memory_type="policy") == [policy["id"]]
    assert await listed(name="one") == [fact["id"]]
    assert await listed(tag=["x", "y"]) == [fact["id"]]
    assert await listed(min_confidence=0.5) == [fact["id"]]
    assert await listed(min_confidence=0.5, memory_type="policy") == []
    await http.post(f"/utils/memories/{fact['id']}/supersede", json={"by": policy["id"]})
    assert await listed() == [policy["id"]]
    assert await listed(include_superseded="true") == [fact["id"], policy["id"]]


async def test_the_settings_bound_how_much_one_request_brings_back(kernel):
    app = create_app(kernel, auth={TOKEN}, settings=ServerConfig(max_results=3))
    async with client_of(app) as http:
        pack = await made(http)
        ids = [(await added(http, f"wafer {number}"))["id"] for number in range(5)]
        page = (await http.get(f"{PACKS}/chip_domain/memories", params={"limit": 100})).json()
        assert (len(page["data"]), page["pagination"]["limit"]) == (3, 3)
        found = await http.post("/utils/search/retrieve", json={"pack_ids": [pack["id"]], "limit": 100})
        assert len(found.json()["data"]) == 3
        page = (await http.get(f"{PACKS}/chip_domain/memories", params={"limit": 100, "query": "wafer"})).json()
        assert page["pagination"]["total_items"] == 3
        assert sum([(await left_of(http, id))["metadata"]["access_count"] for id in ids]) == 9


async def test_memories_of_several_packs_are_retrieved_by_the_ids_of_the_packs(http):
    one, other = await made(http), await made(http, "other")
    await added(http, "wafer yield in one", metadata={"confidence": 0.5})
    best = await added(http, "wafer yield in the other", pack="other")
    body = {"pack_ids": [one["id"], other["id"]], "query": "wafer yield", "limit": 5}
    found = (await http.post("/utils/search/retrieve", json=body)).json()
    assert [each["pack_id"] for each in found["data"]] == [other["id"], one["id"]]
    assert found["data"][0]["id"] == best["id"]
    assert found["data"][0]["metadata"]["access_count"] == 1
    unsearched = (await http.post("/utils/search/retrieve", json={"pack_ids": [one["id"]]})).json()
    assert "score" not in unsearched["data"][0]
    assert found["data"][0]["found_in"] == unsearched["data"][0]["found_in"] == "full"
    answer = await http.post("/utils/search/retrieve", json={"pack_ids": [one["id"], "none"]})
    assert answer.status_code == 404


async def test_a_memory_is_pinned_archived_restored_and_deleted_softly_and_for_good(http, kernel):
    await made(http)
    id = (await added(http, LONG))["id"]
    pinned = (await http.post(f"/utils/memories/{id}/pin")).json()["data"]
    assert pinned["pinned"]
    assert pinned["pinned_at"] is not None
    unpinned = (await http.post(f"/utils/memories/{id}/unpin")).json()["data"]
    assert (unpinned["pinned"], unpinned["pinned_at"]) == (False, None)
    archived = (await http.post(f"/utils/memories/{id}/archive")).json()["data"]
    assert archived["degradation_tier"] == "archived"
    assert LONG not in str((await http.get(f"/utils/memories/{id}")).json())
    for params in ({}, {"query": "audit"}):
        assert (await http.get(f"{PACKS}/chip_domain/memories", params=params)).json()["data"] == []
    restored = await http.post(f"/utils/memories/{id}/restore")
    assert restored.json()["data"]["content"] == LONG
    assert restored.headers["ETag"] == f'"{restored.json()["data"]["revision"]}"'
    assert (await http.delete(f"/utils/memories/{id}")).status_code == 204
    assert (await http.get(f"/utils/memories/{id}")).status_code == 404
    assert len(await kernel.packs._store.get_memories("default", [id])) == 1
    assert (await http.post(f"/utils/memories/{id}/permanent-delete")).status_code == 204
    assert await kernel.packs._store.get_memories("default", [id]) == []
    assert (await http.post(f"/utils/memories/{id}/permanent-delete")).status_code == 404


async def test_superseding_goes_round_in_no_circle(http):
    await made(http)
    old, new = (await added(http, "old"))["id"], (await added(http, "new"))["id"]
    told = (await http.post(f"/utils/memories/{old}/supersede", json={"by": new})).json()["data"]
    assert told["metadata"]["superseded_by"] == new
    assert (await left_of(http, new))["relationships"] == [{"type": "supersedes", "target_id": old}]
    assert (await http.post(f"/utils/memories/{new}/supersede", json={"by": old})).status_code == 422
    assert (await http.post(f"/utils/memories/{new}/supersede", json={"by": new})).status_code == 422
    assert (await http.post(f"/utils/memories/{new}/supersede", json={"by": "none"})).status_code == 404


# Edits that lose nothing silently.


async def test_a_change_of_a_memory_keeps_what_it_does_not_name(http):
    await made(http)
    id = (await added(http, "first", name="n", tags=["t"], metadata={"confidence": 0.5, "provenance": "p"}))["id"]
    changed = (await http.patch(f"/utils/memories/{id}", json={"metadata": {"confidence": 0.75}})).json()["data"]
    assert (changed["content"], changed["name"], changed["tags"]) == ("first", "n", ["t"])
    assert (changed["metadata"]["confidence"], changed["metadata"]["provenance"]) == (0.75, "p")
    cleared = (await http.patch(f"/utils/memories/{id}", json={"name": None, "metadata": {"provenance": None}})).json()
    assert (cleared["data"]["name"], cleared["data"]["metadata"]["provenance"]) == (None, None)


async def test_changes_at_once_of_different_fields_are_all_kept(http):
    await made(http)
    id = (await added(http, "first"))["id"]
    fields = [
        {"tags": ["t"]},
        {"name": "n"},
        {"memory_type": "policy"},
        {"metadata": {"confidence": 0.5}},
        {"metadata": {"provenance": "p"}},
        {"content": "second"},
    ]
    answers = await asyncio.gather(*(http.patch(f"/utils/memories/{id}", json=each) for each in fields))
    assert {each.status_code for each in answers} == {200}
    left = await left_of(http, id)
    assert (left["tags"], left["name"], left["memory_type"], left["content"]) == (["t"], "n", "policy", "second")
    assert (left["metadata"]["confidence"], left["metadata"]["provenance"]) == (0.5, "p")
    packs = [{"description": "d"}, {"tags": ["t"]}, {"metadata": {"m": 1}}, {"decay": {"unit": 60}}]
    await asyncio.gather(*(http.patch(f"{PACKS}/chip_domain", json=each) for each in packs))
    pack = (await http.get(f"{PACKS}/chip_domain")).json()["data"]
    assert (pack["description"], pack["tags"], pack["metadata"]["custom"]) == ("d", ["t"], {"m": 1})
    assert pack["decay"]["unit"] == 60


async def test_of_two_changes_over_one_revision_one_wins_and_the_other_is_told(http):
    await made(http)
    memory = await added(http, "first")
    for path, body in ((f"/utils/memories/{memory['id']}", "content"), (f"{PACKS}/chip_domain", "description")):
        tag = (await http.get(path, params={"touch": "false"} if "memories" in path else {})).headers["ETag"]
        edits = [http.patch(path, json={body: text}, headers={"If-Match": tag}) for text in ("second", "third")]
        answers = await asyncio.gather(*edits)
        assert sorted(each.status_code for each in answers) == [200, 412]
        lost = next(each for each in answers if each.status_code == 412)
        assert lost.json()["error"]["code"] == "precondition_failed"
        assert (await http.delete(path, headers={"If-Match": tag})).status_code == 412


# Bad input.


REFUSED = [
    ("GET", f"{PACKS}?type=attic", None, "type"),
    ("GET", f"{PACKS}?type=domain&pack_type=user", None, "pack_type"),
    ("GET", f"{PACKS}?page=0", None, "page"),
    ("GET", f"{PACKS}?limit=0", None, "limit"),
    ("GET", f"{PACKS}?limit=-1", None, "limit"),
    ("GET", f"{PACKS}?limit=1000000000", None, "limit"),
    ("GET", f"{PACKS}?page_size=101", None, "page_size"),
    ("GET", f"{PACKS}?page_size=5&limit=6", None, "limit"),
    ("GET", f"{PACKS}?nonsense=1", None, "nonsense"),
    ("POST", PACKS, {"name": "p", "type": "attic"}, "type"),
    ("POST", PACKS, {"name": "No Such Name", "type": "domain"}, "name"),
    ("POST", PACKS, {"name": "x" * 64, "type": "domain"}, "name"),
    ("POST", PACKS, {"name": "p", "type": "user"}, "owner"),
    ("POST", PACKS, {"name": "p", "type": "domain", "more": 1}, "more"),
    ("POST", PACKS, {"name": "p", "type": "domain", "tags": [""]}, "tags"),
    ("POST", PACKS, {"name": "p", "type": "domain", "decay": {"unit": 0}}, "unit"),
    ("POST", PACKS, {"name": "p", "type": "domain", "decay": {"unit": 1, "steps": [4, 3, 2, 1]}}, "steps"),
    ("PATCH", f"{PACKS}/chip_domain", {}, "changes"),
    ("PATCH", f"{PACKS}/chip_domain", {"status": "deleted"}, "status"),
    ("PATCH", f"{PACKS}/chip_domain", {"description": 1}, "description"),
    ("POST", f"{PACKS}/discover", {"query": " "}, "query"),
    ("POST", f"{PACKS}/discover", {"query": "x", "limit": 0}, "limit"),
    ("GET", f"{PACKS}/chip_domain/fading?limit=0", None, "limit"),
    ("GET", f"{PACKS}/chip_domain/fading?until=tomorrow", None, "until"),
    ("GET", f"{PACKS}/chip_domain/memories?memory_type=rumour", None, "memory_type"),
    ("GET", f"{PACKS}/chip_domain/memories?limit=0", None, "limit"),
    ("GET", f"{PACKS}/chip_domain/memories?limit=-1", None, "limit"),
    ("GET", f"{PACKS}/chip_domain/memories?limit=1000000000", None, "limit"),
    ("GET", f"{PACKS}/chip_domain/memories?min_confidence=2", None, "min_confidence"),
    ("GET", f"{PACKS}/chip_domain/memories?query=", None, "query"),
    ("GET", f"{PACKS}/chip_domain/memories?query=x&limit=20&page=6", None, "page"),
    ("GET", f"{PACKS}/chip_domain/memories?touch=maybe", None, "touch"),
    ("GET", f"{PACKS}/chip_domain/memories?include=everything", None, "include"),
    ("GET", f"{PACKS}/chip_domain/memories?query=x&include_archived=true", None, "include_archived"),
    ("POST", f"{PACKS}/chip_domain/memories/batch", {"memories": []}, "memories"),
    ("POST", f"{PACKS}/chip_domain/memories/batch", {"memories": [{"content": "x"}, {"content": ""}]}, "content"),
    ("POST", "/utils/search/retrieve", {"pack_ids": ["x"], "mode": "psychic"}, "mode"),
    ("GET", f"{PACKS}/a.b/memories", None, "pack_name"),
    ("GET", f"{PACKS}/a%00b", None, "path"),
    ("POST", f"{PACKS}/chip_domain/memories", {"content": " "}, "content"),
    ("POST", f"{PACKS}/chip_domain/memories", {"content": "x", "memory_type": "rumour"}, "memory_type"),
    ("POST", f"{PACKS}/chip_domain/memories", {"content": "x", "metadata": {"confidence": 2}}, "confidence"),
    ("POST", f"{PACKS}/chip_domain/memories", {"content": "x", "metadata": {"source": "rumour"}}, "source"),
    ("POST", f"{PACKS}/chip_domain/memories", {"content": "x", "id": "mine"}, "id"),
    (
        "POST",
        f"{PACKS}/chip_domain/memories",
        {"content": "x", "relationships": [{"type": "related_to", "target_id": "none"}]},
        "relationships",
    ),
    ("GET", "/utils/memories/a%00b", None, "path"),
    ("POST", "/utils/search/retrieve", {"pack_ids": []}, "pack_ids"),
    ("POST", "/utils/search/retrieve", {"pack_ids": ["x"], "limit": 10**9}, "limit"),
    ("POST", "/utils/search/retrieve", {"pack_ids": ["x"], "query": ""}, "query"),
    ("POST", "/utils/memories/x/supersede", {"by": ""}, "by"),
]


async def test_what_cannot_be_taken_is_422_and_names_the_field(http):
    await made(http)
    for method, path, body, field in REFUSED:
        answer = await http.request(method, path, json=body)
        assert answer.status_code == 422, answer.text
        error = answer.json()["error"]
        assert field in error["details"][0]["field"]
        assert field in error["message"]
        assert len((await http.get(PACKS)).json()["data"]) == 1


@pytest.mark.parametrize(
    "id", ["a.b", "%2e%2e", "a%2Fb", "a%252Fb", "%2e%2e%2f", "a%3Ab", "%25", "none", "%F0%9F%90%88"]
)
async def test_an_id_of_whatever_shape_that_is_not_there_is_404(http, id):
    for method, path in (
        ("GET", f"/utils/memories/{id}"),
        ("DELETE", f"/utils/memories/{id}"),
        ("POST", f"/utils/memories/{id}/pin"),
        ("POST", f"/utils/memories/{id}/permanent-delete"),
    ):
        answer = await http.request(method, path)
        assert answer.status_code in {404, 405}, answer.text
        assert set(answer.json()["error"]) == {"code", "message", "details"}


@pytest.mark.parametrize("id", ["a/b", "a.b", "a%2Fb", "a b", "é", "a:1?x#y"])
async def test_an_id_of_whatever_shape_that_is_there_is_reached(http, kernel, id):
    await made(http)
    await kernel.packs.add("chip_domain", "a fact", id=id)
    path = f"/utils/memories/{quote(id, safe='')}"
    assert (await http.get(path)).json()["data"]["id"] == id
    assert (await http.post(f"{path}/pin")).json()["data"]["pinned"]
    assert (await http.post(f"{path}/permanent-delete")).status_code == 204
    assert (await http.get(path)).status_code == 404


async def test_what_is_archived_takes_nothing(http):
    await made(http)
    await http.patch(f"{PACKS}/chip_domain", json={"status": "archived"})
    answer = await http.post(f"{PACKS}/chip_domain/memories", json={"content": "late"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


async def test_a_repeated_request_with_the_same_key_adds_one_memory(http):
    await made(http)
    key = {"Idempotency-Key": "once"}
    answers = [await http.post(f"{PACKS}/chip_domain/memories", json={"content": "one"}, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert (await http.get(f"{PACKS}/chip_domain/memories")).json()["pagination"]["total_items"] == 1


async def test_a_token_without_a_scope_is_refused_by_the_routes_of_that_scope(kernel):
    async def authenticate(token):
        return Principal(access=frozenset({Access(token)}))

    app = create_app(kernel, auth=authenticate)
    async with client_of(app, token="write") as http:
        await made(http)
        assert (await http.get(PACKS)).status_code == 403
        assert (await http.post(f"{PACKS}/discover", json={"query": "x"})).status_code == 403
    async with client_of(app, token="read") as http:
        assert (await http.get(PACKS)).status_code == 200
        assert (await http.post(PACKS, json={"name": "p", "type": "domain"})).status_code == 403
        assert (await http.post("/utils/memories/x/pin")).status_code == 403
    async with client_of(app, token=None) as http:
        answer = await http.get(PACKS)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "unauthenticated"


async def test_maintenance_lets_packs_fade(http, clock):
    await made(http)
    id = (await added(http, LONG))["id"]
    clock.advance(timedelta(days=366))
    await http.post("/v1/maintenance", json={})
    assert (await left_of(http, id))["degradation_tier"] == Tier.SUMMARY
