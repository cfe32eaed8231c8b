from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from stable_ids import stable

from lamina.domain.filters import And
from lamina.errors import AdapterUnavailable, InvalidInput, InvalidType
from lamina.memory.inputs import MemoryInput
from lamina.ports.hooks import ForgetReason, MemoryHooks


@pytest.fixture
def forgotten():
    return []


@pytest.fixture
async def engine(open_engine, place, forgotten):
    hooks = MemoryHooks(on_forget=lambda entry, reason: forgotten.append((entry.content, reason)))
    return await open_engine(**place, hooks=hooks)


async def test_a_forgotten_memory_is_gone_from_every_way_of_reading(engine, forgotten):
    id = await engine.store("the canary sings")
    await engine.update(id, content="the canary sleeps")
    assert await engine.forget(id) is True
    assert await engine.get(id) is None
    assert list(await engine.recall("canary")) == []
    assert list(await engine.recall("canary", mode="text")) == []
    assert list(await engine.query()) == []
    assert await engine.history(id) == []
    assert await engine.count() == 0
    assert forgotten == [("the canary sleeps", ForgetReason.EXPLICIT)]


async def test_an_unknown_or_foreign_id_is_no_error_and_calls_no_hook(engine, forgotten):
    id = await engine.store("the canary sings", owner="mira")
    assert await engine.forget("mem_none") is False
    assert await engine.forget(id, owner="tomas") is False
    assert await engine.get(id) is not None
    assert forgotten == []


class TestWhere:
    @pytest.fixture(autouse=True)
    async def memories(self, engine, clock):
        clock.now = datetime(2023, 12, 31, 12, tzinfo=UTC)
        await engine.store("old session", layer="session", ttl=None, tags=["deprecated"], metadata={"n": 1})
        clock.now = datetime(2024, 1, 1, tzinfo=UTC)
        await engine.store("new session", layer="session", ttl=None, tags=["deprecated", "kept"], metadata={"n": 2})
        await engine.store("temporary", namespace="temp-data", owner="mira")
        await engine.store("lasting", owner="mira")

    @pytest.mark.parametrize(
        ("conditions", "gone"),
        [
            ({"namespace": "temp-data"}, {"temporary"}),
            ({"layer": "session"}, {"old session", "new session"}),
            ({"layers": ["session", "global"], "tags": ["kept"]}, {"new session"}),
            ({"tags": ["deprecated"]}, {"old session", "new session"}),
            ({"tags_any": ["kept", "x"]}, {"new session"}),
            ({"older_than": "2024-01-01"}, {"old session"}),
            ({"older_than": datetime(2024, 1, 1)}, {"old session"}),  # noqa: DTZ001 - a naive time is UTC
            ({"older_than": timedelta(hours=11)}, {"old session"}),
            ({"owner": "mira"}, {"temporary", "lasting"}),
            ({"where": {"n": {"gt": 1}}}, {"new session"}),
            ({"layer": "session", "older_than": "2024-01-01T00:00:00+00:00"}, {"old session"}),
        ],
        ids=stable,
    )
    async def test_all_conditions_must_hold(self, engine, forgotten, conditions, gone):
        before = {entry.content for entry in await engine.query()}
        assert await engine.forget_where(**conditions, dry_run=True) == len(gone)
        assert await engine.count() == 4
        assert await engine.forget_where(**conditions) == len(gone)
        assert {entry.content for entry in await engine.query()} == before - gone
        assert {content for content, _ in forgotten} == gone
        assert {reason for _, reason in forgotten} == {ForgetReason.FILTER}

    @pytest.mark.parametrize(
        "conditions",
        [
            {},
            {"tags": []},
            {"tags": (tag for tag in [])},
            {"tags_any": iter([])},
            {"layers": []},
            {"owner": None},
            {"where": {}},
            {"where": And(())},
            {"where": {"and": []}},
            {"where": {"not": {"or": []}}},
            {"where": {"or": [{"n": 1}, {}]}},
            {"where": {"and": [{}, {"not": {"not": {}}}]}},
        ],
        ids=stable,
    )
    async def test_no_condition_deletes_nothing(self, engine, conditions):
        with pytest.raises(InvalidInput, match="clear"):
            await engine.forget_where(**conditions)
        assert await engine.count() == 4

    async def test_everything_goes_only_when_confirmed(self, engine, forgotten):
        with pytest.raises(InvalidInput, match="confirm"):
            await engine.clear()
        assert await engine.count() == 4
        assert await engine.clear(confirm=True) == 4
        assert await engine.count() == 0
        assert {reason for _, reason in forgotten} == {ForgetReason.CLEARED}


async def test_clearing_keeps_to_the_tenant(open_engine, tmp_path):
    ours = await open_engine(path=tmp_path / "lamina.db")
    theirs = await open_engine(path=tmp_path / "lamina.db", tenant="other")
    await ours.store("ours")
    await theirs.store("theirs")
    assert await ours.clear(confirm=True) == 1
    assert await theirs.count() == 1


async def test_what_expired_is_absent_at_once_and_removed_soon(engine, forgotten, clock):
    await engine.store("short-lived", ttl=30)
    await engine.store("lasting")
    clock.advance(30)
    assert await engine.count() == 1
    assert [entry.content for entry in await engine.query()] == ["lasting"]
    assert (await engine.stats()).expired == 1
    clock.advance(60)
    await engine.recall("anything")
    assert forgotten == [("short-lived", ForgetReason.EXPIRED)]
    assert (await engine.stats()).expired == 0


async def test_a_purge_that_fails_does_not_undo_the_call_before_it(engine, clock, monkeypatch, caplog):
    async def locked(scope, ids, *, filter=None):
        raise AdapterUnavailable(engine.adapter.name, "it is locked")

    await engine.store("short-lived", ttl=30)
    clock.advance(90)
    with monkeypatch.context() as failing:
        failing.setattr(engine.adapter, "delete_many", locked)
        id = await engine.store("lasting")
        with pytest.raises(AdapterUnavailable):
            await engine.purge_expired()
    assert "could not purge" in caplog.text
    assert [entry.id for entry in await engine.query()] == [id]
    clock.advance(60)
    await engine.recall("anything")
    assert (await engine.stats()).expired == 0


async def test_purging_on_request_says_how_much_went(engine, clock):
    await engine.store_many([{"content": f"note {n}", "ttl": 5} for n in range(7)])
    assert await engine.purge_expired() == 0
    clock.advance(5)
    assert await engine.purge_expired() == 7


async def test_forgetting_a_thousand_at_once(engine):
    await engine.store_many([{"content": f"note {n}", "tags": ["x"]} for n in range(1203)])
    await engine.store("kept")
    assert await engine.forget_where(tags=["x"]) == 1203
    assert [entry.content for entry in await engine.query()] == ["kept"]


async def test_a_failing_listener_does_not_stop_forgetting(open_engine, place, caplog):
    def fail(entry, reason):
        raise RuntimeError("listener")

    engine = await open_engine(**place, hooks=MemoryHooks(on_forget=fail))
    id = await engine.store("the canary sings")
    assert await engine.forget(id) is True
    assert await engine.get(id) is None
    assert "on_forget failed" in caplog.text
    assert "canary" not in caplog.text.replace("listener", "")


async def test_a_listener_that_stores_does_not_keep_forgetting_busy(open_engine, place):
    engine = None

    async def note(entry, reason):
        await engine.store(f"forgot {entry.id}")

    engine = await open_engine(**place, hooks=MemoryHooks(on_forget=note))
    await engine.store_many(["one", "two"])
    assert await engine.clear(confirm=True) == 2
    assert await engine.count() == 2


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"older_than": 5}, "older_than"),
        ({"older_than": "x"}, "older_than"),
        ({"older_than": timedelta(-1)}, "older_than"),
        ({"older_than": timedelta.max}, "older_than"),
        ({"older_than_ms": float("nan")}, "older_than_ms"),
        ({"older_than_ms": "x"}, "older_than_ms"),
        ({"older_than_ms": True}, "older_than_ms"),
    ],
    ids=str,
)
async def test_an_age_that_is_none_is_refused(engine, arguments, field):
    with pytest.raises((InvalidInput, InvalidType), match=field):
        await engine.decay(**arguments)


@pytest.mark.parametrize("age", [timedelta.max, timedelta.min, "yesterday", 5])
async def test_a_cutoff_that_is_none_is_refused(engine, age):
    with pytest.raises((InvalidInput, InvalidType), match="older_than"):
        await engine.forget_where(older_than=age)


async def test_what_is_renewed_while_its_kind_is_forgotten_stays(engine):
    ids = await engine.store_many([{"content": f"task {n}", "metadata": {"state": "done"}} for n in range(20)])
    delete_many = engine.adapter.delete_many

    async def after_an_edit(scope, ids_, *, filter=None):
        await engine.update(ids[7], metadata={"state": "open"})
        return await delete_many(scope, ids_, filter=filter)

    engine.adapter.delete_many = after_an_edit
    assert await engine.forget_where(where={"state": "done"}) == 19
    assert [entry.id for entry in await engine.query()] == [ids[7]]


async def test_what_is_stored_anew_while_its_like_expires_stays(engine, clock):
    await engine.store("old", id="k", ttl=5)
    clock.advance(6)
    delete_many = engine.adapter.delete_many

    async def after_a_store(scope, ids, *, filter=None):
        await engine._writer.store_many([MemoryInput(content="renewed", id="k")])
        return await delete_many(scope, ids, filter=filter)

    engine.adapter.delete_many = after_a_store
    assert await engine.purge_expired() == 0
    assert (await engine.get("k")).content == "renewed"
