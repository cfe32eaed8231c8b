"""Owners, namespaces and tenants with awkward names, over each way of reading and changing."""

from __future__ import annotations

import pytest

NAMES = ["a", "a_", "a%", "A", "a:1", "a:10", "\uff41", "caf\u00e9", "cafe\u0301", "a'; --", "a/b", "*"]


async def reads(engine, **scope):
    """What each way of reading shows of a scope."""
    yield {result.entry.content for result in await engine.recall("secret", limit=100, **scope)}
    yield {result.entry.content for result in await engine.recall("secret", limit=100, mode="text", **scope)}
    yield {result.entry.content for result in await engine.recall("secret", limit=100, mode="vector", **scope)}
    yield {entry.content for entry in await engine.query("secret", limit=100, **scope)}
    yield {entry.content for entry in await engine.query(limit=100, **scope)}
    yield {entry.content async for entry in engine.scan(**scope)}


@pytest.mark.parametrize("kind", ["owner", "namespace"])
async def test_nobody_sees_what_is_anothers(engine, kind):
    ids = await engine.store_many([{"content": f"secret of {name!a}", kind: name} for name in NAMES])
    for name, id in zip(NAMES, ids, strict=True):
        async for seen in reads(engine, **{kind: name}):
            assert seen == {f"secret of {name!a}"}
        assert await engine.count(**{kind: name}) == 1
        for other in NAMES:
            found = await engine.get(id, **{kind: other})
            assert (found is not None) == (other == name)
    assert await engine.count() == len(NAMES)


async def test_nobody_changes_what_is_anothers(engine):
    ids = await engine.store_many([{"content": f"secret of {name!a}", "owner": name} for name in NAMES])
    for id, owner in zip(ids, [*NAMES[1:], NAMES[0]], strict=True):
        assert await engine.forget(id, owner=owner) is False
    for name in NAMES:
        assert await engine.forget_where(owner=name, tags=["none"]) == 0
    assert await engine.forget_where(owner="a%") == 1
    assert await engine.count() == len(NAMES) - 1


async def test_tenants_share_nothing(open_engine, tmp_path):
    engines = {name: await open_engine(path=tmp_path / "lamina.db", tenant=name) for name in NAMES}
    for name, engine in engines.items():
        for layer in ("longterm", "organizational", "global"):
            await engine.store(f"secret of {name!a} in {layer}", layer=layer, id=f"shared id {layer}")
    for name, engine in engines.items():
        async for seen in reads(engine):
            assert seen == {f"secret of {name!a} in {layer}" for layer in ("longterm", "organizational", "global")}
    assert await engines["a"].clear(confirm=True) == 3
    for name in NAMES[1:]:
        assert await engines[name].count() == 3


async def test_shared_layers_pass_whoever_stored_them(engine):
    await engine.store("the release secret", layer="organizational", owner="team")
    await engine.store("the global secret", layer="global", owner="team")
    await engine.store("the session secret", layer="session", owner="team")
    async for seen in reads(engine, owner="alice"):
        assert seen == {"the release secret", "the global secret"}
    async for seen in reads(engine, owner_id="alice", namespace="elsewhere"):
        assert seen == set()


async def test_strict_owners_share_nothing(open_engine, place):
    engine = await open_engine(**place, strict_owner=True)
    await engine.store("the release secret", layer="organizational", owner="team")
    async for seen in reads(engine, owner="alice"):
        assert seen == set()


async def test_an_owner_does_not_delete_what_is_shared(engine):
    id = await engine.store("the release secret", layer="organizational", owner="team")
    assert await engine.forget(id, owner="alice") is False
    assert await engine.forget_where(owner="alice", layer="organizational") == 0
    assert await engine.get(id, owner="alice") is not None
