"""Tenant, owner and namespace hold in every path, and compare for equality and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import pytest

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import ScopeError
from lamina.ports.memory_adapter import Capability, MemoryAdapter, Update
from lamina.testing.memory_contract.material import (
    HOSTILE,
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    fields_of,
    ids,
    listed,
    memory,
    needs,
    put,
)

__all__ = ["ScopeContract"]

Part = Literal["tenant", "owner", "namespace"]
Read = Callable[[MemoryAdapter, Scope], Awaitable[list[str]]]

STRANGERS: Final = {
    "another tenant": Scope("other", "ada", "notes"),
    "another owner": Scope("acme", "bob", "notes"),
    "another namespace": Scope("acme", "ada", "else"),
    "another owner, shared layers too": Scope("acme", "bob", "notes", include_shared=True),
}


async def _read_list(adapter: MemoryAdapter, scope: Scope) -> list[str]:
    return ids(await listed(adapter, scope))


async def _read_count(adapter: MemoryAdapter, scope: Scope) -> list[str]:
    return ["?"] * await adapter.count(scope, LIVE)


async def _read_text(adapter: MemoryAdapter, scope: Scope) -> list[str]:
    needs(adapter, Capability.TEXT)
    return ids(await by_text(adapter, "harbour", scope))


async def _read_vector(adapter: MemoryAdapter, scope: Scope) -> list[str]:
    needs(adapter, Capability.VECTOR)
    return ids(await by_vector(adapter, [1.0, 0.0], scope))


async def _read_statistics(adapter: MemoryAdapter, scope: Scope) -> list[str]:
    statistics = await adapter.term_statistics(scope, ["harbour"], NOW)
    if statistics is None:
        pytest.skip(f"{adapter.name} has no statistics of terms")
    assert statistics.documents == statistics.frequencies["harbour"]
    return ["?"] * statistics.documents


READS: Final[dict[str, Read]] = {
    "list": _read_list,
    "count": _read_count,
    "text": _read_text,
    "vector": _read_vector,
    "statistics": _read_statistics,
}


class ScopeContract:
    """Nothing outside the scope is read, counted, changed or revealed."""

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    @pytest.mark.parametrize("part", ["tenant", "owner", "namespace"])
    async def test_names_that_look_alike_are_different_names(
        self, adapter: MemoryAdapter, part: Part, read: Read
    ) -> None:
        await _put_hostile(adapter, part)
        for number, name in enumerate(HOSTILE):
            found = await read(adapter, _scope(part, name))
            assert found in ([f"m{number}"], ["?"]), name

    @pytest.mark.parametrize("part", ["tenant", "owner", "namespace"])
    async def test_an_id_is_looked_up_under_exactly_its_names(self, adapter: MemoryAdapter, part: Part) -> None:
        await _put_hostile(adapter, part)
        for number, name in enumerate(HOSTILE):
            found = [other for other in HOSTILE if await adapter.get(_scope(part, other), f"m{number}")]
            assert found == [name]

    async def test_tenants_use_the_same_id_for_memories_of_their_own(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "ours"), memory("m1", "theirs", tenant="other"))
        theirs = Scope("other")
        assert await adapter.update(MINE, "m1", {"confidence": 0.5}) is True
        assert await adapter.delete(MINE, "m1") is True
        assert await adapter.get(MINE, "m1") is None
        left = await adapter.get(theirs, "m1")
        assert left is not None
        assert (left.content, left.confidence, left.revision) == ("theirs", 1.0, 1)

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    async def test_what_a_scope_leaves_open_is_any(self, adapter: MemoryAdapter, read: Read) -> None:
        await _put_world(adapter)
        for scope, expected in {
            Scope("acme"): ["mine", "elsewhere", "bobs", "org", "globe", "org elsewhere"],
            Scope("acme", "ada"): ["mine", "elsewhere"],
            Scope("acme", None, "notes"): ["mine", "bobs", "org", "globe"],
            Scope("acme", "bob"): ["bobs", "org", "globe", "org elsewhere"],
            Scope("other"): ["theirs", "their org"],
            Scope("nobody"): [],
            Scope("acme", "nobody"): [],
        }.items():
            found = await read(adapter, scope)
            assert _same(found, expected), scope

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    async def test_shared_layers_pass_whoever_owns_them_and_only_if_asked(
        self, adapter: MemoryAdapter, read: Read
    ) -> None:
        await _put_world(adapter)
        for scope, expected in {
            Scope("acme", "ada", "notes"): ["mine"],
            Scope("acme", "ada", "notes", include_shared=True): ["mine", "org", "globe"],
            Scope("acme", "ada", include_shared=True): ["mine", "elsewhere", "org", "globe", "org elsewhere"],
            Scope("other", "ada", include_shared=True): ["their org"],
        }.items():
            found = await read(adapter, scope)
            assert _same(found, expected), scope

    async def test_an_id_in_a_shared_layer_is_reached_only_if_asked(self, adapter: MemoryAdapter) -> None:
        await _put_world(adapter)
        shared = Scope("acme", "ada", "notes", include_shared=True)
        assert [await adapter.get(MINE, id) for id in ("bobs", "org", "globe")] == [None, None, None]
        reached = [await adapter.get(shared, id) is not None for id in ("bobs", "org", "globe", "org elsewhere")]
        assert reached == [False, True, True, False]
        org = memory("x", "the harbour org", owner="bob", layer=Layer.ORGANIZATIONAL)
        assert await adapter.find_duplicate(MINE, Layer.ORGANIZATIONAL, org.digest, NOW) is None
        twin = await adapter.find_duplicate(shared, Layer.ORGANIZATIONAL, org.digest, NOW)
        assert twin is not None
        assert twin.id == "org"
        assert await adapter.update(MINE, "org", {"confidence": 0.5}) is False
        assert await adapter.update(shared, "org", {"confidence": 0.5}) is True
        assert [await adapter.delete(MINE, "org"), await adapter.delete(shared, "org")] == [False, True]

    @pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
    async def test_a_stranger_does_not_learn_of_a_memory(self, adapter: MemoryAdapter, stranger: Scope) -> None:
        secret = await _put_secret(adapter)
        anything = MemoryFilter(now=NOW, expiry=Expiry.ANY)
        assert await adapter.get(stranger, "secret") is None
        assert await listed(adapter, stranger, anything) == []
        assert await adapter.count(stranger, anything) == 0
        assert await adapter.find_duplicate(stranger, secret.layer, secret.digest, NOW) is None

    @pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
    @pytest.mark.parametrize("deed", ["update", "update_many", "touch", "delete", "delete_many", "drop_embeddings"])
    async def test_a_stranger_does_not_change_a_memory(
        self, adapter: MemoryAdapter, deed: str, stranger: Scope
    ) -> None:
        await _put_secret(adapter)
        before = await adapter.get(MINE, "secret")
        changes: dict[str, Any] = {"content": "taken"}
        deeds: dict[str, Callable[[], Awaitable[object]]] = {
            "update": lambda: adapter.update(stranger, "secret", changes),
            "update_many": lambda: adapter.update_many(stranger, [Update("secret", changes)]),
            "touch": lambda: adapter.touch(stranger, ["secret"], NOW),
            "delete": lambda: adapter.delete(stranger, "secret"),
            "delete_many": lambda: adapter.delete_many(stranger, ["secret"]),
            "drop_embeddings": lambda: adapter.drop_embeddings(stranger),
        }
        assert await deeds[deed]() in (False, [False], None, 0)
        after = await adapter.get(MINE, "secret")
        assert before is not None
        assert after is not None
        assert fields_of(after) == fields_of(before)

    @pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
    async def test_a_stranger_does_not_learn_what_a_memory_was(self, adapter: MemoryAdapter, stranger: Scope) -> None:
        needs(adapter, Capability.HISTORY)
        await _put_secret(adapter)
        await adapter.update(MINE, "secret", {"content": "another secret"})
        assert len(await adapter.history(MINE, "secret")) == 1
        assert await adapter.history(stranger, "secret") == []

    @pytest.mark.parametrize("part", ["owner", "namespace"])
    async def test_who_takes_a_memory_over_does_not_learn_what_it_was(self, adapter: MemoryAdapter, part: str) -> None:
        needs(adapter, Capability.HISTORY)
        await _put_secret(adapter)
        await adapter.update(MINE, "secret", {"content": "another secret"})
        taken = memory("secret", "mine now", **{part: "else"})
        await adapter.store(Scope("acme"), taken)
        new = Scope("acme", taken.owner, taken.namespace)
        assert await adapter.history(new, "secret") == []
        assert [each.content for each in await adapter.history(Scope("acme"), "secret")] == [
            "the harbour secret",
            "another secret",
        ]
        await adapter.update(new, "secret", {"content": "mine still"})
        assert [each.content for each in await adapter.history(new, "secret")] == ["mine now"]

    @pytest.mark.parametrize("many", [False, True])
    async def test_nobody_stores_outside_the_scope(self, adapter: MemoryAdapter, many: bool) -> None:
        await put(adapter, memory("twin", "the twin", owner="bob"))
        for entry in (
            memory(content="the twin", owner="bob"),
            memory(content="the twin", tenant="other"),
            memory(content="the twin", namespace="else"),
            memory(content="the twin", owner="bob", layer=Layer.GLOBAL),
        ):
            with pytest.raises(ScopeError):
                await _store(adapter, MINE, entry, many=many)
            assert await adapter.get(Scope(entry.tenant), "m1") is None

    @pytest.mark.parametrize("many", [False, True])
    async def test_nobody_replaces_a_memory_outside_the_scope(self, adapter: MemoryAdapter, many: bool) -> None:
        await _put_secret(adapter)
        before = await adapter.get(MINE, "secret")
        for taken in (memory("secret", "taken", owner="bob"), memory("secret", "taken", namespace="else")):
            with pytest.raises(ScopeError):
                await _store(adapter, Scope("acme", taken.owner, taken.namespace), taken, many=many)
        assert await adapter.get(MINE, "secret") == before

    async def test_nobody_moves_a_memory_out_of_the_scope(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(owner="bob", layer=Layer.GLOBAL))
        shared = Scope("acme", "ada", "notes", include_shared=True)
        moved = {"layer": Layer.LONGTERM}
        with pytest.raises(ScopeError):
            await adapter.update(shared, "m1", moved)
        with pytest.raises(ScopeError):
            await adapter.update_many(shared, [Update("m1", moved)])
        assert ids(await listed(adapter, shared)) == ["m1"]
        assert await adapter.update(shared, "m1", {"layer": Layer.ORGANIZATIONAL}) is True

    async def test_a_twin_is_one_of_the_same_owner_namespace_and_layer(self, adapter: MemoryAdapter) -> None:
        everything = Scope("acme")
        one = memory("m1", "said once")
        others = [
            memory("m2", "said once", owner="bob"),
            memory("m3", "said once", namespace="else"),
            memory("m4", "said once", layer=Layer.SESSION),
        ]
        twins = await adapter.store_many(everything, [one, *others], if_new=True)
        assert twins == [None, None, None, None]
        again = [each.replace(id=f"{each.id} again") for each in (one, *others)]
        assert ids(each for each in await adapter.store_many(everything, again, if_new=True) if each) == [
            "m1",
            "m2",
            "m3",
            "m4",
        ]

    async def test_embeddings_are_dropped_in_the_scope_only(self, adapter: MemoryAdapter) -> None:
        await _put_world(adapter)
        assert await adapter.drop_embeddings(Scope("acme", "ada")) == 2
        with_vector = MemoryFilter(now=NOW, has_embedding=True)
        assert ids(await listed(adapter, Scope("acme"), with_vector)) == ["bobs", "org", "globe", "org elsewhere"]
        assert await adapter.count(Scope("other"), with_vector) == 2


def _named(part: Part, name: str, id: str) -> MemoryEntry:
    return memory(id, "the harbour lamp", embedding=[1.0, 0.0], **{part: name})


async def _put_hostile(adapter: MemoryAdapter, part: Part) -> None:
    """One memory under each of the names, in one batch where they are one tenant's."""
    entries = [_named(part, name, f"m{number}") for number, name in enumerate(HOSTILE)]
    if part == "tenant":
        await put(adapter, *entries)
    else:
        await adapter.store_many(Scope("acme"), entries)


def _scope(part: Part, name: str) -> Scope:
    """A scope that this part alone decides."""
    match part:
        case "tenant":
            return Scope(name)
        case "owner":
            return Scope("acme", owner=name)
        case _:
            return Scope("acme", namespace=name)


def _same(found: list[str], expected: list[str]) -> bool:
    """Whether these were found, in any order; a count stands for as many."""
    return len(found) == len(expected) and (set(found) <= {"?"} or set(found) == set(expected))


async def _put_world(adapter: MemoryAdapter) -> None:
    """Two owners and three layers in two namespaces, and another tenant with the like."""
    organizational, globe = Layer.ORGANIZATIONAL, Layer.GLOBAL
    for entry in (
        memory("mine", "the harbour mine"),
        memory("elsewhere", "the harbour elsewhere", namespace="else"),
        memory("bobs", "the harbour bobs", owner="bob"),
        memory("org", "the harbour org", owner="bob", layer=organizational),
        memory("globe", "the harbour globe", owner="bob", layer=globe),
        memory("org elsewhere", "the harbour org elsewhere", owner="bob", namespace="else", layer=organizational),
        memory("theirs", "the harbour theirs", tenant="other", owner="eve"),
        memory("their org", "the harbour of their org", tenant="other", owner="eve", layer=organizational),
    ):
        await put(adapter, entry.replace(embedding=[1.0, 0.0]))


async def _put_secret(adapter: MemoryAdapter) -> MemoryEntry:
    secret = memory("secret", "the harbour secret", embedding=[1.0, 0.0], tags=["red"])
    await put(adapter, secret)
    return secret


async def _store(adapter: MemoryAdapter, scope: Scope, entry: MemoryEntry, *, many: bool) -> None:
    if many:
        await adapter.store_many(scope, [entry], if_new=True)
    else:
        await adapter.store(scope, entry)
