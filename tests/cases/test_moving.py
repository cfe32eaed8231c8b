"""Memories that are moved: equal in all, once, and what was deleted or had an end stays so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

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
