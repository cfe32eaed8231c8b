"""The packs of a server do what those of the library do: the same calls on both, and the same comes of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from running_server import TOKEN, served

from lamina.client import LaminaClient, SyncLaminaClient
from lamina.client.packs import Packs
from lamina.domain.pack import Pack, PackSource, Relationship
from lamina.domain.pack_decay import Decay
from lamina.domain.recall import Results
from lamina.errors import (
    Conflict,
    InvalidInput,
    InvalidType,
    LaminaError,
    MemoryNotFound,
    PackExists,
    PackNotFound,
    ScopeError,
)
from lamina.kernel import Kernel, ModelRouter
from lamina.packs.inputs import PackMemoryInput
from lamina.packs.service import ContextPacks
from lamina.server import Principal, create_app
from lamina.settings import ServerConfig
from lamina.testing import FrozenClock, HashingEmbedder

NOT_HERE = {
    "initialize": "is the server's",
    "close": "is the client's own, and the server's",
    "without_shared_writes": "a token that is bound to an owner",
    "read": "one by one with `memory`",
    "rank": "`retrieve(touch=False)`",
    "find": "`client.context`",
    "import_entries": "`add_many`",
    "export_entries": "`memories`",
    "degrade": "`client.run_maintenance`",
    "reembed": "on the server's machine",
    "reembed_missing": "on the server's machine",
    "purge_orphans": "`client.run_maintenance`",
    "check": "`lamina doctor`",
    "repair": "`lamina check --repair`",
    "scrub": "`lamina packs scrub`",
}
"""The verbs of the library that the client has not, with what is in their place; the page on the client says so too."""
ANOTHER_SIGNATURE = {
    "add": "no id",
    "memories": "one pack",
    "count_memories": "one pack",
    "preview": "one pack, which must be named",
    "with_embeddings": "an owner",
}
LONG = (
    "The furnace of the Ankara plant is relined every 18 months by Demir & Sons, last on 4 May 2025. The brick comes "
    "from Kutahya and has to dry for 9 days before anybody lights a fire under it, whatever the sales people say."
)


def kernel_in(folder, clock=None):
    options = {} if clock is None else {"clock": clock}
    return Kernel(data_dir=folder, model_router=ModelRouter(embed=HashingEmbedder()), **options)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def client(tmp_path, clock):
    with served(kernel_in(tmp_path / "served", clock)) as url:
        async with LaminaClient(url, token=TOKEN) as made:
            yield made


@pytest.fixture
def library_clock():
    return FrozenClock()


@pytest.fixture
async def library(tmp_path, library_clock):
    async with kernel_in(tmp_path / "library", library_clock) as kernel:
        yield kernel.packs


async def of_packs(packs):
    made = await packs.create(
        "plant",
        "project",
        description="How furnaces are kept",
        tags=["oven", "brick"],
        metadata={"deep": {"a": [1, None]}},
        decay=Decay(timedelta(days=7), (1.0, 2.0, 3.0, 4.5)),
    )
    yield made
    yield await packs.create("talk", "session", owner="mira", decay={"unit": timedelta(hours=6)})
    yield await packs.create("facts", "domain")
    yield await packs.get("plant"), await packs.summary("plant"), await packs.metadata("plant")
    yield await packs.list(), await packs.list(owner="mira", limit=1, offset=1), await packs.list(tag="oven")
    yield (
        await packs.count(),
        await packs.count(owner="mira"),
        await packs.count(type="domain"),
        await packs.list(limit=0),
    )
    yield timedelta(minutes=1)
    yield await packs.update("plant", new_name="plants", tags=["kiln"], metadata=None, decay=None, expected_revision=1)
    yield await packs.update("plants", description="What ovens need", type="agent")
    yield await packs.archive_pack("facts"), await packs.list(status="archived"), await packs.activate("facts")
    yield [await packs.delete("facts") for _ in range(2)], await packs.delete("facts", permanent=True)
    yield await packs.delete("facts", permanent=True), await packs.delete("talk", permanent=True, owner="mira")
    yield await packs.list(owner="mira"), await packs.discover("what does an oven need?", min_score=0.1, tags=["kiln"])


async def of_memories(packs):
    await packs.create("plant", "project", decay=Decay(timedelta(days=7)))
    first = await packs.add("plant", "The gate code is 41.", "policy", name="gate", expires_at="2100-01-01T00:00:00")
    yield first
    second = await packs.add(
        "plant",
        "The gate code is 42.",
        name="gate",
        source=PackSource.DOCUMENT,
        confidence=0.5,
        provenance="Session 4",
        tags=["door", "door"],
        metadata={"a": {"b": 1}},
        relationships=[Relationship("related_to", first.id)],
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
    )
    yield second, await packs.memory(first.id, touch=False), await packs.memory(second.id)
    yield await packs.add_many(
        "plant", [LONG, {"content": "A lot has 25 bricks", "tags": ["x"]}, PackMemoryInput(content="Ask Leyla")]
    )
    yield await packs.add_many("plant", [])
    whole, lot, leyla = await packs.memories("plant", offset=1, limit=5, touch=False)
    yield whole, lot, leyla
    yield await packs.with_embeddings([lot])
    yield await packs.update_memory(
        lot.id, confidence=0.25, metadata={"c": 1}, name="lot", expected_revision=lot.revision
    )
    yield await packs.update_memory(lot.id, name=None, metadata=None, provenance="a book", source="agent_message")
    yield await packs.update_memory(lot.id, content="A lot has 26 bricks", expires_at="2100-01-01", memory_type="kpi")
    yield await packs.supersede(leyla.id, by=lot.id), await packs.memory(lot.id, touch=False)
    yield await packs.pin(lot.id), await packs.unpin(lot.id), await packs.pin(lot.id)
    yield await packs.archive(second.id), await packs.memory(second.id), await packs.memories("plant", touch=False)
    yield await packs.memories("plant", include_archived=True, include_superseded=True, touch=False)
    yield await packs.count_memories("plant"), await packs.count_memories("plant", include_archived=True, tags=["door"])
    yield await packs.restore(second.id)
    yield [await packs.delete_memory(first.id) for _ in range(2)], await packs.delete_memory(first.id, permanent=True)
    yield (
        await packs.memories("plant", memory_type="kpi"),
        await packs.memories("plant", min_confidence=0.9, name="none"),
    )
    await packs.memory(lot.id)
    yield await packs.metadata("plant")


async def of_searches(packs):
    await packs.create(
        "ovens", "project", description="How ovens and furnaces are kept", decay=Decay(timedelta(days=7))
    )
    await packs.create("gate", "project", description="Who may open the gate of the plant")
    notes = [f"Oven {number} burns {'very ' * number}hot" for number in range(8)]
    added = await packs.add_many("ovens", [LONG, *notes])
    await packs.add("gate", "The gate of the plant opens at six", tags=["door"])
    yield await packs.preview(pack="gate", limit=2), await packs.preview(datetime(2020, 1, 1, tzinfo=UTC), pack="gate")
    yield await packs.memories("ovens", offset=3, limit=4)
    yield [(await packs.memory(each.id, touch=False)).access_count for each in added]
    yield timedelta(days=8)
    yield await packs.memory(added[0].id, touch=False)
    yield await packs.retrieve("ovens", "furnace Ankara relined", limit=1, touch=False)
    yield await packs.retrieve("ovens", "furnace Ankara relined", limit=1)
    yield await packs.memory(added[0].id, touch=False)
    yield (
        await packs.retrieve("ovens", limit=2),
        await packs.retrieve(["ovens", "gate"], "gate", mode="text", tags=["door"]),
    )
    yield await packs.search("who opens the gate of the plant?", packs=2, per_pack=2)
    yield await packs.search("nothing in common at all", min_pack_score=0.99)


def told(value, names):
    """What is told, with ids as they come first, scores rounded, and no vector but that it is there."""
    if isinstance(value, Results):
        return told([list(value), value.degraded], names)
    if dataclasses.is_dataclass(value):
        own = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        if isinstance(value, Pack):
            own |= {"decay": value.current_decay, "fingerprint": None}
        own["embedding"] = own.get("embedding") is not None
        return {"of": type(value).__name__} | {name: told(each, names) for name, each in own.items()}
    if isinstance(value, list | tuple):
        return [told(each, names) for each in value]
    if isinstance(value, dict):
        return {key: told(each, names) for key, each in value.items()}
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        return names.setdefault(value, f"id {len(names)}")
    return value


async def test_the_verbs_of_packs_do_what_those_of_the_library_do(client, library, clock, library_clock):
    theirs, ours = {}, {}
    for story in (of_packs, of_memories, of_searches):
        expected, found = story(library), story(client.packs)
        steps = 0
        async for one in expected:
            other = await anext(found)
            if isinstance(one, timedelta):
                for each in (clock, library_clock):
                    each.advance(one)
                await library.degrade()
                assert (await client.run_maintenance())["failures"] == {}
            else:
                assert told(other, ours) == told(one, theirs), (story, steps)
            steps += 1
        assert await anext(found, None) is None
        assert steps > 8


def public(of):
    return {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return {each.name: (each.kind, each.default, each.annotation) for each in found if each.name != "self"}


def test_every_verb_of_the_library_is_here_or_is_named_with_what_is_in_its_place():
    assert public(Packs) == public(ContextPacks) - NOT_HERE.keys()
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    assert [name for name in NOT_HERE if f"`{name}`" not in page] == []
    same = public(Packs) - ANOTHER_SIGNATURE.keys()
    assert {
        name for name in same if parameters(getattr(Packs, name)) != parameters(getattr(ContextPacks, name))
    } == set()
    for name in ANOTHER_SIGNATURE:
        assert parameters(getattr(Packs, name)) != parameters(getattr(ContextPacks, name)), name


REFUSED = [
    (lambda packs, _: packs.create("plant", "project"), PackExists),
    (lambda packs, _: packs.create("Plant", "project"), InvalidInput),
    (lambda packs, _: packs.create("talk", "session"), InvalidInput),
    (lambda packs, _: packs.create("x", "none"), InvalidInput),
    (lambda packs, _: packs.create("x", "agent", decay={"unit": -1}), InvalidInput),
    (lambda packs, _: packs.get("none"), PackNotFound),
    (lambda packs, _: packs.get("No pack is called / so"), PackNotFound),
    (lambda packs, _: packs.get(""), InvalidInput),
    (lambda packs, _: packs.list(status="gone"), InvalidInput),
    (lambda packs, _: packs.list(offset=-1), InvalidInput),
    (lambda packs, _: packs.update("plant"), InvalidInput),
    (lambda packs, _: packs.update("plant", description="x", expected_revision=7), Conflict),
    (lambda packs, _: packs.update("plant", status="deleted"), InvalidInput),
    (lambda packs, _: packs.update("plant", new_name="gate"), PackExists),
    (lambda packs, _: packs.delete("plant", permanent="yes"), InvalidType),
    (lambda packs, _: packs.delete("plant", expected_revision=99), Conflict),
    (lambda packs, _: packs.delete("plant", permanent=True, expected_revision=99), Conflict),
    (lambda packs, memory: packs.delete_memory(memory, expected_revision=99), Conflict),
    (lambda packs, memory: packs.delete_memory(memory, permanent=True, expected_revision=99), Conflict),
    (lambda packs, _: packs.metadata("none"), PackNotFound),
    (lambda packs, _: packs.add("none", "x"), PackNotFound),
    (lambda packs, _: packs.add("plant", " "), InvalidInput),
    (lambda packs, _: packs.add("plant", 5), InvalidType),
    (lambda packs, _: packs.add("plant", "x", "none"), InvalidInput),
    (lambda packs, _: packs.add("plant", "x", confidence=2), InvalidInput),
    (lambda packs, _: packs.add("plant", "x", metadata={"a": float("nan")}), InvalidInput),
    (lambda packs, _: packs.add("plant", "x", tags="abc"), InvalidType),
    (lambda packs, _: packs.add("plant", "x", expires_at="soon"), InvalidInput),
    (lambda packs, _: packs.add("plant", "x", relationships=[{"type": "supersedes"}]), InvalidInput),
    (lambda packs, _: packs.add_many("plant", "text"), InvalidType),
    (lambda packs, _: packs.add_many("plant", ["good", {"text": "bad"}]), InvalidInput),
    (lambda packs, _: packs.memory("none"), MemoryNotFound),
    (lambda packs, _: packs.memory("..", touch=False), MemoryNotFound),
    (lambda packs, _: packs.memory("x", touch="no"), InvalidType),
    (lambda packs, own: packs.update_memory(own), InvalidInput),
    (lambda packs, own: packs.update_memory(own, content=""), InvalidInput),
    (lambda packs, own: packs.update_memory(own, content="x", expected_revision=7), Conflict),
    (lambda packs, own: packs.supersede(own, by=own), InvalidInput),
    (lambda packs, own: packs.supersede(own, by="none"), MemoryNotFound),
    (lambda packs, _: packs.pin("none"), MemoryNotFound),
    (lambda packs, _: packs.memories("plant", limit=0), InvalidInput),
    (lambda packs, _: packs.memories("none"), PackNotFound),
    (lambda packs, _: packs.discover(" "), InvalidInput),
    (lambda packs, _: packs.discover("x", limit=0), InvalidInput),
    (lambda packs, _: packs.retrieve([], "x"), InvalidInput),
    (lambda packs, _: packs.retrieve("plant", "x", by="rank"), InvalidInput),
    (lambda packs, _: packs.retrieve("none", "x", by="id"), PackNotFound),
    (lambda packs, _: packs.retrieve("plant", "x", mode="psychic"), InvalidInput),
    (lambda packs, _: packs.search("x", packs=0), InvalidInput),
    (lambda packs, _: packs.preview(pack="none"), PackNotFound),
]
"""Calls with the id of a memory, and what they are refused with."""


async def test_what_is_refused_is_refused_with_the_error_of_the_library(client, library):
    told = []
    for packs in (library, client.packs):
        for name in ("plant", "gate"):
            await packs.create(name, "project")
        id = (await packs.add("plant", "The gate opens at six")).id
        told.append([await refusal_of(call(packs, id)) for call, _ in REFUSED])
        assert [(await packs.metadata(name)).memory_count for name in ("plant", "gate")] == [1, 0]
    for number, ((_, kind), theirs, ours) in enumerate(zip(REFUSED, *told, strict=True)):
        assert (type(theirs), type(ours)) == (kind, kind), (number, theirs, ours)
        assert [getattr(ours, name, "") for name in ("id", "name")] == [
            getattr(theirs, name, "") for name in ("id", "name")
        ], number


async def refusal_of(call):
    with pytest.raises(LaminaError) as refusal:
        await call
    return refusal.value


async def test_pages_hold_what_was_asked_for_however_few_the_server_gives_at_once(tmp_path):
    async with kernel_in(tmp_path) as kernel:
        app = create_app(kernel, auth={TOKEN}, settings=ServerConfig(max_results=3))
        async with LaminaClient("http://lamina", token=TOKEN, transport=httpx2.ASGITransport(app)) as client:
            await client.packs.create("plant", "project")
            ids = [each.id for each in await client.packs.add_many("plant", [f"note {n}" for n in range(23)])]
            assert [each.id for each in await client.packs.memories("plant", touch=False)] == ids
            found = await client.packs.memories("plant", offset=5, limit=11, touch=False)
            assert [each.id for each in found] == ids[5:16]
            assert await client.packs.memories("plant", offset=23) == []
            assert (await client.packs.metadata("plant")).access.total == 0
            await client.packs.memories("plant", offset=8, limit=5)
            read = await client.packs.memories("plant", touch=False)
            assert [each.id for each in read if each.access_count] == ids[8:13]


async def test_a_token_of_an_owner_reads_what_is_shared_and_changes_its_own(tmp_path):
    async def authenticate(token):
        return Principal(owner=token, id=token) if token in {"ann", "bob"} else Principal(id=token)

    with served(kernel_in(tmp_path), auth=authenticate) as url:
        async with (
            LaminaClient(url, token="all") as everybody,
            LaminaClient(url, token="ann") as ann,
            LaminaClient(url, token="bob") as bob,
        ):
            await everybody.packs.create("rules", "domain")
            rule = await everybody.packs.add("rules", "Doors are shut at six")
            assert (await ann.packs.create("mine", "user")).owner == "ann"
            note = await ann.packs.add("mine", "Ann has the key of the doors")
            assert (await ann.packs.memory(rule.id)).content == rule.content
            assert {hit.memory.id for hit in await ann.packs.retrieve(["rules", "mine"])} == {rule.id, note.id}
            for refused in (
                ann.packs.pin(rule.id),
                ann.packs.add("rules", "x"),
                ann.packs.delete("rules", permanent=True),
            ):
                with pytest.raises(ScopeError):
                    await refused
            assert await bob.packs.delete("mine", permanent=True) is False
            with pytest.raises(MemoryNotFound):
                await bob.packs.memory(note.id)
            assert [each.name for each in await everybody.packs.list(owner="ann")] == ["mine", "rules"]


def test_the_blocking_twin_does_the_same(tmp_path):
    with served(kernel_in(tmp_path)) as url, SyncLaminaClient(url, token=TOKEN, owner="ann") as client:
        assert client.packs.create("mine", "user").owner == "ann"
        note = client.packs.add("mine", "Ann has the key of the doors")
        (hit,) = client.packs.search("who has the key of the doors?")
        assert (hit.memory.id, hit.memory.access_count) == (note.id, 1)
        with pytest.raises(PackNotFound):
            client.packs.get("mine", owner="bob")
