"""What is stored comes back: every field, every text, every kind of metadata."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.scope import Scope
from lamina.domain.validation import MAX_CONTENT_BYTES, MAX_METADATA_DEPTH, MAX_TAGS
from lamina.ports.memory_adapter import Capability, MemoryAdapter, Order
from lamina.testing.memory_contract.material import (
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
    second,
    typed,
)

__all__ = ["TEXTS", "RoundTripContract", "full"]

TEXTS: Final = {
    "white space": "  two spaces, a tab\t, a line feed\n, a carriage return\r\nand a trailing one ",
    "controls": "bell \x07 escape \x1b unit \x1f delete \x7f next line \x85",
    "separators": "line\u2028paragraph\u2029no-break\u00a0zero\u200bwidth\ufeffmark",
    "NFC": "Nguyễn đến lúc ba giờ",
    "NFD": "Nguye\u0302\u0303n đe\u0302\u0301n lu\u0301c ba giơ\u0300",
    "Chinese": "会议改到周五, 路線図は灯台の隣",
    "Thai": "น้ำแข็งอยู่ในตู้",
    "Hindi": "किताब मेज़ पर है",
    "Korean": "오늘 회의는 세시로 옮겼다",
    "right to left": "שלום \u202eabc\u202c کتاب روی میز \u2067x\u2069",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿 ❤️ 🇹🇷",
    "beyond the BMP": "𝔘𝔫𝔦 𐍈 \U0010ffff",
    "non-characters": "\ufffe \uffff \ue000",
    "case": "straße STRASSE İstanbul ıI ſ ΣΊΣΥΦΟΣ",
    "quotes": "it's \"quoted\" `so` \\ and ''twice'' \"\"",
    "statements": "'; DROP TABLE memories; -- $1 %s ?1 :name {x} ${y} \\0",
    "control tokens": "<|endoftext|> <|im_start|> </s> [INST]",
    "markup": "<b>&amp;</b> # note\n| a | b |",
    "JSON": '{"a": [1, null]}',
    "a number": "00123",
}

METADATA: Final[dict[str, Any]] = {
    "whole numbers": [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "floating point": [0.0, -0.0, 1.0, 0.1, 1e308, 5e-324, -2.5e-7, 1e15, 123456789.0],
    "bool is no number": [True, 1, 1.0, False, 0, 0.0],
    "nothing": {"null": None, "list": [], "dict": {}, "text": "", "zero": 0},
    "deep": {"a": {"b": [{"c": [[], [{}], [None]]}]}},
    "keys": {"": 1, "a.b": 2, "$": 3, "$.a": 4, "[0]": 5, 'a"b': 6, "a'b": 7, "a b": 8, "-": 9, "\\": 10, "#": 11},
    "keys that look alike": {"a": 1, "A": 2, "ａ": 3, "é": 4, "e\u0301": 5, "a ": 6},
    "type tags": [
        {"__type__": "datetime", "value": "2026-03-01T09:00:00Z"},
        {"$date": 1},
        {"py/object": "builtins.list"},
        {"type": "Decimal", "value": "1"},
        {"__lamina__": 1},
    ],
    "texts like others": ["null", "true", "1", "1.0", "2026-03-01", "2026-03-01T09:00:00+00:00", "NaN", "[]"],
    "texts": list(TEXTS.values()),
}


def full() -> MemoryEntry:
    """An entry that has something of its own in every field."""
    return MemoryEntry(
        id="m:1/ä ",
        content="the harbour lamp is lit",
        created_at=second(-86_400.000001),
        updated_at=second(-3_600.000002),
        layer=Layer.SESSION,
        tenant="acme",
        owner="ada",
        namespace="notes",
        tags=["red", "Red", "sub/tag", "with space", "x,y", '"q"', "red"],
        metadata={"status": "open", "nested": {"list": [1, 2.5, "x", None, True, {"deep": []}]}},
        relevance=0.123456789012345,
        base_relevance=0.987654321098765,
        confidence=0.333333333333333,
        ttl=3_600.5,
        expires_at=second(0.000003),
        embedding=[0.5, -0.25, 0.125],
        last_accessed_at=second(-0.000004),
        access_count=7,
        occurred_at=datetime(1969, 7, 20, 20, 17, 40, 999_999, tzinfo=UTC),
        valid_until=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        superseded_by="m2",
        source="conversation:ticket-7",
        trust=Trust.UNTRUSTED,
        derived_from=["m3", "m0"],
    )


class RoundTripContract:
    """What is stored comes back, whichever way it is read."""

    async def test_every_field_comes_back(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full())
        back = await adapter.get(MINE, full().id)
        assert back is not None
        assert fields_of(back) == fields_of(full())

    async def test_the_defaults_come_back(self, adapter: MemoryAdapter) -> None:
        entry = MemoryEntry(id="m1", content="x", created_at=NOW, updated_at=NOW)
        await put(adapter, entry)
        back = await adapter.get(Scope("default"), "m1")
        assert back is not None
        assert fields_of(back) == fields_of(entry)

    async def test_kinds_are_the_domains_own(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full())
        back = await adapter.get(MINE, full().id)
        assert back is not None
        assert (type(back.layer), type(back.trust)) == (Layer, Trust)
        assert (type(back.tags), type(back.derived_from), type(back.metadata)) == (list, list, dict)
        assert (type(back.access_count), type(back.seq), type(back.revision)) == (int, int, int)

    async def test_a_list_has_every_field_and_the_vector_only_if_asked(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full())
        [plain] = await listed(adapter)
        [whole] = await listed(adapter, include_embeddings=True)
        assert plain.embedding is None
        assert fields_of(plain, "embedding") == fields_of(full(), "embedding")
        assert fields_of(whole) == fields_of(full())

    async def test_a_vector_search_has_every_field_and_the_vector_only_if_asked(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await put(adapter, full())
        [plain] = await by_vector(adapter, [1, 0, 0])
        [whole] = await by_vector(adapter, [1, 0, 0], include_embeddings=True)
        assert plain.entry.embedding is None
        assert fields_of(plain.entry, "embedding") == fields_of(full(), "embedding")
        assert fields_of(whole.entry) == fields_of(full())

    async def test_a_text_search_has_every_field_and_the_vector_only_if_asked(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, full())
        [plain] = await by_text(adapter, "harbour")
        [whole] = await by_text(adapter, "harbour", include_embeddings=True)
        assert plain.entry.embedding is None
        assert fields_of(plain.entry, "embedding") == fields_of(full(), "embedding")
        assert fields_of(whole.entry) == fields_of(full())

    async def test_the_first_and_the_last_instants_come_back_and_are_told_apart(self, adapter: MemoryAdapter) -> None:
        first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        tick = timedelta(microseconds=1)
        instants = {"m1": first, "m2": first + tick, "m3": last - tick, "m4": last}
        names = ("created_at", "updated_at", "last_accessed_at", "occurred_at", "valid_until")
        entries = [memory(id, expires_at=last).replace(**dict.fromkeys(names, at)) for id, at in instants.items()]
        await adapter.store_many(MINE, entries)
        found = await listed(adapter)
        assert [fields_of(each) for each in found] == [fields_of(each) for each in entries]
        newest = await listed(adapter, order=Order.RELEVANCE, limit=10)
        assert ids(newest) == ["m4", "m3", "m2", "m1"]
        assert ids(await listed(adapter, MINE, MemoryFilter(now=first, created_before=last))) == ["m1", "m2", "m3"]
        assert ids(await listed(adapter, MINE, MemoryFilter(now=last - tick, updated_before=first + tick))) == ["m1"]
        assert await adapter.count(MINE, MemoryFilter(now=last)) == 0

    async def test_times_come_back_in_utc(self, adapter: MemoryAdapter) -> None:
        there = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))
        times: dict[str, Any] = {
            "last_accessed_at": there,
            "expires_at": there,
            "occurred_at": there,
            "valid_until": there,
        }
        await put(adapter, memory(created_at=there, updated_at=there, **times))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        for name in ("created_at", "updated_at", *times):
            assert (getattr(back, name), getattr(back, name).utcoffset()) == (NOW, timedelta(0)), name

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_text_comes_back_code_point_by_code_point(self, adapter: MemoryAdapter, text: str) -> None:
        await put(adapter, memory(content=text, tags=[text], source=text, metadata={text: text}))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert [back.content, back.tags, back.source, back.metadata] == [text, [text], text, {text: text}]

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_an_id_is_what_it_is_code_point_by_code_point(self, adapter: MemoryAdapter, text: str) -> None:
        await put(adapter, memory(text), memory(f"{text}."), memory(text.swapcase() + "x"))
        back = await adapter.get(MINE, text)
        assert back is not None
        assert back.id == text
        assert await adapter.update(MINE, text, {"content": "changed"}) is True
        assert [each.content == "changed" for each in await listed(adapter)] == [True, False, False]
        assert await adapter.delete(MINE, text) is True
        assert await adapter.count(MINE, LIVE) == 2

    @pytest.mark.parametrize("value", METADATA.values(), ids=METADATA)
    async def test_metadata_comes_back_with_its_types(self, adapter: MemoryAdapter, value: object) -> None:
        await put(adapter, memory(metadata={"value": value, "beside": 1}))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert typed(back.metadata) == typed({"value": value, "beside": 1})

    async def test_long_metadata_comes_back(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(metadata={"value": "x" * 200_000, "beside": 1}))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.metadata == {"value": "x" * 200_000, "beside": 1}

    async def test_metadata_of_the_greatest_depth_comes_back(self, adapter: MemoryAdapter) -> None:
        deep: dict[str, Any] = {}
        for _ in range(MAX_METADATA_DEPTH - 1):
            deep = {"a": deep}
        await put(adapter, memory(metadata=deep))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.metadata == deep

    async def test_the_greatest_number_of_tags_comes_back_in_order(self, adapter: MemoryAdapter) -> None:
        tags = [f"tag {number % 251}" for number in range(MAX_TAGS)]
        await put(adapter, memory(tags=tags))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.tags == tags

    async def test_the_longest_content_comes_back(self, adapter: MemoryAdapter) -> None:
        content = "lamp " * (MAX_CONTENT_BYTES // 5) + "x" * (MAX_CONTENT_BYTES % 5)
        await put(adapter, memory(content=content))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.content == content

    async def test_what_is_stored_is_a_copy(self, adapter: MemoryAdapter) -> None:
        entry = memory(tags=["a"], metadata={"a": {"b": [1]}}, derived_from=["x"], embedding=[1.0, 0.0])
        before = fields_of(memory(tags=["a"], metadata={"a": {"b": [1]}}, derived_from=["x"], embedding=[1.0, 0.0]))
        await put(adapter, entry)
        assert (fields_of(entry), entry.seq) == (before, 0)
        entry.tags.append("b")
        entry.metadata["a"]["b"].append(2)
        entry.derived_from.append("y")
        entry.embedding[0] = 9.0  # type: ignore[index] # a list here
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert fields_of(back) == before

    async def test_what_an_update_brings_is_a_copy(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        changes: dict[str, Any] = {"tags": ["a"], "metadata": {"a": {"b": [1]}}, "derived_from": ["x"]}
        await adapter.update(MINE, "m1", changes)
        changes["tags"].append("b")
        changes["metadata"]["a"]["b"].append(2)
        changes["derived_from"].append("y")
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.tags, back.metadata, back.derived_from) == (["a"], {"a": {"b": [1]}}, ["x"])

    @pytest.mark.parametrize("way", ["get", "list", "text", "vector", "duplicate", "history"])
    async def test_what_is_returned_is_a_copy(self, adapter: MemoryAdapter, way: str) -> None:
        entry = memory(tags=["a"], metadata={"a": {"b": [1]}}, derived_from=["x"], embedding=[1.0, 0.0])
        await put(adapter, entry)
        first = await _read(adapter, way, entry)
        before = fields_of(first)
        first.tags.append("b")
        first.metadata["a"]["b"].append(2)
        first.derived_from.append("y")
        first.content = first.owner = "changed"
        assert fields_of(await _read(adapter, way, entry)) == before

    async def test_numbers_come_back_whatever_kind_they_were_given_as(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(relevance=1, base_relevance=0, confidence=1, ttl=60, embedding=[1, 0]))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.relevance, back.base_relevance, back.confidence, back.ttl) == (1.0, 0.0, 1.0, 60.0)
        assert back.embedding is not None
        assert list(back.embedding) == [1.0, 0.0]


async def _read(adapter: MemoryAdapter, way: str, entry: MemoryEntry) -> MemoryEntry:
    """The entry, read in this way."""
    found: MemoryEntry | None
    match way:
        case "get":
            found = await adapter.get(MINE, entry.id)
        case "list":
            [found] = await listed(adapter)
        case "text":
            needs(adapter, Capability.TEXT)
            found = (await by_text(adapter, "harbour"))[0].entry
        case "vector":
            needs(adapter, Capability.VECTOR)
            found = (await by_vector(adapter, [1.0, 0.0]))[0].entry
        case "duplicate":
            found = await adapter.find_duplicate(MINE, entry.layer, entry.digest, NOW)
        case _:
            needs(adapter, Capability.HISTORY)
            await adapter.update(MINE, entry.id, {"confidence": 0.5})
            found = (await adapter.history(MINE, entry.id))[0]
    assert found is not None
    return found
