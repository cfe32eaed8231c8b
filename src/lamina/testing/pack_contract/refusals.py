"""What is refused, with a typed error that names the field, and nothing written."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

import pytest

from lamina.domain.pack import PackStatus, PackType, Relationship
from lamina.domain.pack_query import DuePlace, PackQuery
from lamina.domain.storable_pack import MAX_PACK_CONTENT_BYTES, MAX_RELATIONSHIPS, MAX_TEXT_BYTES
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.pack_store import PackStore
from lamina.testing.pack_contract.material import NOW, TENANT, add, all_of, get, memory, pack, packs_of, with_pack

__all__ = ["RefusalContract"]

REFUSED: Final = (InvalidInput, InvalidType)
BAD: Final[Any] = None
Call: TypeAlias = Callable[[], Awaitable[object]]
NAIVE: Final = datetime(2031, 3, 1)  # noqa: DTZ001 - what is refused

BAD_PACKS: Final[dict[str, tuple[Any, ...]]] = {
    "tenant": ("", " ", None, 1, "a\x00", "x" * 513),
    "id": ("", None, "\ud800"),
    "name": ("", "A", "_a", "-a", "a b", "ä", "a" * 64, "a\n", None, 1, "ａ"),
    "type": ("project", None, "team"),
    "owner": ("", " ", 1),
    "status": ("active", None),
    "description": (None, 1, b"x", "x" * (MAX_TEXT_BYTES + 1)),
    "tags": (None, "ab", [1], [""], ["x" * 513], ["t"] * 257),
    "metadata": (None, [], {1: 2}, {"a": math.nan}, {"a": {1, 2}}, {"a\x00": 1, "a\ud800": 2}),
    "decay": (1, "1d"),
    "created_at": (None, "now", NAIVE),
    "updated_at": (None, NAIVE),
    "embedding": ([], [math.nan], [math.inf], [1e39], ["a"], 1),
    "fingerprint": (1, ""),
}

BAD_MEMORIES: Final[dict[str, tuple[Any, ...]]] = {
    "tenant": ("", None, 1),
    "id": ("", None, "a\x00", 1),
    "pack_id": ("", None, 1),
    "content": ("", " \n\u200b", None, 1, b"x", "x" * (MAX_PACK_CONTENT_BYTES + 1), "\U0001f600" * 262_145),
    "memory_type": ("fact", None),
    "name": ("", " ", 1, "a\x00", "x" * 513),
    "source": ("conversation", None),
    "confidence": (True, None, "1", -0.1, 1.1, math.nan, math.inf),
    "provenance": (1, b"x", "x" * (MAX_TEXT_BYTES + 1)),
    "tags": (None, "ab", [1], [""], ["t"] * 257),
    "metadata": (None, {1: 2}, {"a": math.inf}, {"a": object()}),
    "relationships": (
        None,
        "ab",
        ["m0"],
        [Relationship("", "m0")],
        [Relationship("x", "")],
        [Relationship("x", "m1")],
        [Relationship(1, "m0")],  # type: ignore[arg-type]  # what is refused
        [Relationship(f"x{number}", "m0") for number in range(MAX_RELATIONSHIPS + 1)],
    ),
    "superseded_by": ("", 1, "m1"),
    "tier": ("full", None),
    "created_at": (None, NAIVE),
    "last_accessed": (NAIVE, 1),
    "pinned_at": (NAIVE, True),
    "expires_at": (NAIVE, "soon"),
    "is_deleted": (None, 1, "no"),
}


class RefusalContract:
    """Bad input."""

    @pytest.mark.parametrize("field", BAD_PACKS)
    async def test_a_pack_that_cannot_be_kept_is_refused(self, store: PackStore, field: str) -> None:
        await store.create_pack(pack("p0"))
        for value in BAD_PACKS[field]:
            fields: dict[str, Any] = {"fingerprint": "f", "embedding": [1.0], field: value}
            with pytest.raises(REFUSED, match=field):
                await store.create_pack(pack(**fields))
            with pytest.raises(REFUSED, match=field):
                await store.save_pack(pack(**{"id": "p0", **fields}), expected_revision=1)
        assert await store.list_packs(PackQuery(tenant=TENANT)) == [pack("p0")]

    @pytest.mark.parametrize("type", [PackType.USER, PackType.SESSION])
    async def test_a_pack_of_an_owner_needs_one(self, store: PackStore, type: PackType) -> None:
        with pytest.raises(InvalidInput, match="owner"):
            await store.create_pack(pack(type=type))
        assert await packs_of(store, any_owner=True) == []

    async def test_a_vector_needs_the_name_of_its_model(self, store: PackStore) -> None:
        with pytest.raises(InvalidInput, match="fingerprint"):
            await store.create_pack(pack(embedding=[1.0]))

    @pytest.mark.parametrize("field", BAD_MEMORIES)
    async def test_a_memory_that_cannot_be_kept_is_refused(self, store: PackStore, field: str) -> None:
        await with_pack(store, memory("m0"))
        for value in BAD_MEMORIES[field]:
            bad = memory("m1").replace(**{field: value})
            with pytest.raises(REFUSED, match=field):
                await add(store, memory("m2", name="n"), bad)
            if field not in {"id", "tenant", "superseded_by"} and (field, value) != ("content", ""):
                other = bad.replace(id="m0", relationships=bad.relationships if field == "relationships" else [])
                if field != "relationships" or value != [Relationship("x", "m1")]:
                    with pytest.raises(REFUSED, match=field):
                        await store.save_memory(other, expected_revision=1, now=NOW)
        assert await store.find_memories(all_of(include_superseded=True)) == [memory("m0", tier_since=NOW)]

    async def test_the_memories_of_a_call_are_of_one_tenant(self, store: PackStore) -> None:
        await with_pack(store)
        await store.create_pack(pack(tenant="other"))
        with pytest.raises(InvalidInput, match="tenant"):
            await add(store, memory("m1"), memory("m2", tenant="other"))
        assert await store.get_memories(TENANT, ["m1"]) == []

    @pytest.mark.parametrize("bad", [None, "m1", 1, [1], [None], {"a": 1}])
    async def test_memories_come_as_a_list(self, store: PackStore, bad: Any) -> None:
        with pytest.raises(REFUSED):
            await store.add_memories(bad, now=NOW)

    async def test_calls_refuse_what_they_cannot_take(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        calls = [*_calls_on_packs(store), *_calls_that_read(store), *_calls_that_change(store)]
        for number, call in enumerate(calls):
            with pytest.raises(REFUSED):
                await call()
                pytest.fail(f"call {number} was taken")
        assert await store.list_packs(PackQuery(tenant=TENANT, statuses=frozenset(PackStatus))) == [pack()]
        assert await get(store, "m1") == memory("m1", tier_since=NOW)


def _calls_on_packs(store: PackStore) -> list[Call]:
    return [
        lambda: store.create_pack(BAD),
        lambda: store.get_packs("", ["p1"]),
        lambda: store.get_packs(TENANT, "p1"),
        lambda: store.get_packs(TENANT, BAD),
        lambda: store.find_pack(TENANT, "", owner=None),
        lambda: store.find_pack(TENANT, "x", owner=""),
        lambda: store.list_packs(BAD),
        lambda: store.list_packs(PackQuery(tenant="")),
        lambda: store.list_packs(PackQuery(tenant=TENANT, owner="")),
        lambda: store.list_packs(PackQuery(tenant=TENANT, any_owner=BAD)),
        lambda: store.list_packs(PackQuery(tenant=TENANT, type="project")),  # type: ignore[arg-type]
        lambda: store.list_packs(PackQuery(tenant=TENANT, statuses=frozenset({"active"}))),  # type: ignore[arg-type]
        lambda: store.list_packs(PackQuery(tenant=TENANT, statuses=BAD)),
        lambda: store.list_packs(PackQuery(tenant=TENANT, tag=1)),  # type: ignore[arg-type]
        lambda: store.list_packs(PackQuery(tenant=TENANT), limit=-1),
        lambda: store.list_packs(PackQuery(tenant=TENANT), offset=-1),
        lambda: store.list_packs(PackQuery(tenant=TENANT), limit=True),
        lambda: store.pack_faces(BAD, limit=1),
        lambda: store.pack_faces(PackQuery(tenant=TENANT), limit=-1),
        lambda: store.pack_faces(PackQuery(tenant=TENANT), limit=1, after=""),
        lambda: store.count_packs(PackQuery(tenant=BAD)),
        lambda: store.save_pack(pack(), expected_revision=0),
        lambda: store.save_pack(pack(), expected_revision=BAD),
        lambda: store.purge_pack(TENANT, ""),
        lambda: store.purge_pack(BAD, "p1"),
    ]


def _calls_that_read(store: PackStore) -> list[Call]:
    return [
        lambda: store.get_memories(TENANT, "m1"),
        lambda: store.get_memories(BAD, ["m1"]),
        lambda: store.find_memories(BAD),
        lambda: store.find_memories(all_of(tenant="")),
        lambda: store.find_memories(all_of(pack_ids="p1")),
        lambda: store.find_memories(all_of(tags="x")),
        lambda: store.find_memories(all_of(name="")),
        lambda: store.find_memories(all_of(memory_type="fact")),
        lambda: store.find_memories(all_of(min_confidence=math.nan)),
        lambda: store.find_memories(all_of(min_confidence=True)),
        lambda: store.find_memories(all_of(tiers=["full"])),
        lambda: store.find_memories(all_of(include_superseded=BAD)),
        lambda: store.find_memories(all_of(), order="newest"),  # type: ignore[arg-type]
        lambda: store.find_memories(all_of(), limit=-1),
        lambda: store.find_memories(all_of(), offset=2**64),
        lambda: store.count_memories(all_of(tenant=BAD)),
        lambda: store.statistics(TENANT, ""),
        lambda: store.due(TENANT, until=NAIVE, limit=1),
        lambda: store.due(TENANT, until=NOW, limit=BAD),
        lambda: store.due(TENANT, until=NOW, limit=-1),
        lambda: store.due(TENANT, until=NOW, limit=1, after=("m1", NOW)),  # type: ignore[arg-type]
        lambda: store.due(TENANT, until=NOW, limit=1, after=DuePlace(NAIVE, "m1")),
        lambda: store.due(TENANT, until=NOW, limit=1, after=DuePlace(NOW, "")),
        lambda: store.due(TENANT, until=NOW, limit=1, pack_id=""),
        lambda: store.unprojected(TENANT, limit=-1),
        lambda: store.unprojected("", limit=1),
    ]


def _calls_that_change(store: PackStore) -> list[Call]:
    return [
        lambda: store.add_memories([memory("m2")], now=NAIVE),
        lambda: store.save_memory(BAD, expected_revision=1, now=NOW),
        lambda: store.save_memory(memory("m1"), expected_revision=True, now=NOW),
        lambda: store.save_memory(memory("m1"), expected_revision=1, now=NAIVE),
        lambda: store.supersede(TENANT, "", by="m1", now=NOW),
        lambda: store.supersede(TENANT, "m1", by=BAD, now=NOW),
        lambda: store.supersede(TENANT, "m1", by="m1", now=NAIVE),
        lambda: store.delete_memory(TENANT, BAD),
        lambda: store.touch(TENANT, "m1", now=NOW),
        lambda: store.touch(TENANT, ["m1"], now=NAIVE),
        lambda: store.set_tier(TENANT, "m1", "summary", expected_revision=1, now=NOW),  # type: ignore[arg-type]
        lambda: store.set_tier(TENANT, "m1", BAD, expected_revision=1, now=NOW),
        lambda: store.mark_projected(TENANT, BAD),
        lambda: store.mark_projected(TENANT, {"m1": 0}),
        lambda: store.mark_projected(TENANT, {"m1": True}),
    ]
