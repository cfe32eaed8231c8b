"""What cannot be kept is refused by name, and nothing is written; what is not declared is refused too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pytest

from lamina.domain.filters import Where
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_METADATA_DEPTH, MAX_TAGS
from lamina.errors import InvalidInput, InvalidType, ScopeError, Unsupported
from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    by_text,
    by_vector,
    fields_of,
    ids,
    listed,
    memory,
    put,
    where,
)

__all__ = ["RefusalContract"]

UNCLEAN: Final = {"NUL": "pay\x00roll", "high surrogate": "a\ud83d", "low surrogate": "\udc00b", "blank": " \n\t"}
TEXT_FIELDS: Final = ("id", "content", "tags", "owner", "namespace", "source", "superseded_by", "derived_from")
LISTS: Final = frozenset({"tags", "derived_from"})

ODD_METADATA: Final[dict[str, Any]] = {
    "65 bits": 2**63,
    "71 bits": 2**70,
    "65 bits, negative": -(2**63) - 1,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "datetime": datetime(2026, 3, 1, tzinfo=UTC),
    "Decimal": Decimal("1.5"),
    "set": {1},
    "tuple": (1,),
    "bytes": b"x",
    "object": object(),
    "complex": 1j,
    "a number as key": {1: "x"},
    "None as key": {None: "x"},
    "NUL": "pay\x00roll",
    "surrogate": "\ud83d",
    "NUL in a key": {"pay\x00roll": 1},
    "surrogate in a key": {"\ud83d": 1},
    "too long": "x" * MAX_METADATA_BYTES,
}

ODD_FIELDS: Final[dict[str, list[Any]]] = {
    "content": [None, b"bytes", "\u200b\ufeff", "x" * (MAX_CONTENT_BYTES + 1), "é" * (MAX_CONTENT_BYTES // 2 + 1)],
    "tags": ["red", [1], ["x"] * (MAX_TAGS + 1)],
    "metadata": [None, [("a", 1)]],
    "layer": ["longterm"],
    "trust": ["trusted"],
    "relevance": [1.1, -0.1, float("nan"), True, "1"],
    "base_relevance": [2],
    "confidence": [-1],
    "ttl": [0, 0.0009, -1, float("inf"), True],
    "updated_at": [datetime(2026, 3, 1), "2026-03-01", None],  # noqa: DTZ001 - what is refused
    "expires_at": [datetime(2026, 3, 1)],  # noqa: DTZ001 - what is refused
    "last_accessed_at": [1.0],
    "occurred_at": [datetime(2026, 3, 1)],  # noqa: DTZ001 - what is refused
    "valid_until": [datetime(2026, 3, 1)],  # noqa: DTZ001 - what is refused
    "embedding": [[], [1.0, float("nan")], [float("inf"), 1.0], [1e39, 1.0], ["1", "0"], 1.0],
    "access_count": [-1, 2**53 + 1, 1.5],
    "derived_from": ["m1"],
    "source": [1],
    "superseded_by": [""],
}
ODD_UPDATES: Final[dict[str, list[Any]]] = {
    "content": ["a\ud83d"],
    "tags": [["pay\x00roll"]],
    "metadata": [{"odd": float("nan")}],
}

Call = Callable[[MemoryAdapter], Awaitable[object]]

SPEAKS_OF_KIND: Final = where(Where("kind").eq("fact"))
CALLS: Final[dict[Capability, list[Call]]] = {
    Capability.VECTOR: [lambda adapter: by_vector(adapter, [1.0, 0.0])],
    Capability.TEXT: [lambda adapter: by_text(adapter, "harbour"), lambda adapter: by_text(adapter, "***")],
    Capability.FILTER: [
        lambda adapter: listed(adapter, MINE, SPEAKS_OF_KIND),
        lambda adapter: adapter.count(MINE, SPEAKS_OF_KIND),
        lambda adapter: listed(adapter, Scope("nobody"), SPEAKS_OF_KIND),
    ],
    Capability.HISTORY: [lambda adapter: adapter.history(MINE, "m1"), lambda adapter: adapter.history(MINE, "none")],
}
"""The calls that need each capability. The others say how well a call is done, and have none of their own."""


class RefusalContract:
    """Bad input is refused by name with nothing written, and so is what is not declared."""

    @pytest.mark.parametrize("field", TEXT_FIELDS)
    async def test_unclean_text_is_refused_by_name(self, adapter: MemoryAdapter, field: str) -> None:
        values = [["fine", text] if field in LISTS else text for text in UNCLEAN.values()]
        await _check_refused(adapter, field, *({field: value} for value in values))

    @pytest.mark.parametrize("text", UNCLEAN.values(), ids=UNCLEAN)
    async def test_an_unclean_tenant_is_refused(self, adapter: MemoryAdapter, text: str) -> None:
        with pytest.raises((InvalidInput, ScopeError)):
            await adapter.store(Scope("acme"), memory(tenant=text))
        assert await adapter.count(Scope("acme"), LIVE) == 0

    @pytest.mark.parametrize("value", ODD_METADATA.values(), ids=ODD_METADATA)
    async def test_odd_metadata_is_refused_by_name(self, adapter: MemoryAdapter, value: object) -> None:
        """At the top, in a list and in a dict."""
        wrapped = [value, [1, value], {"a": {"b": value}}]
        await _check_refused(adapter, "metadata", *({"metadata": {"fine": 1, "odd": each}} for each in wrapped))

    async def test_metadata_that_is_too_deep_or_holds_itself_is_refused(self, adapter: MemoryAdapter) -> None:
        deep: dict[str, Any] = {}
        for _ in range(MAX_METADATA_DEPTH + 1):
            deep = {"a": deep}
        loop: dict[str, Any] = {}
        loop["a"] = [loop]
        await _check_refused(adapter, "metadata", {"metadata": deep}, {"metadata": loop})

    @pytest.mark.parametrize("field", ODD_FIELDS)
    async def test_odd_fields_are_refused_by_name(self, adapter: MemoryAdapter, field: str) -> None:
        await _check_refused(adapter, field, *({field: value} for value in ODD_FIELDS[field]))

    @pytest.mark.parametrize("field", ODD_FIELDS)
    async def test_an_update_refuses_what_a_store_would(self, adapter: MemoryAdapter, field: str) -> None:
        await put(adapter, memory())
        before = await adapter.get(MINE, "m1")
        assert before is not None
        for value in (*ODD_FIELDS[field], *ODD_UPDATES.get(field, ())):
            refused = await _refused_field(adapter.update(MINE, "m1", {"confidence": 0.5, field: value}))
            assert refused == field, _shown(value)
            after = await adapter.get(MINE, "m1")
            assert after is not None
            assert fields_of(after) == fields_of(before), _shown(value)

    @pytest.mark.parametrize("text", UNCLEAN.values(), ids=UNCLEAN)
    async def test_an_id_that_cannot_be_is_not_found(self, adapter: MemoryAdapter, text: str) -> None:
        await put(adapter, memory())
        assert await adapter.get(MINE, text) is None
        assert await adapter.update(MINE, text, {"content": "changed"}) is False
        assert await adapter.delete(MINE, text) is False
        assert await adapter.delete_many(MINE, [text, "m1"]) == [False, True]

    @pytest.mark.parametrize("capability", CALLS)
    async def test_what_is_not_declared_is_refused(self, adapter: MemoryAdapter, capability: Capability) -> None:
        await put(adapter, memory(embedding=[1.0, 0.0], metadata={"kind": "fact"}))
        for call in CALLS[capability]:
            if capability in adapter.capabilities:
                await call(adapter)
                continue
            with pytest.raises(Unsupported) as refusal:
                await call(adapter)
            assert refusal.value.capability == capability

    async def test_a_search_with_metadata_filters_is_refused_if_filters_are(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(embedding=[1.0, 0.0], metadata={"kind": "fact"}))
        searches: dict[Capability, Call] = {
            Capability.VECTOR: lambda adapter: by_vector(adapter, [1.0, 0.0], MINE, SPEAKS_OF_KIND),
            Capability.TEXT: lambda adapter: by_text(adapter, "harbour", MINE, SPEAKS_OF_KIND),
        }
        for capability, search in searches.items():
            if adapter.capabilities >= {capability, Capability.FILTER}:
                assert await search(adapter)
                continue
            with pytest.raises(Unsupported):
                await search(adapter)


async def _check_refused(adapter: MemoryAdapter, field: str, *odd: dict[str, Any]) -> None:
    """Both ways to store refuse such entries and name the field, and the store stays as it was, and works."""
    await put(adapter, memory("before"))
    scope = Scope("acme")
    for fields in odd:
        for number, store in enumerate((adapter.store, _store_if_new(adapter))):
            assert await _refused_field(store(scope, memory(**fields))) == field, (number, _shown(fields))
            assert ids(await listed(adapter, scope)) == ["before"], (number, _shown(fields))
    await put(adapter, memory("after"))
    assert await adapter.count(scope, LIVE) == 2
    await adapter.delete_many(scope, ["before", "after"])


def _store_if_new(adapter: MemoryAdapter) -> Callable[[Scope, MemoryEntry], Awaitable[object]]:
    return lambda scope, entry: adapter.store_many(scope, [entry], if_new=True)


async def _refused_field(call: Awaitable[object]) -> str | None:
    """The field that the refusal names; None if there was no refusal."""
    try:
        await call
    except (InvalidInput, InvalidType) as refusal:
        return refusal.field
    return None


def _shown(value: object) -> str:
    return repr(value)[:100]
