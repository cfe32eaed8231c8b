"""Text search finds words in every script, takes queries as plain text, and ranks by lexical similarity."""

from __future__ import annotations

from typing import Final

import pytest

from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import count_terms, index_terms, query_terms, similarity, term_weights
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, ids, listed, memory, needs, put

__all__ = ["TextContract"]

FOUND: Final = [
    ("the harbour-lamp bracket is cracked", "harbour-lamp"),
    ("the harbour-lamp bracket is cracked", "Bracket?"),
    ("ping @tomas_k about 50% refund #q4, a=b", "@tomas_k"),
    ("ping @tomas_k about 50% refund #q4, a=b", "50%"),
    ("ping @tomas_k about 50% refund #q4, a=b", "#q4"),
    ("the C++ build is red", "C++ OR"),
    ("status: shipped on Friday", "status: shipped"),
    ("she painted two boats", "painting a boat"),
    ("das Straßenfest", "STRASSENFEST"),
    ("a café in İzmir", "CAFE izmir"),
    ("Ελλάδα και ΣΊΣΥΦΟΣ", "σισυφος"),
    ("Nguyễn đến lúc 3h", "Nguye\u0302\u0303n"),
    ("Nguye\u0302\u0303n đe\u0302\u0301n lu\u0301c 3h", "Nguyễn"),
    ("路線図は灯台の隣の壁に貼った", "路線図"),
    ("路線図は灯台の隣の壁に貼った", "灯台の隣"),
    ("会议改到周五", "周五"),
    ("会议改到周五", "五"),
    ("オランダのチューリップ", "ﾁｭｰﾘｯﾌﾟ"),
    ("오늘 회의는 세시로 옮겼다", "회의"),
    ("오늘 회의는 세시로 옮겼다", "세시"),
    ("น้ำแข็งอยู่ในตู้", "น้ำ"),
    ("किताब मेज़ पर है", "किताब"),
    ("کتاب روی میز", "كتاب"),
    ("الكِتَابُ على الطاولة", "الكتاب"),
    ("שָׁלוֹם עולם", "שלום"),
    ("привет, ёжик", "ЕЖИК"),
    ("party 🎉 at nine", "🎉"),
    ("version ２０２６ is out", "2026"),
    ("<|endoftext|> ends it", "endoftext"),
    ("one\u2028two\u200bthree", "twothree"),
    ("to be or not to be", "to be or not to be"),
]

NOT_FOUND: Final = [
    ("น้ำแข็งอยู่ในตู้", "นำ"),
    ("किताब मेज़ पर है", "कताब"),
    ("会议改到周五", "五周"),
    ("the harbour lamp", "harb"),
    ("the harbour lamp", "harb*"),
    ("the harbour lamp", "amp"),
    ("the harbour lamp", "Ärger"),
]

HOSTILE_QUERIES: Final = {
    "quotes": "\"harbour' `lamp",
    "an odd quote": 'he said "harbour',
    "two odd quotes": "'' \"\" harbour '",
    "hyphens": "-harbour --lamp- - a-b",
    "operators": "harbour AND OR NOT NEAR",
    "near": "NEAR(harbour lamp, 5)",
    "a column": "content: harbour",
    "columns": "{content tags} : harbour",
    "a minus column": "- content : harbour",
    "a start": "^harbour",
    "prefixes": "harbour* lamp*",
    "brackets": "((harbour) [lamp {",
    "a statement": "harbour'; DROP TABLE memories; --",
    "bindings": "harbour ?1 :name @x $y %s {z}",
    "backslashes": "\\harbour\\ \\\\ \\0",
    "query string": "harbour && lamp || !boat ~2 /x/ <b>",
    "a vector operator": "harbour <-> lamp & !x:*",
    "NUL": "har\x00bour harbour",
    "lone surrogates": "\ud83d harbour \udc00",
    "controls": "harbour\x01\x1f\x7f\u2028\ufeff",
    "line feeds": "\n\nharbour\r\n\tlamp",
    "ten thousand characters": "harbour " + "lorem-ipsum'\" " * 750,
    "one long word": "harbour " + "x" * 10_000,
    "many words": " ".join(["harbour", *(f"word{number}" for number in range(2_000))]),
    "json": '{"harbour": ["lamp", null]}',
}

NO_QUERIES: Final = {
    "empty": "",
    "blank": "   ",
    "line feeds": "\n\t\r\n",
    "stars": "***",
    "quotes": '""',
    "one quote": '"',
    "dashes": "--",
    "punctuation": "?!.,;:()[]{}<>/\\|&^%$#@~`'=+",
    "invisible": "\u200b\ufeff\u2060",
    "NUL": "\x00",
    "lone surrogate": "\ud83d",
    "a mark alone": "\u0301",
}


def likeness(query: str, content: str) -> float:
    """The similarity of a text where few are stored."""
    terms = query_terms(query)
    return similarity(terms, [1.0] * len(terms), count_terms(index_terms(content)))


class TextContract:
    """Words are found as `lamina.domain.lexical` says; a query is never a grammar."""

    @pytest.mark.parametrize(("content", "query"), FOUND)
    async def test_words_are_found_in_every_script(self, adapter: MemoryAdapter, content: str, query: str) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, memory("beside", "kites above the dunes"), memory("m1", content))
        [hit] = await by_text(adapter, query)
        assert (hit.entry.id, hit.entry.content, hit.native) == ("m1", content, True)

    @pytest.mark.parametrize(("content", "query"), NOT_FOUND)
    async def test_what_is_not_there_is_not_found(self, adapter: MemoryAdapter, content: str, query: str) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, memory("m1", content), memory("m2", query))
        assert ids(await by_text(adapter, query)) == ["m2"]

    @pytest.mark.parametrize("query", HOSTILE_QUERIES.values(), ids=HOSTILE_QUERIES)
    async def test_a_query_is_plain_text(self, adapter: MemoryAdapter, query: str) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, memory("m1", "the harbour lamp is lit"), memory("m2", "kites above dunes"))
        assert ids(await by_text(adapter, query)) == ["m1"]

    @pytest.mark.parametrize("query", NO_QUERIES.values(), ids=NO_QUERIES)
    async def test_a_query_without_a_word_finds_nothing(self, adapter: MemoryAdapter, query: str) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, memory("m1", f"the harbour lamp {query.encode('utf-8', 'replace').decode()}".rstrip("\x00")))
        assert await by_text(adapter, query) == []

    async def test_words_of_the_index_itself_are_no_commands(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        words = ["rank", "optimize", "rebuild", "and or not near", "content", "select", "null", "true", "m1"]
        await put(adapter, *(memory(f"w{number}", word) for number, word in enumerate(words)))
        for number, word in enumerate(words):
            assert ids(await by_text(adapter, word)) == [f"w{number}"], word

    async def test_more_of_the_query_is_better(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        contents = {"m1": "lamp", "m2": "the red harbour lamp", "m3": "harbour with a lamp", "m4": "a red kite"}
        await put(adapter, *(memory(id, content) for id, content in contents.items()))
        hits = await by_text(adapter, "red harbour lamp")
        assert ids(hits) == ["m2", "m3", "m1", "m4"]
        assert [hit.similarity for hit in hits] == pytest.approx(
            [likeness("red harbour lamp", hit.entry.content) for hit in hits], abs=1e-6
        )

    async def test_words_outweigh_repeats_and_short_texts_long_ones(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        contents = {
            "m1": "lamp lamp lamp lamp",
            "m2": f"the harbour lamp {'dune ' * 100}",
            "m3": f"the harbour lamp {'dune ' * 50}",
            "m4": f"a lamp and no other lamp {'kite ' * 200}",
            "m5": f"a lamp and no other light {'kite ' * 200}",
        }
        await put(adapter, *(memory(id, content) for id, content in contents.items()))
        hits = await by_text(adapter, "harbour lamp lamp")
        assert ids(hits) == ["m3", "m2", "m1", "m4", "m5"]
        assert [hit.similarity for hit in hits] == pytest.approx(
            [likeness("harbour lamp", hit.entry.content) for hit in hits], abs=1e-6
        )

    async def test_words_that_tie_are_ordered_by_id(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        names = ["m9", "m10", "b", "B", "a", "é", "0"]
        await put(adapter, *(memory(id, "the harbour lamp") for id in names))
        assert ids(await by_text(adapter, "lamp")) == sorted(names)
        assert ids(await by_text(adapter, "lamp", limit=3)) == sorted(names)[:3]

    async def test_rare_words_count_more_than_common_ones(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        contents = [f"harbour report number{number}" for number in range(80)]
        contents[40] = "a kite above the dunes"
        await adapter.store_many(MINE, [memory(f"m{number:02d}", content) for number, content in enumerate(contents)])
        hits = await by_text(adapter, "harbour kite")
        assert hits[0].entry.id == "m40"
        assert len(hits) == 80
        assert 1 > hits[0].similarity > 0.5 > hits[1].similarity > 0

    async def test_rarity_is_that_of_the_scope(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        strangers = [memory(f"s{number}", "kite kite", owner="bob") for number in range(200)]
        ours = [memory(f"m{number:02d}", f"harbour number{number}") for number in range(60)]
        await adapter.store_many(Scope("acme"), [*strangers, *ours, memory("m60", "a kite")])
        first, *others = await by_text(adapter, "harbour kite")
        assert first.entry.id == "m60"
        terms = query_terms("harbour kite")
        weights = term_weights(terms, 61, {"harbour": 60, "kite": 1})
        assert first.similarity == pytest.approx(
            similarity(terms, weights, count_terms(index_terms("a kite"))), abs=1e-6
        )
        assert len(others) == 60

    async def test_statistics_of_terms_are_exact_if_there_are_any(self, adapter: MemoryAdapter) -> None:
        await put(
            adapter,
            memory("m1", "the harbour lamp lamp"),
            memory("m2", "a lamp"),
            memory("m3", "an expired lamp", expires_at=NOW),
            memory("m4", "another's lamp", owner="bob"),
        )
        await adapter.update(MINE, "m2", {"content": "no light"})
        statistics = await adapter.term_statistics(MINE, ["lamp", "harbour", "none", "light"], NOW)
        if statistics is None:
            pytest.skip(f"{adapter.name} has no statistics of terms")
        assert statistics.documents == 2
        found = {term: statistics.frequencies.get(term, 0) for term in ("lamp", "harbour", "none", "light")}
        assert found == {"lamp": 1, "harbour": 1, "none": 0, "light": 1}
        impossible = ("", "\ud800", "pay\x00roll", '"lamp" OR *')
        again = await adapter.term_statistics(MINE, ["lamp", *impossible], NOW)
        assert again is not None
        assert [again.frequencies.get(term, 0) for term in ("lamp", *impossible)] == [1, 0, 0, 0, 0]

    async def test_no_more_texts_are_found_than_asked_for(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, *(memory(f"m{number}", "the harbour lamp") for number in range(10)))
        assert ids(await by_text(adapter, "lamp", limit=3)) == ["m0", "m1", "m2"]
        assert len(await by_text(adapter, "lamp", limit=10_000)) == 10

    async def test_scope_and_filter_hold_before_texts_are_ranked(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        strangers = [memory(f"s{number}", "red harbour lamp", owner="bob", tags=["red"]) for number in range(300)]
        untagged = [memory(f"u{number}", "red harbour lamp") for number in range(300)]
        ours = [memory(f"m{number}", "harbour, and many other words", tags=["red"]) for number in range(6)]
        await adapter.store_many(Scope("acme"), [*strangers, *untagged, *ours])
        red = MemoryFilter(now=NOW, tags=("red",))
        found = await by_text(adapter, "red harbour lamp", MINE, red, limit=5)
        assert ids(found) == ["m0", "m1", "m2", "m3", "m4"]

    async def test_words_follow_their_memory(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, *(memory(f"m{number}", "the harbour lamp") for number in range(4)))
        await adapter.update(MINE, "m0", {"content": "a kite"})
        await adapter.delete(MINE, "m1")
        await put(adapter, memory("m2", "a kite too"))
        assert ids(await by_text(adapter, "harbour")) == ["m3"]
        assert ids(await by_text(adapter, "kite")) == ["m0", "m2"]

    async def test_other_changes_leave_the_words_alone(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        await put(adapter, memory("m1", "the harbour lamp", embedding=[1.0, 0.0]), memory("m2", "a lamp"))
        await adapter.update(MINE, "m1", {"tags": ["kite"], "layer": Layer.SESSION, "metadata": {"kite": "kite"}})
        await adapter.touch(MINE, ["m1"], NOW)
        await adapter.drop_embeddings(MINE)
        assert ids(await by_text(adapter, "harbour")) == ["m1"]
        assert await by_text(adapter, "kite") == []

    async def test_a_megabyte_of_words_is_found_by_its_last(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TEXT)
        content = " ".join(f"w{number:x}" for number in range(250_000)) + " lighthouse"
        assert len(content) > 1_600_000
        await put(adapter, memory("before", "kites above the dunes"), memory("large", content))
        await put(adapter, memory("after", "the harbour lamp"))
        [hit] = await by_text(adapter, "lighthouse")
        assert (hit.entry.id, hit.entry.content == content) == ("large", True)
        assert ids(await by_text(adapter, "kites")) == ["before"]
        assert ids(await by_text(adapter, "harbour")) == ["after"]
        assert ids(await listed(adapter, MINE, LIVE)) == ["before", "large", "after"]
