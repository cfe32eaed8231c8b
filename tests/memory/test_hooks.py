from __future__ import annotations

import pytest

from lamina.domain.memory import Layer, Trust
from lamina.errors import InvalidInput, InvalidType, ScopeError
from lamina.ports.hooks import MemoryHooks


async def test_a_guard_can_veto_and_vetoed_text_reaches_neither_embedder_nor_store(open_engine, place, embedder):
    engine = await open_engine(
        **place, hooks=MemoryHooks(on_before_store=lambda entry: None if "password" in entry.content else entry)
    )
    assert await engine.store("the password is hunter2") is None
    assert await engine.store_many(["one", "my password", "two"]) == ["mem_000002", None, "mem_000004"]
    assert await engine.count() == 2
    assert embedder.texts == 2


async def test_a_guard_can_change_the_entry_async_too(open_engine, place):
    async def tag(entry):
        entry.tags.append("personal")
        entry.relevance = 0.95
        entry.content = entry.content.replace("hunter2", "***")
        return entry

    engine = await open_engine(**place, hooks=MemoryHooks(on_before_store=tag))
    entry = await engine.get(await engine.store("the word is hunter2"))
    assert (entry.content, entry.tags, entry.relevance, entry.base_relevance) == (
        "the word is ***",
        ["personal"],
        0.95,
        0.95,
    )


async def test_a_guard_changes_an_edited_entry_as_it_does_a_new_one(open_engine, place):
    def distrust(entry):
        if "<html>" in entry.content:
            entry.trust, entry.layer, entry.source = Trust.UNTRUSTED, Layer.SESSION, "a page"
        return entry

    engine = await open_engine(**place, hooks=MemoryHooks(on_before_store=distrust))
    new = await engine.store("<html> one")
    edited = await engine.store("two")
    await engine.update(edited, content="<html> two")
    for id in (new, edited):
        entry = await engine.get(id)
        assert (entry.trust, entry.layer, entry.source) == (Trust.UNTRUSTED, Layer.SESSION, "a page")


async def test_what_a_guard_raises_reaches_the_caller_and_nothing_is_stored(open_engine, place):
    def guard(entry):
        if entry.content == "two":
            raise RuntimeError("no")
        return entry

    engine = await open_engine(**place, hooks=MemoryHooks(on_before_store=guard))
    with pytest.raises(RuntimeError, match="no"):
        await engine.store_many(["one", "two"])
    assert await engine.count() == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda entry: entry.replace(content=" "), InvalidInput),
        (lambda entry: entry.replace(relevance=float("nan")), InvalidInput),
        (lambda entry: entry.replace(id="other"), ScopeError),
        (lambda entry: entry.replace(tenant="other"), ScopeError),
        (lambda entry: "yes", InvalidType),
    ],
)
async def test_what_a_guard_returns_is_checked_anew(open_engine, place, change, error):
    engine = await open_engine(**place, hooks=MemoryHooks(on_before_store=change))
    with pytest.raises(error):
        await engine.store("one")
    assert await engine.count() == 0


async def test_edits_pass_the_guard_too(open_engine, place):
    engine = await open_engine(
        **place, hooks=MemoryHooks(on_before_store=lambda entry: None if "password" in entry.content else entry)
    )
    id = await engine.store("harmless")
    with pytest.raises(InvalidInput, match="veto"):
        await engine.update(id, content="the password")
    assert (await engine.get(id)).content == "harmless"


async def test_a_rerank_is_kept_and_comes_before_the_cut(open_engine, place):
    def boost(results, query):
        assert query == "key"
        boosted = [r.replace(score=1.0) if "important" in r.entry.tags else r for r in results]
        return sorted(boosted, key=lambda result: -result.score)

    engine = await open_engine(**place, hooks=MemoryHooks(on_after_recall=boost))
    await engine.store_many([f"key number {number}" for number in range(15)])
    id = await engine.store("some other thing about a key, at length and in passing", tags=["important"])
    results = await engine.recall("key", limit=3)
    assert (results[0].entry.id, results[0].score, len(results)) == (id, 1.0, 3)


async def test_a_failing_rerank_costs_nobody_the_results(open_engine, place, caplog):
    for broken in (lambda results, query: 1 / 0, lambda results, query: "nonsense"):
        engine = await open_engine(**place, hooks=MemoryHooks(on_after_recall=broken))
        await engine.store("the canary sings")
        assert len(await engine.recall("canary")) == 1
        await engine.close()
    assert "on_after_recall failed" in caplog.text


async def test_what_a_failing_rerank_changed_is_left_out(open_engine, place):
    def spoil(results, query):
        results[0].score = 0
        results[0].entry.content = "spoilt"
        raise RuntimeError("rerank")

    engine = await open_engine(**place, hooks=MemoryHooks(on_after_recall=spoil))
    await engine.store("the canary sings")
    best = (await engine.recall("canary"))[0]
    assert best.entry.content == "the canary sings"
    assert best.score > 0


@pytest.mark.parametrize("rubbish", ["", {}, None, 5, [1]])
async def test_a_rerank_that_returns_rubbish_is_said(open_engine, place, caplog, rubbish):
    engine = await open_engine(**place, hooks=MemoryHooks(on_after_recall=lambda results, query: rubbish))
    await engine.store("the canary sings")
    assert len(await engine.recall("canary")) == 1
    assert "on_after_recall failed" in caplog.text
