"""Both legs in one answer of the adapter, and each by its own search: no recall can tell which it was."""

import random
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from lamina.adapters.sqlite import SqliteAdapter, partitions
from lamina.databases.sqlite.database import Handle
from lamina.testing import HashingEmbedder

WORDS = "harbour lamp kite cellar key boat rope tide anchor map light keeper storm ledger".split()


class InParts(HashingEmbedder):
    """Says that its vectors are two, whose shares hang on the query."""

    def weighted_parts(self, query, overlap):
        half = len(self._embed("x")) // 2
        share = 0.3 + 0.4 * (overlap or 0)
        return ((half, share), (half, 1 - share)) if "lamp" in query else ()


class OneByOne(SqliteAdapter):
    async def search_both(self, embedding, query, options, *, meta_key):
        return None


async def fill(engine, clock, chance):
    items = []
    for number in range(260):
        text = " ".join(chance.choices(WORDS, k=chance.choice([2, 5, 40]))) + f" {number}"
        item = {"content": text, "owner": f"owner{number % 3}", "tags": ["even"] if number % 2 == 0 else []}
        if number % 4 == 0:
            item |= {"source": f"conversation:c{number % 3}", "metadata": {"speaker": chance.choice(["Mira", "Tom"])}}
        if number % 17 == 0:
            item |= {"metadata": {"aliases": ["storm keeper", "the old lamp"], "kind": number % 2}}
        if number % 9 == 0:
            item |= {"layer": chance.choice(["session", "organizational", "working"])}
        if number % 7 == 0:
            item |= {"occurred_at": datetime(2024, 1 + number % 12, 5, tzinfo=UTC)}
        items.append(item)
    ids = []
    for start in range(0, len(items), 20):
        clock.advance(timedelta(minutes=chance.randint(1, 300)))
        ids += await engine.store_many(items[start : start + 20])
    for number, id in enumerate(ids):
        if number % 23 == 0:
            await engine.forget(id)
        elif number % 29 == 1 and number % 9:  # others may have expired
            await engine.update(id, content="a lamp that was changed")


@pytest.mark.parametrize(("embed", "few"), [(HashingEmbedder, 16), (InParts, 16), (HashingEmbedder, 1)])
async def test_both_legs_at_once_are_what_they_are_one_by_one(open_engine, tmp_path, clock, embed, few, monkeypatch):
    monkeypatch.setattr(partitions, "FEW", few)
    path = tmp_path / "lamina.db"
    at_once = await open_engine(path=path, embed=embed())
    await fill(at_once, clock, random.Random(3))
    answers = []
    original = SqliteAdapter.search_both

    async def noted(self, *args, **kwargs):
        answers.append(await original(self, *args, **kwargs))
        return answers[-1]

    queries = (
        "lamp",
        "Mira asked about the cellar key",
        "storm keepr and ledger 7",
        "?",
        "when was the tide, in March 2024?",
    )
    choices = (
        {},
        {"mode": "vector"},
        {"mode": "text"},
        {"owner": "owner1"},
        {"tags": ["even"]},
        {"layers": ["longterm"]},
        {"limit": 3, "offset": 70},
    )
    asked = [(query, {"touch": False, "explain": True, **more}) for query, more in product(queries, choices)]
    asked += [("lamp", {"touch": False, "explain": True, "where": {"kind": 1}})]
    monkeypatch.setattr(SqliteAdapter, "search_both", noted)
    first = [await at_once.recall(query, **how) for query, how in asked]
    quick = [await at_once.recall(query, **{**how, "explain": False}) for query, how in asked]
    assert answers
    assert None not in answers
    monkeypatch.setattr(SqliteAdapter, "search_both", OneByOne.search_both)
    second = [await at_once.recall(query, **how) for query, how in asked]
    for (query, how), one, other, brief in zip(asked, first, second, quick, strict=True):
        assert list(one) == list(other), (query, how)
        assert (one.explanation, one.degraded) == (other.explanation, other.degraded), (query, how)
        assert [each.replace(explanation=None) for each in one] == list(brief), (query, how)


async def test_a_small_scope_is_recalled_in_one_job_and_one_for_the_turns_around(
    open_engine, tmp_path, clock, monkeypatch
):
    engine = await open_engine(path=tmp_path / "lamina.db")
    await fill(engine, clock, random.Random(4))
    jobs = []
    read = Handle.read

    async def counted(self, work):
        jobs.append(work)
        return await read(self, work)

    monkeypatch.setattr(Handle, "read", counted)
    for mode in ("vector", "text", "hybrid"):
        jobs.clear()
        assert await engine.recall("the keeper of the lamp", owner="owner1", mode=mode, touch=False)
        assert len(jobs) == 2, mode


async def test_what_is_found_does_not_hang_on_how_many_partitions_are_read_one_by_one(
    open_engine, tmp_path, clock, monkeypatch
):
    engine = await open_engine(path=tmp_path / "lamina.db")
    await fill(engine, clock, random.Random(5))
    asked = [
        {"touch": False, "mode": mode, **more}
        for mode in ("vector", "text", "hybrid")
        for more in ({}, {"owner": "owner2"}, {"layers": ["longterm", "session"]}, {"namespace": "default"})
    ]
    answers = []
    for few, many in ((16, 4096), (1, 4096), (0, 0)):
        monkeypatch.setattr(partitions, "FEW", few)
        monkeypatch.setattr(partitions, "MANY", many)
        answers.append([list(await engine.recall("storm keeper and the tide", **how)) for how in asked])
    assert answers[0] == answers[1]
    assert answers[0] == answers[2]  # here, the pool of bm25 holds all that counts
