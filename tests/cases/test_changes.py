"""Changes: what was reversed, what is repeated, what is stale, and what is superseded."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.errors import AdapterUnavailable, Conflict

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)
IN_MAY, IN_JUNE = datetime(2026, 5, 2, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC)


@pytest.mark.case("B34", "B40")
@EVERYWHERE
async def test_a_reversed_preference_holds_with_its_source_and_day_and_the_old_one_keeps_all_of_its_own(engine, clock):
    until = clock.now + timedelta(days=30)
    said = {"source": "talk:1", "tags": ["music"], "occurred_at": IN_MAY, "metadata": {"mood": "sure"}}
    old = await engine.store("Tomas dislikes jazz", owner="tomas", ttl=timedelta(days=30), confidence=0.75, **said)
    new = await engine.store(
        "Tomas likes jazz now",
        owner="tomas",
        source="talk:2",
        occurred_at=IN_JUNE,
        supersedes=[old],
        supersede_reason="he said so",
    )
    [hit] = await engine.recall("does Tomas like jazz?", owner="tomas")
    assert (hit.entry.id, hit.entry.source, hit.entry.occurred_at) == (new, "talk:2", IN_JUNE)
    kept = await engine.get(old)
    assert (kept.superseded_by, kept.valid_until, kept.expires_at) == (new, IN_JUNE, until)
    assert (kept.source, kept.tags, kept.occurred_at, kept.confidence) == ("talk:1", ["music"], IN_MAY, 0.75)
    assert (kept.metadata["mood"], kept.content) == ("sure", "Tomas dislikes jazz")


@pytest.mark.case("B34")
async def test_the_profile_in_a_context_has_the_later_value(kernel):
    engine = kernel.memory_engine
    for day, drink in ((IN_MAY, "coffee"), (IN_JUNE, "tea")):
        said = {"owner": "ann", "tags": ["preference"], "metadata": {"key": "drink"}, "occurred_at": day}
        earlier = [entry.id for entry in await engine.query(owner="ann", include_superseded=False)]
        await engine.store(f"Ann drinks {drink}", source=f"{day:%B}", supersedes=earlier, **said)
    context = await kernel.context_engine.compute(intent_id="i", goal="what shall I order?", owner_id="ann")
    shown = context.to_prompt()
    assert ("Ann drinks tea" in shown, "Ann drinks coffee" in shown) == (True, False)


class Breaking(InMemoryAdapter):
    """Writes three entries of a batch one by one and then breaks, as a backend without transactions may."""

    breaks = True

    async def store_many(self, scope, entries, **options):
        if self.breaks and len(entries) == 5:
            await super().store_many(scope, entries[:3], **options)
            raise AdapterUnavailable(self.name, "it is gone")
        return await super().store_many(scope, entries, **options)


@pytest.mark.case("B35")
async def test_a_job_that_stored_three_of_five_facts_stores_five_in_all_when_it_is_run_again(open_engine):
    facts = [f"Mira planted tree number {number}" for number in range(5)]
    adapter = Breaking()
    engine = await open_engine(adapter=adapter)
    with pytest.raises(AdapterUnavailable):
        await engine.store_many([{"content": fact, "owner": "mira"} for fact in facts])
    assert await engine.count() == 3
    adapter.breaks = False
    for _ in range(2):
        ids = await engine.store_many([{"content": fact, "owner": "mira"} for fact in facts])
        assert len(set(ids)) == await engine.count() == 5


@pytest.mark.case("B37")
async def test_a_repeated_request_stores_once_and_another_body_under_its_key_is_refused(http, tools, kernel):
    sent = {"json": {"content": "the ferry leaves at nine"}, "headers": {"Idempotency-Key": "k-1"}}
    first, again = [await http.post("/v1/memories", **sent) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    other = await http.post("/v1/memories", **{**sent, "json": {"content": "the ferry leaves at ten"}})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert await kernel.memory_engine.count() == 1
    async with tools() as call:
        ids = [(await call("add_memory", text="Ann rows on Sundays"))["id"] for _ in range(2)]
    assert ids[0] == ids[1]


@pytest.mark.case("B37")
@EVERYWHERE
async def test_an_id_of_the_callers_own_makes_a_repetition_harmless(engine):
    ids = await asyncio.gather(*(engine.store("the lamp is lit", id="turn-7") for _ in range(5)))
    assert set(ids) == {"turn-7"}
    assert await engine.count() == 1
    with pytest.raises(Conflict):
        await engine.store("the lamp is out", id="turn-7")


@pytest.mark.case("B38")
@EVERYWHERE
async def test_of_two_edits_of_what_was_read_the_second_is_a_conflict(engine):
    id = await engine.store("version one")
    read = await engine.get(id)
    await engine.update(id, content="version two", expected_revision=read.revision)
    with pytest.raises(Conflict):
        await engine.update(id, content="an edit of one", expected_revision=read.revision)
    with pytest.raises(Conflict):
        await engine.forget(id, expected_revision=read.revision)
    assert (await engine.get(id)).content == "version two"


@pytest.mark.case("B38")
async def test_an_edit_over_http_must_name_what_it_edits(http):
    id = (await http.post("/v1/memories", json={"content": "version one"})).json()["id"]
    path = f"/v1/memories/{id}"
    tag = (await http.get(path)).headers["ETag"]
    assert (await http.patch(path, json={"content": "version two"}, headers={"If-Match": tag})).status_code == 200
    assert (await http.patch(path, json={"content": "stale"}, headers={"If-Match": tag})).status_code == 412
    assert (await http.patch(path, json={"content": "blind"})).status_code == 428
    assert (await http.get(path)).json()["content"] == "version two"
