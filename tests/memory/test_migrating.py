from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from lamina.domain.recall import Reason, Source
from lamina.errors import AdapterError, ConfigError, InvalidInput, StoreDamaged
from lamina.memory.factory import create_memory_engine

ROWS = [
    ("old-1", "The spare key is under the blue pot", "longterm", '["home"]', "mira", 1735787045, "calm"),
    ("old-2", "The blue pot was a gift of Tomas", "longterm", "home,gift", "mira", "2025-01-02T03:04:05Z", None),
    ("old-3", "The blue pot is not for sale", "longterm", None, "tomas", 1735787045000, None),
    ("old-4", "The blue house style is for letters", "organizational", None, "anna", None, None),
]


def write(file, table="agent_memories", rows=ROWS):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {table} (id, content, layer, tags, user_id, created_at, mood)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608
        connection.commit()


@pytest.fixture
def old(tmp_path):
    file = tmp_path / "v1.db"
    write(file)
    return file


@pytest.fixture
async def engine(open_engine, place, old):
    return await open_engine(**place, v1_path=old)


def ids(results):
    return [result.entry.id for result in results]


class TestFallingBack:
    async def test_memories_of_version_1_are_recalled_and_say_so(self, engine):
        results = await engine.recall("blue pot", owner="mira")
        assert sorted(ids(results)) == ["old-1", "old-2", "old-4"]
        assert {result.entry.source for result in results} == {"v1:agent_memories"}
        assert {result.source for result in results} == {Source.TEXT}
        assert ("version 1", Reason.NOT_NATIVE) in [(each.detail, each.reason) for each in results.degraded]

    async def test_ours_come_first_and_the_others_only_fill_the_page(self, engine):
        ours = await engine.store("A blue pot stands in the hall", owner="mira", relevance=0.1)
        assert ids(await engine.recall("blue pot", owner="mira", limit=1)) == [ours]
        assert ids(await engine.recall("blue pot", owner="mira", limit=2))[0] == ours
        pages = [ids(await engine.recall("blue pot", owner="mira", limit=2, offset=offset)) for offset in (0, 2)]
        assert pages[0] + pages[1] == ids(await engine.recall("blue pot", owner="mira", limit=4))
        assert len(set(pages[0] + pages[1])) == 4

    async def test_a_full_page_of_ours_says_nothing_of_version_1(self, engine):
        await engine.store("A blue pot", owner="mira")
        results = await engine.recall("blue pot", owner="mira", limit=1)
        assert "version 1" not in [each.detail for each in results.degraded]

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({"owner": "tomas"}, ["old-3", "old-4"]),
            ({"owner": "nobody"}, ["old-4"]),
            ({"owner": "mira", "layer": "longterm"}, ["old-1", "old-2"]),
            ({"owner": "mira", "tags": ["gift"]}, ["old-2"]),
            ({"owner": "mira", "where": {"mood": "calm"}}, ["old-1"]),
            ({"owner": "mira", "namespace": "elsewhere"}, []),
            ({}, ["old-1", "old-2", "old-3", "old-4"]),
        ],
    )
    async def test_scope_and_filters_hold_for_them_too(self, engine, filters, found):
        assert sorted(ids(await engine.recall("blue", **filters))) == found

    async def test_a_minimum_and_the_hook_hold_for_them_too(self, open_engine, place, old):
        def hide(results, query):
            return [result for result in results if "gift" not in result.entry.content]

        engine = await open_engine(**place, v1_path=old, hooks={"on_after_recall": hide})
        assert sorted(ids(await engine.recall("blue pot", owner="mira"))) == ["old-1", "old-4"]
        assert await engine.recall("blue pot", owner="mira", min_score=1.0) == []

    async def test_they_are_read_only(self, engine, old):
        before = hashlib.sha256(old.read_bytes()).hexdigest()
        await engine.recall("blue pot", owner="mira")
        assert not await engine.forget("old-1")
        assert await engine.get("old-1") is None
        assert hashlib.sha256(old.read_bytes()).hexdigest() == before
        assert sorted(each.name for each in old.parent.glob("v1*")) == ["v1.db"]

    async def test_rows_added_by_the_old_program_meanwhile_are_found(self, engine, old):
        await engine.recall("blue pot", owner="mira")
        with closing(sqlite3.connect(old)) as connection:
            connection.execute("INSERT INTO agent_memories (id, content, user_id) VALUES ('new', 'A heron', 'mira')")
            connection.commit()
        assert ids(await engine.recall("heron", owner="mira")) == ["new"]

    async def test_the_first_layout_of_version_2_is_copied_on_request_and_not_fallen_back_on(
        self, open_engine, place, tmp_path
    ):
        file = tmp_path / "kernova.db"
        write(file, "kernova_memories")
        engine = await open_engine(**place, v1_path=file)
        assert await engine.recall("blue pot", owner="mira") == []
        assert (await engine.migrate_v1()).written == 4
        assert "old-1" in ids(await engine.recall("blue pot", owner="mira"))

    async def test_bad_rows_do_not_keep_the_good_ones_from_being_found(self, open_engine, place, tmp_path):
        file = tmp_path / "bad.db"
        write(file, rows=[("b", None, None, None, "mira", None, None), *ROWS])
        engine = await open_engine(**place, v1_path=file)
        assert "old-1" in ids(await engine.recall("blue pot", owner="mira"))


class TestMigrating:
    async def test_ids_times_tags_and_unknown_columns_are_kept(self, engine):
        report = await engine.migrate_v1()
        assert (report.read, report.written, report.skipped, report.bad_count) == (4, 4, 0, 0)
        entry = await engine.get("old-1", owner="mira")
        assert entry is not None
        assert (entry.tags, entry.metadata, entry.source) == (["home"], {"mood": "calm"}, "v1:agent_memories")
        assert entry.created_at.isoformat() == "2025-01-02T03:04:05+00:00"

    async def test_doing_it_twice_changes_nothing(self, engine):
        await engine.migrate_v1()
        before = [entry async for entry in engine.scan()]
        report = await engine.migrate_v1()
        assert (report.written, report.skipped) == (0, 4)
        assert [entry async for entry in engine.scan()] == before

    async def test_a_memory_that_was_edited_here_is_not_overwritten(self, engine):
        await engine.migrate_v1()
        await engine.update("old-1", owner="mira", content="The spare key is with Anna")
        await engine.migrate_v1()
        entry = await engine.get("old-1")
        assert entry is not None
        assert entry.content == "The spare key is with Anna"

    async def test_afterwards_a_forgotten_memory_does_not_come_back_from_the_old_file(self, engine):
        await engine.migrate_v1()
        assert await engine.forget("old-1", owner="mira")
        assert "old-1" not in ids(await engine.recall("blue pot", owner="mira"))

    async def test_that_holds_for_a_later_engine_on_the_same_file(self, open_engine, tmp_path, old):
        first = await open_engine(path=tmp_path / "lamina.db", v1_path=old)
        await first.migrate_v1()
        await first.forget("old-1", owner="mira")
        await first.close()
        second = await open_engine(path=tmp_path / "lamina.db", v1_path=old)
        assert "old-1" not in ids(await second.recall("blue pot", owner="mira"))

    async def test_they_are_found_by_meaning_once_they_are_embedded(self, engine):
        await engine.migrate_v1()
        assert (await engine.reembed_missing()).embedded == 4
        results = await engine.recall("blue pot", owner="mira", mode="vector")
        assert results.degraded == ()
        assert "old-1" in ids(results)

    async def test_a_file_can_be_named_instead_of_the_setting(self, open_engine, place, old):
        engine = await open_engine(**place)
        assert (await engine.migrate_v1(old)).written == 4
        assert (await engine.migrate_v1(str(old))).skipped == 4

    async def test_rows_that_cannot_be_stored_are_told_by_number_and_without_what_they_say(
        self, open_engine, place, tmp_path
    ):
        file = tmp_path / "bad.db"
        write(
            file, rows=[ROWS[0], ("b", " ", None, None, "mira", None, None), ("c", "x", None, None, b"?", None, None)]
        )
        report = await (await open_engine(**place)).migrate_v1(file)
        assert (report.read, report.written, report.bad_count) == (3, 1, 2)
        assert [(each.number, each.problem.split(":")[0]) for each in report.bad] == [(2, "content"), (3, "owner")]

    async def test_what_is_past_its_time_is_left_behind(self, open_engine, place, tmp_path):
        file = tmp_path / "expired.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE agent_memories (id, content, expires_at)")
            connection.execute("INSERT INTO agent_memories VALUES ('a', 'gone', 1), ('b', 'here', 9999999999)")
            connection.commit()
        engine = await open_engine(**place)
        report = await engine.migrate_v1(file)
        assert (report.written, report.expired) == (1, 1)

    async def test_many_rows_keep_their_number(self, open_engine, place, tmp_path):
        file = tmp_path / "many.db"
        write(file, rows=[(f"m{n}", f"note {n}", "longterm", None, "mira", n, None) for n in range(1234)])
        engine = await open_engine(**place, embedding="none")
        assert (await engine.migrate_v1(file)).written == 1234
        assert await engine.count() == 1234

    async def test_another_tenant_sees_nothing_of_what_was_migrated(self, open_engine, tmp_path, old):
        ours = await open_engine(path=tmp_path / "lamina.db", tenant="ours")
        await ours.migrate_v1(old)
        theirs = await open_engine(path=tmp_path / "lamina.db", tenant="theirs")
        assert await theirs.recall("blue pot") == []
        assert await theirs.count() == 0


class TestRefusals:
    async def test_without_a_file_it_is_refused(self, open_engine, place):
        with pytest.raises(InvalidInput, match="v1_path"):
            await (await open_engine(**place)).migrate_v1()

    async def test_a_file_without_memories_is_refused_before_anything_is_written(self, open_engine, place, tmp_path):
        file = tmp_path / "other.db"
        write(file, "invoices")
        engine = await open_engine(**place)
        with pytest.raises(InvalidInput, match="no table of memories"):
            await engine.migrate_v1(file)
        assert await engine.count() == 0

    async def test_a_setting_that_leads_to_no_memories_is_refused_when_the_engine_opens(self, place, tmp_path):
        write(tmp_path / "other.db", "invoices")
        with pytest.raises(ConfigError, match="v1_path"):
            await create_memory_engine(**place, v1_path=tmp_path / "other.db", embedding="none")
        with pytest.raises(AdapterError, match="is no file"):
            await create_memory_engine(**place, v1_path=tmp_path / "missing.db", embedding="none")

    async def test_the_old_file_given_as_the_new_one_is_refused_with_the_way_forward_and_stays_as_it_was(self, old):
        before = old.read_bytes()
        with pytest.raises(ConfigError, match=r"v1_path.*migrate_v1"):
            await create_memory_engine(path=old, embedding="none")
        assert old.read_bytes() == before
        assert [each.name for each in old.parent.glob("v1*")] == ["v1.db"]

    async def test_any_other_foreign_file_is_refused_as_ever(self, tmp_path):
        write(tmp_path / "other.db", "invoices")
        with pytest.raises(StoreDamaged, match="another program"):
            await create_memory_engine(path=tmp_path / "other.db", embedding="none")


class TestTheOrderOfVersion1:
    async def test_under_version_1_a_relevant_old_memory_stands_before_a_fresh_and_often_recalled_one(
        self, open_engine, place, clock
    ):
        async def order(version):
            engine = await open_engine(
                provider="memory", version=version, embedding="none", default_owner=f"v{version}"
            )
            await engine.store("blue pot", id="old", relevance=1.0)
            clock.advance(timedelta(days=300))
            await engine.store("blue pot", id="fresh", relevance=0.8, layer="organizational")
            for _ in range(30):
                await engine.recall("blue pot", layer="organizational")
            results = await engine.recall("blue pot")
            assert all(result.score <= 1 for result in results)
            if version == 1:
                for result in results:
                    parts = result.score_breakdown
                    assert result.score == pytest.approx(parts.similarity * parts.relevance)
            return ids(results)

        assert await order(1) == ["old", "fresh"]
        assert await order(2) == ["fresh", "old"]


async def test_the_report_can_be_shown_as_json(engine):
    assert json.loads(json.dumps(dataclasses.asdict(await engine.migrate_v1())))["written"] == 4
