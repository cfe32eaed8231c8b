import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.adapters.sqlite import SqliteAdapter
from lamina.domain.filters import MemoryFilter, Or, Where
from lamina.domain.lexical import MAX_QUERY_CHARS
from lamina.domain.scope import Scope
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, by_vector, ids, listed, memory, put

FOUND = {
    "a Japanese word inside a run": ("路線図は灯台の隣の壁に貼った", "路線図"),
    "a Japanese phrase inside a run": ("路線図は灯台の隣の壁に貼った", "灯台の隣"),
    "two Chinese characters": ("会议改到周五", "周五"),
    "one Chinese character": ("会议改到周五", "五"),
    "Korean with its particle": ("오늘 회의는 세시로 옮겼다", "회의"),
    "Thai inside a run": ("น้ำแข็งอยู่ในตู้", "น้ำ"),
    "Arabic, typed with another kaf": ("کتاب روی میز", "كتاب"),
    "Hindi": ("किताब मेज़ पर है", "किताब"),
    "NFD for NFC": ("bệnh viện", unicodedata.normalize("NFD", "bệnh")),
    "NFC for NFD": (unicodedata.normalize("NFD", "Nguyễn đến lúc 3h"), "Nguyễn"),
    "an emoji": ("ship it 🚢 today", "🚢"),
    "an id with a hyphen": ("ticket OPS-417 is open", "ops-417"),
    "an id glued to Chinese": ("工单OPS417已关闭", "OPS417"),
    "full width": ("ＡＢＣ１２３", "abc123"),
    "sharp s": ("die Straße ist lang", "STRASSE"),
    "a dotted capital": ("İstanbul", "istanbul"),
    "a hyphenated word": ("the harbour-lamp bracket is cracked", "harbour-lamp"),
    "an English ending": ("she repaired the lamps", "repairing lamp"),
}
HOSTILE = [
    *('"', '""', '"""', "'", "*", "a*", "^a", "a^", "(", ")", "(a", "a OR", "OR", "AND", "NOT a", "NEAR(a b)", "NEAR"),
    *("a AND NOT b", "terms:a", "{terms}: a", "a + b", "-a", "a:b", "status: shipped", 'he said "later', "C++", "50%"),
    *(
        "why?",
        "@tomas_k",
        "#q4",
        "a=b",
        "don't",
        "\\",
        "\x00",
        "a\x00b",
        "\ud800",
        "\udc00\ud800",
        "; DROP TABLE x; --",
    ),
    *("lamina_memories_text", "rank", "bm25", "", " ", "\n\t", "***", "🏳️‍🌈", "a" * 100_000, "x y " * 10_000),
]


@pytest.mark.parametrize(("content", "query"), FOUND.values(), ids=FOUND)
async def test_words_of_many_scripts_are_found(adapter: SqliteAdapter, content: str, query: str) -> None:
    await put(adapter, memory("m1", content), memory("m2", "something else altogether"))
    hits = await by_text(adapter, query)
    assert ids(hits) == ["m1"]
    assert hits[0].entry.content == content
    assert 0 < hits[0].similarity <= 1


async def test_a_word_that_only_looks_alike_is_not_found(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("m1", "น้ำแข็งอยู่ในตู้"))
    assert await by_text(adapter, "นำ") == []


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: ascii(query[:20]))
async def test_a_query_is_never_grammar(adapter: SqliteAdapter, query: str) -> None:
    await put(adapter, memory("mine", "status shipped later repair a b terms"), memory("other", "a b c", owner="bob"))
    assert set(ids(await by_text(adapter, query))) <= {"mine"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=40), content=st.text(min_size=1, max_size=40))
async def test_any_text_finds_what_the_in_memory_adapter_finds(query: str, content: str) -> None:
    clean = "".join(c if c != "\0" and not "\ud800" <= c <= "\udfff" else "." for c in content) + " word"
    found = []
    for adapter in (SqliteAdapter(":memory:"), InMemoryAdapter()):
        await adapter.initialize()
        await put(adapter, memory("m1", clean), memory("m2", "word"))
        found.append({(hit.entry.id, hit.similarity) for hit in await by_text(adapter, query)})
        found[-1] |= {(hit.entry.id, hit.similarity) for hit in await by_text(adapter, content)}
        await adapter.close()
    assert found[0] == found[1]


async def test_what_holds_more_of_the_query_comes_first_and_rare_words_weigh_more(adapter: SqliteAdapter) -> None:
    await adapter.store_many(MINE, [memory(f"m{n:02}", f"common note {n}") for n in range(60)])
    await put(adapter, memory("rare", "a zeppelin"), memory("both", "a common zeppelin"))
    hits = await by_text(adapter, "common zeppelin", limit=3)
    assert ids(hits)[:2] == ["both", "rare"]
    assert hits[0].similarity == pytest.approx(1, abs=0.01)
    assert hits[1].similarity > 0.5 > hits[2].similarity


@pytest.mark.parametrize("owners", [3, 40])  # few partitions, and more than are read one by one
async def test_statistics_are_exact_in_the_scope_and_count_only_the_living(adapter: SqliteAdapter, owners: int) -> None:
    reference = InMemoryAdapter()
    entries = [
        memory(
            f"m{n}",
            f"word{n % 7} word{n % 3} shared",
            owner=f"owner{n % owners}",
            tenant="acme" if n % 5 else "rival",
            expires_at=NOW if n % 11 == 0 else None,
        )
        for n in range(400)
    ]
    await put(adapter, *entries)
    await put(reference, *entries)
    words = ["word0", "word1", "word6", "shared", "absent", "", "two words", "Shared", 'quo"te', "\ud800", "*", "word0"]
    for scope in (Scope("acme"), Scope("acme", "owner1"), Scope("rival"), Scope("nobody")):
        assert await adapter.term_statistics(scope, words, NOW) == await reference.term_statistics(scope, words, NOW)
        filter = MemoryFilter(now=NOW)
        assert await adapter.count(scope, filter) == (await adapter.term_statistics(scope, [], NOW)).documents


@pytest.mark.parametrize("owners", [1, 30])
async def test_filters_hold_before_the_pool_is_cut(adapter: SqliteAdapter, owners: int) -> None:
    better = [memory(f"better{n}", "lamp lamp lamp", owner=f"owner{n % owners}", tags=["b"]) for n in range(300)]
    better += [memory(f"dead{n}", "lamp lamp lamp", owner=f"owner{n % owners}", expires_at=NOW) for n in range(300)]
    better += [memory(f"foreign{n}", "lamp", owner="rival", namespace="theirs") for n in range(300)]
    worse = [
        memory(f"worse{n}", f"a lamp among {'many ' * 50}", owner=f"owner{n % owners}", tags=["a"]) for n in range(5)
    ]
    await adapter.store_many(Scope("acme"), [*better, *worse])
    scope = Scope("acme", namespace="notes")
    assert len(await by_text(adapter, "lamp", scope, MemoryFilter(now=NOW, tags=("a",)), limit=5)) == 5
    assert len(await by_text(adapter, "lamp", scope, LIVE, limit=1000)) == 305


async def test_a_word_of_a_million_characters_is_stored_and_another_as_long_as_a_query_is_found(
    adapter: SqliteAdapter,
) -> None:
    longest = "x" * MAX_QUERY_CHARS
    await put(adapter, memory("longer", "y" * 1_000_000), memory("long", longest), memory("short", "y"))
    assert ids(await by_text(adapter, longest)) == ["long"]


@pytest.mark.parametrize("owners", [1, 16, 20])
async def test_the_largest_filter_runs_over_many_partitions(adapter: SqliteAdapter, owners: int) -> None:
    everyone = Scope("acme")
    leaf: object = 7
    for key in reversed("abcdefgh"):
        leaf = {key: leaf}
    entries = [
        memory(f"m{n:03}", "lamp", owner=f"o{n % owners}", metadata=leaf if n % 50 == 0 else {}, embedding=[1.0])
        for n in range(400)
    ]
    await adapter.store_many(everyone, entries)
    path = "a.b.c.d.e.f.g.h"
    largest = Or((*(Where(path).is_in([*range(n * 8 + 8, n * 8 + 1008)]) for n in range(63)), Where(path).eq(7)))
    filter = MemoryFilter(now=NOW, where=largest)
    expected = [f"m{n:03}" for n in range(0, 400, 50)]
    assert ids(await listed(adapter, everyone, filter)) == expected
    assert ids(await listed(adapter, everyone, filter, limit=3, offset=2)) == expected[2:5]
    assert await adapter.count(everyone, filter) == 8
    assert ids(await by_text(adapter, "lamp", everyone, filter)) == expected
    assert ids(await by_vector(adapter, [1.0], everyone, filter)) == expected
