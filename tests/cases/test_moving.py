"""Memories that are moved: equal in all, once, and what was deleted or had an end stays so."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from lamina.errors import AdapterError, Conflict
from lamina.importers.copying import copy_memories
from lamina.importers.ndjson import export_ndjson, import_ndjson

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


async def exported(engine, path, **options):
    with path.open("w", encoding="utf-8") as file:
        await export_ndjson(engine, file, **options)
    return path


async def everything(engine):
    entries = [entry async for entry in engine.scan(include_expired=True)]
    return {entry.id: replace(entry, seq=0, tenant="", embedding=None) for entry in entries}


@pytest.mark.case("B136", "B137")
@EVERYWHERE
async def test_an_import_into_an_empty_store_is_equal_in_every_field_and_twice_changes_nothing(
    engine, open_engine, clock, tmp_path
):
    week = await engine.store("for a week", ttl=timedelta(days=7), namespace="notes", owner="mira", tags=["x"])
    clock.advance(3600)
    await engine.update(week, content="for a week, edited once")
    for namespace in ("notes", "plans"):
        await engine.store("the same words", namespace=namespace, owner="mira", metadata={"n": 1}, source=namespace)
    await engine.store("it holds now", supersedes=[await engine.store("it held", derived_from=["m9"])])
    await engine.store("soon over", ttl=10)
    await engine.recall("for a week")
    clock.advance(60)
    file = await exported(engine, tmp_path / "all.ndjson", include_expired=True)
    target = await open_engine(provider="memory")
    for _ in range(2):
        await import_ndjson(target, file)
        assert await everything(target) == await everything(engine)
    again = await exported(target, tmp_path / "again.ndjson", include_expired=True)
    assert again.read_bytes() == file.read_bytes()
    clock.advance(7 * 86400)
    assert await target.get(week) is None


@pytest.mark.case("B76")
@EVERYWHERE
async def test_what_was_deleted_comes_back_by_an_older_export_only_where_the_caller_says_so(engine, clock, tmp_path):
    gone = await engine.store("the pier is closed", owner="mira")
    stays = await engine.store("the pier is long", owner="mira")
    by_filter = await engine.store("the pier is grey", owner="mira", tags=["colour"])
    file = await exported(engine, tmp_path / "older.ndjson")
    clock.advance(60)
    assert await engine.forget(gone)
    assert await engine.forget_where(tags=["colour"]) == 1
    for _ in range(2):
        report = await import_ndjson(engine, file)
        assert (report.erased, report.skipped, report.written) == (2, 1, 0)
        assert set(await everything(engine)) == {stays}
    clock.advance(60)
    again = await engine.store("the pier is closed", owner="mira", id=gone)  # said anew, it is kept and moved as any
    newer = await exported(engine, tmp_path / "newer.ndjson")
    await import_ndjson(engine, newer, replace=True)
    assert set(await everything(engine)) == {stays, again}
    report = await import_ndjson(engine, file, revive=True)
    assert (report.erased, report.written) == (0, 1)
    assert set(await everything(engine)) == {stays, again, by_filter}


async def by_import(engine, source, tmp_path, **asked):
    return await import_ndjson(engine, await exported(source, tmp_path / "out.ndjson"), **asked)


async def by_import_over(engine, source, tmp_path, **asked):
    return await import_ndjson(engine, await exported(source, tmp_path / "out.ndjson"), replace=True, **asked)


async def by_restore(engine, source, tmp_path, **asked):
    return await engine.restore([entry async for entry in source.scan()], replace=True, **asked)


async def by_copy(engine, source, tmp_path, **asked):
    return await copy_memories(source.adapter, engine.adapter, "default", overwrite=True, **asked)


async def by_a_pack(engine, source, tmp_path, **asked):
    entries = [entry async for entry in source.scan()]
    return await engine.restore(
        [each.replace(id=f"p{each.id}", metadata={"entry_id": each.id}) for each in entries], **asked
    )


@pytest.mark.case("B76")
@pytest.mark.parametrize("way", [by_import, by_import_over, by_restore, by_copy, by_a_pack])
async def test_no_way_in_brings_back_what_was_deleted_unless_it_is_asked_to(engine, open_engine, clock, tmp_path, way):
    source = await open_engine(provider="memory")
    for each in (source, engine):
        for owner, id in (("mira", "one"), ("mira", "tagged"), ("mira", "sourced"), ("tomas", "his")):
            more = {"tags": [id], "source": f"web:{id}"}
            await each.store(f"{id} is closed", id=id, owner=owner, **more)
    clock.advance(60)
    await engine.forget("one")
    await engine.forget_where(tags=["tagged"])
    await engine.forget_source(source="web:sourced")
    await engine.erase("tomas")
    assert (await way(engine, source, tmp_path)).erased == 4
    assert await engine.count() == 0
    assert (await way(engine, source, tmp_path, revive=True)).erased == 0
    assert await engine.count() == 4


@pytest.mark.case("B76")
async def test_a_memory_that_changed_while_it_was_to_be_deleted_stays_and_is_not_marked(open_engine, tmp_path):
    engine = await open_engine(path=tmp_path / "lamina.db")
    ids = await engine.store_many([{"content": f"grey {number}", "tags": ["colour"]} for number in range(50)])
    delete_many, save_many, calls = engine.adapter.delete_many, engine.adapter.save_meta_many, []

    async def late(scope, going, **options):
        await engine.adapter.update(scope, ids[7], {"tags": ["shape"]})
        return await delete_many(scope, going, **options)

    async def counted(scope, keys, *rest):
        calls.append(len(keys))
        await save_many(scope, keys, *rest)

    engine.adapter.delete_many, engine.adapter.save_meta_many = late, counted
    assert await engine.forget_where(tags=["colour"]) == 49
    assert [entry.id async for entry in engine.scan()] == [ids[7]]
    assert (await engine.erased_at(id=ids[7]), calls) == (None, [50, 1])
    assert await engine.erased_at(id=ids[8]) is not None


@pytest.mark.case("B76")
async def test_a_memory_that_changed_while_it_alone_was_to_be_deleted_is_not_marked(open_engine, tmp_path):
    engine = await open_engine(path=tmp_path / "lamina.db")
    id = await engine.store("grey")
    delete = engine.adapter.delete

    async def late(scope, going, **options):
        await engine.adapter.update(scope, going, {"content": "green"})
        return await delete(scope, going, **options)

    engine.adapter.delete = late
    with pytest.raises(Conflict):
        await engine.forget(id, expected_revision=1)
    assert ((await engine.get(id)).content, await engine.erased_at(id=id)) == ("green", None)


@pytest.mark.case("B76")
@pytest.mark.parametrize("fails", ["save_meta_many", "delete", "delete_many"])
async def test_what_is_forgotten_again_after_a_failure_stays_deleted(open_engine, clock, tmp_path, fails):
    engine = await open_engine(path=tmp_path / "lamina.db")
    for id in ("one", "tagged"):
        await engine.store(f"{id} is grey", id=id, tags=[id])
    file = await exported(engine, tmp_path / "older.ndjson")
    clock.advance(60)

    async def broken(*_, **__):
        raise AdapterError("sqlite", "disk I/O error", "Ask again.")

    asked = [lambda: engine.forget("one"), lambda: engine.forget_where(tags=["tagged"])]
    setattr(engine.adapter, fails, broken)
    for forget in asked:
        with suppress(AdapterError):
            await forget()
    delattr(engine.adapter, fails)
    for forget in asked:
        await forget()
    assert await engine.count() == 0
    assert (await import_ndjson(engine, file)).erased == 2
    assert await engine.count() == 0
