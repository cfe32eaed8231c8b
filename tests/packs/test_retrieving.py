"""Two phases: which packs, then which of their memories."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from lamina.domain.lexical import index_terms
from lamina.domain.pack_decay import TIER_FACTORS, Tier
from lamina.domain.recall import Reason
from lamina.errors import InvalidInput, PackNotFound
from lamina.packs import discovering
from lamina.settings.packs import PacksConfig
from lamina.testing import HashingEmbedder


def names(matches):
    return [match.pack.name for match in matches]


def ids(hits):
    return [hit.memory.id for hit in hits]


@pytest.fixture
async def several(wafers):
    await wafers.create("bakery", "project", description="How we bake bread", tags=["bread", "yield"])
    await wafers.create("mira", "user", description="What Mira likes about wafers", owner="mira")
    await wafers.add_many(
        "bakery",
        [
            {"id": "bread1", "content": "Rye bread rises for nine hours"},
            {"id": "bread2", "content": "Bread needs salt"},
        ],
    )
    return wafers


async def test_packs_are_discovered_by_what_they_say_they_are_about(several):
    matches = await several.discover("wafer yield")
    assert names(matches)[0] == "chip_domain"
    assert all(0 < match.score <= 1 for match in matches)
    assert matches.degraded == ()
    assert names(await several.discover("baking bread", limit=1)) == ["bakery"]
    assert names(await several.discover("wafer yield", type="project")) == ["bakery"]
    assert names(await several.discover("wafer yield", tags=["yield", "bread"])) == ["bakery"]
    best = matches[0].score
    assert names(await several.discover("wafer yield", min_score=best)) == ["chip_domain"]


async def test_many_packs_are_compared_in_a_thread_to_the_same_end(several, monkeypatch):
    found = await several.discover("wafer yield", limit=9)
    threads = set()

    def noted(*arguments):
        threads.add(threading.current_thread())
        return index_terms(*arguments)

    monkeypatch.setattr(discovering, "index_terms", noted)
    monkeypatch.setattr(discovering, "_FEW", 0)
    assert await several.discover("wafer yield", limit=9) == found
    assert len(found) > 1
    monkeypatch.setattr(discovering, "_PAGE", 1)
    assert await several.discover("wafer yield", limit=9) == found
    assert threads.isdisjoint({threading.main_thread()})


async def test_behind_many_that_have_expired_the_others_are_listed_in_few_steps(wafers, clock, monkeypatch):
    gone = [{"content": f"Gone {number}", "expires_at": clock() + timedelta(hours=1)} for number in range(200)]
    await wafers.add_many("chip_domain", gone)
    clock.advance(timedelta(hours=2))
    asked, find = [], wafers.kept.find_memories

    async def noted(*arguments, **options):
        asked.append(options["limit"])
        return await find(*arguments, **options)

    monkeypatch.setattr(wafers.kept, "find_memories", noted)
    assert ids(await wafers.retrieve("chip_domain", limit=2)) == ["c", "b"]
    assert len(asked) < 10


async def test_a_pack_is_discovered_by_a_new_description_and_not_by_the_old_one(several):
    await several.update("bakery", description="How satellites stay in orbit", tags=[], new_name="space")
    assert names(await several.discover("satellites in orbit"))[0] == "space"
    assert "space" not in names(await several.discover("bread", min_score=0.3))


async def test_words_alone_find_packs_where_there_is_no_embedder(open_packs):
    packs = await open_packs(embedder=None)
    await packs.create("chip_domain", "domain", description="wafer yield")
    await packs.create("bakery", "domain", description="bread")
    found = await packs.discover("What about the yield of wafers?")
    assert names(found) == ["chip_domain"]
    assert [each.reason for each in found.degraded] == [Reason.NO_EMBEDDER]


async def test_words_find_packs_while_the_embedder_is_down_and_those_without_a_vector_of_its_model(several, embedder):
    embedder.is_down = True
    await several.create("orchard", "domain", description="apples and pears")
    found = await several.discover("apples")
    assert names(found) == ["orchard"]
    assert [each.reason for each in found.degraded] == [Reason.EMBEDDER_FAILED]
    embedder.is_down = False
    found = await several.discover("apples")
    assert names(found)[0] == "orchard"
    assert [each.reason for each in found.degraded] == [Reason.SOME_WITHOUT_VECTOR]
    await several.reembed_missing()
    assert (await several.discover("apples")).degraded == ()


async def test_the_best_memories_of_a_pack_are_retrieved_with_scores(several):
    hits = await several.retrieve("chip_domain", "Why does wafer yield drop?", limit=2, min_score=0)
    assert ids(hits)[0] == "a"
    assert len(hits) == 2
    assert 0 < hits[1].score <= hits[0].score <= 1
    assert hits[0].memory.access_count == 1
    assert hits.degraded == ()


async def test_several_packs_are_merged_by_score(several):
    hits = await several.retrieve(["bakery", "chip_domain"], "rye bread rises", limit=3)
    assert ids(hits)[0] == "bread1"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    with pytest.raises(PackNotFound):
        await several.retrieve(["bakery", "nowhere"], "bread")
    with pytest.raises(InvalidInput):
        await several.retrieve([], "bread")


async def test_without_a_query_the_newest_access_comes_first(several, clock):
    for id in ("b", "a"):
        clock.advance(1)
        await several.memory(id)
    clock.advance(1)
    hits = await several.retrieve("chip_domain", limit=2)
    assert ids(hits) == ["a", "b"]
    assert [hit.score for hit in hits] == [None, None]


async def test_both_phases_together_find_the_best_of_the_best_packs(several):
    hits = await several.search("rye bread rises", packs=1, per_pack=1)
    assert ids(hits) == ["bread1"]
    hits = await several.search("wafer yield", packs=2, per_pack=2, min_score=0)
    packs = {hit.memory.pack_id for hit in hits}
    assert len(packs) == 2
    assert all(sum(hit.memory.pack_id == id for hit in hits) <= 2 for id in packs)
    assert await several.search("wafer", min_pack_score=1.0) == []


async def test_a_question_about_something_else_brings_nothing_back_unless_everything_matches(several, fade):
    await fade(several, "a", "summary", "Wafer yield")
    for hits in (
        await several.retrieve("chip_domain", "Rye bread rises for nine hours"),
        await several.search("Who won the football game?"),
    ):
        assert ids(hits) == []
    (untouched,) = [each for each in await several.memories("chip_domain", touch=False) if each.id == "a"]
    assert (untouched.access_count, untouched.tier) == (0, "summary")
    hits = await several.retrieve("chip_domain", "Rye bread rises for nine hours of clean yield", min_score=0)
    assert "a" in ids(hits)
    assert (await several.memory("a", touch=False)).tier == "full"


async def test_how_similar_a_memory_must_be_can_be_configured_and_says_nothing_of_its_confidence(wafers, open_packs):
    await wafers.update_memory("c", confidence=0.01)
    strict = await open_packs(config=PacksConfig(min_similarity=1), adapter=wafers.rows, store=wafers.kept)
    for packs, is_found in ((wafers, True), (strict, False)):
        hits = await packs.retrieve("chip_domain", "etching what the resist does not cover", touch=False)
        assert ("c" in ids(hits)) is bool(hits) is is_found


async def test_where_vectors_cannot_be_compared_whatever_shares_a_word_matches(wafers, embedder):
    question = "Tell me whether anybody said a thing about resist before the holidays"
    assert ids(await wafers.retrieve("chip_domain", question, mode="text", touch=False)) == ["c"]
    embedder.is_down = True
    assert "c" in ids(await wafers.retrieve("chip_domain", question, touch=False))


async def test_a_score_is_similarity_times_confidence_times_the_factor_of_the_tier(several, fade):
    (full,) = await several.retrieve("chip_domain", "etching resist", limit=1, touch=False, mode="vector")
    await several.update_memory("c", confidence=0.5)
    (doubted,) = await several.retrieve("chip_domain", "etching resist", limit=1, touch=False, mode="vector")
    assert doubted.score == pytest.approx(full.score * 0.5)
    await several.update_memory("c", confidence=1.0)
    for tier, text in (("summary", "Etching"), ("key_facts", "Etch"), ("existence_marker", None)):
        await fade(several, "c", tier, text)
        (hit,) = await several.retrieve("chip_domain", "etching resist", limit=1, touch=False, mode="vector")
        assert hit.found_in == tier
        assert hit.score == pytest.approx(full.score * TIER_FACTORS[Tier(tier)])


async def test_a_retrieved_memory_comes_back_whole_and_says_where_it_was_found(several, fade):
    await fade(several, "c", "existence_marker")
    (hit,) = await several.retrieve("chip_domain", "etching resist", limit=1)
    assert (hit.memory.id, hit.found_in, hit.memory.tier) == ("c", "existence_marker", "full")
    assert hit.memory.content == "Etching removes what the resist does not cover"
    (hit,) = await several.retrieve("chip_domain", "etching", limit=1, mode="text")
    assert hit.found_in == "full"


async def test_a_search_does_not_stop_before_the_best_even_if_the_closest_are_doubted(packs):
    await packs.create("big", "domain")
    doubted = [{"content": f"wafer yield {number}", "confidence": 0.01} for number in range(150)]
    await packs.add_many(
        "big", [*doubted, {"id": "sure", "content": "wafer yield of the other fab, in many more words"}]
    )
    assert ids(await packs.retrieve("big", "wafer yield", limit=1)) == ["sure"]


async def test_a_search_passes_over_any_number_that_was_not_asked_for(packs):
    await packs.create("big", "domain")
    facts = [{"content": f"wafer yield {number}"} for number in range(150)]
    await packs.add_many(
        "big",
        [*facts, {"id": "p", "content": "wafers are policy", "memory_type": "policy", "tags": ["t"], "name": "n"}],
    )
    for asked in ({"memory_type": "policy"}, {"tags": ["t"]}, {"name": "n"}):
        assert ids(await packs.retrieve("big", "wafer yield", limit=3, **asked)) == ["p"]
    old = [f"old{number}" for number in range(60)]
    await packs.add_many("big", [{"id": id, "content": f"lithography step {id}"} for id in old])
    new = await packs.add("big", "lithography steps are in the handbook")
    for id in old:
        await packs.supersede(id, by=new.id)
    assert ids(await packs.retrieve("big", "lithography step", limit=1)) == [new.id]


async def test_a_least_score_and_confidence_hold(several):
    hits = await several.retrieve("chip_domain", "wafer yield")
    assert ids(await several.retrieve("chip_domain", "wafer yield", min_score=hits[0].score)) == ids(hits)[:1]
    await several.update_memory("a", confidence=0.4)
    assert "a" not in ids(await several.retrieve("chip_domain", "wafer yield", min_confidence=0.5))


@pytest.mark.parametrize(
    "asked", [{"limit": 0}, {"limit": -1}, {"limit": 10**9}, {"min_score": 2}, {"mode": "magic"}, {"query": " "}]
)
async def test_an_argument_out_of_range_is_refused(several, asked):
    with pytest.raises(InvalidInput):
        await several.retrieve("chip_domain", **{"query": "wafer", **asked})


async def test_a_setting_bounds_how_much_one_call_brings_back(open_packs):
    packs = await open_packs(config=PacksConfig(limit=2, max_limit=3))
    await packs.create("p", "domain")
    await packs.add_many("p", [f"text {number}" for number in range(5)])
    assert len(await packs.retrieve("p")) == 2
    assert len(await packs.retrieve("p", limit=3)) == 3
    for call in (packs.retrieve("p", limit=4), packs.memories("p", limit=4)):
        with pytest.raises(InvalidInput, match="limit"):
            await call


async def test_another_model_searches_by_words_until_everything_is_embedded_anew(several, open_packs):
    class Other(HashingEmbedder):
        model = "other"

    adapter, store = several.rows, several.kept
    other = await open_packs(adapter=adapter, store=store, embedder=Other(64))
    hits = await other.retrieve("chip_domain", "etching")
    assert ids(hits) == ["c"]
    assert [each.reason for each in hits.degraded] == [Reason.OTHER_MODEL]
    assert (await other.discover("wafer")).degraded[0].reason is Reason.SOME_WITHOUT_VECTOR
    await other.reembed()
    assert (await other.retrieve("chip_domain", "etching")).degraded == ()
    assert (await other.discover("wafer")).degraded == ()


async def test_what_is_embedded_anew_is_the_original_and_not_what_the_tier_left(several, fade, embedder):
    await fade(several, "c", "existence_marker")
    await several.reembed(force=True)
    (hit,) = await several.retrieve("chip_domain", "etching resist", limit=1, mode="vector", touch=False)
    assert hit.memory.id == "c"


async def test_a_ranking_is_the_retrieval_without_contents_and_reads_nothing(several, fade):
    await fade(several, "c", "existence_marker")
    ranked = await several.rank("chip_domain", "etching the wafer")
    assert {hit.memory.content for hit in ranked} == {""}
    assert (await several.memory("c", touch=False)).access_count == 0
    hits = await several.retrieve("chip_domain", "etching the wafer")
    assert [(hit.memory.id, hit.score, hit.found_in) for hit in ranked] == [
        (hit.memory.id, hit.score, hit.found_in) for hit in hits
    ]
    chosen = await several.read([ranked[1].memory.id])
    assert [each.access_count for each in chosen] == [2]


async def test_memories_come_with_their_vectors_where_that_is_asked_for(several, embedder):
    memories = await several.with_embeddings(await several.memories("chip_domain"))
    wanted = await embedder.embed_documents([each.content for each in memories])
    assert [list(each.embedding) for each in memories] == [pytest.approx(list(each)) for each in wanted]
    await several.archive("a")
    assert (await several.with_embeddings([await several.memory("a")]))[0].embedding is None


async def test_a_preview_of_one_pack_tells_of_that_alone(several):
    await several.create("other", "session", owner="ann")
    await several.add("other", "soon gone", id="z", owner="ann")
    assert [each.id for each in await several.preview(pack="other", owner="ann")] == ["z"]
    assert "z" not in {each.id for each in await several.preview(pack="chip_domain")}
    with pytest.raises(PackNotFound):
        await several.preview(pack="other", owner="bob")
