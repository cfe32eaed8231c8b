from __future__ import annotations

import pytest

from lamina.domain.recall import Reason
from lamina.errors import ConfigError, EmbeddingFingerprintError, ProviderError, ProviderUnavailable
from lamina.ports.embedder import Fingerprint
from lamina.testing import HashingEmbedder


class Rotated(HashingEmbedder):
    """Another model: the same length, another space."""

    @property
    def model(self):
        return "rotated"

    def _embed(self, text):
        return super()._embed(f"rotated {text[::-1]}")


@pytest.fixture
def file(tmp_path):
    return {"path": tmp_path / "lamina.db"}


async def test_the_first_vector_leaves_its_fingerprint(open_engine, file):
    engine = await open_engine(**file)
    assert (await engine.stats()).fingerprint is None
    await engine.store("one")
    assert (await engine.stats()).fingerprint == Fingerprint("testing", "hashing", 256)
    await engine.close()
    again = await open_engine(**file)
    assert not (await again.stats()).reembed_needed
    assert (await again.recall("one")).degraded == ()


@pytest.mark.parametrize("other", [Rotated(), Rotated(64)], ids=["same length", "other length"])
async def test_another_model_is_refused_while_keywords_go_on_and_reembed_changes_over(open_engine, file, other, caplog):
    first = await open_engine(**file)
    await first.store_many([f"fact number {number}" for number in range(700)])
    await first.close()

    engine = await open_engine(**file, embed=other)
    assert "reembed" in caplog.text
    assert (await engine.stats()).reembed_needed
    await engine.store("a fact stored meanwhile")
    results = await engine.recall("fact stored meanwhile", limit=1)
    assert results[0].entry.content == "a fact stored meanwhile"
    assert results.degraded[0].reason is Reason.OTHER_MODEL
    assert "lamina reembed" in results.degraded[0].detail
    with pytest.raises(EmbeddingFingerprintError, match="reembed"):
        await engine.reembed_missing()

    seen = []
    report = await engine.reembed(progress=lambda done, total: seen.append((done, total)))
    assert (report.embedded, report.failed) == (701, 0)
    assert seen[-1] == (701, 701)
    stats = await engine.stats()
    assert (stats.without_embedding, stats.reembed_needed) == (0, False)
    assert stats.fingerprint == Fingerprint("testing", "rotated", other.dimensions)
    best = await engine.recall("fact number 42", mode="vector", limit=1)
    assert (best[0].entry.content, best.degraded) == ("fact number 42", ())


async def test_another_length_of_the_same_model_is_refused_too(open_engine, file):
    first = await open_engine(**file)
    await first.store("one")
    await first.close()
    engine = await open_engine(**file, embed=HashingEmbedder(64))
    assert (await engine.recall("one")).degraded[0].reason is Reason.OTHER_MODEL


async def test_an_interrupted_change_goes_on_where_it_stopped(open_engine, file):
    first = await open_engine(**file)
    await first.store_many([f"fact number {number}" for number in range(1200)])
    await first.close()

    class Tired(Rotated):
        calls = 0

        async def embed_documents(self, texts):
            self.calls += 1
            if self.calls == 5:  # a page of 500 is embedded in two batches
                raise ProviderUnavailable("The embedder", "it went down")
            return await super().embed_documents(texts)

    engine = await open_engine(**file, embed=Tired())
    with pytest.raises(ProviderUnavailable):
        await engine.reembed()
    assert (await engine.stats()).without_embedding == 200
    await engine.close()
    again = await open_engine(**file, embed=Rotated())
    report = await again.reembed()
    assert (report.embedded, report.skipped) == (200, 1000)


async def test_one_text_that_cannot_be_embedded_harms_no_other(open_engine, file):
    class Picky(HashingEmbedder):
        async def embed_documents(self, texts):
            if any("poison" in text for text in texts):
                raise ProviderError("The embedder", "400: cannot embed this")
            return await super().embed_documents(texts)

    engine = await open_engine(**file, embed=Picky())
    await engine.store_many([f"fact {number}" for number in range(23)] + ["poison"])
    assert (await engine.stats()).without_embedding == 24
    report = await engine.reembed_missing()
    assert (report.embedded, report.failed) == (23, 1)
    assert (await engine.recall("poison", limit=1))[0].entry.content == "poison"


async def test_forced_reembedding_makes_every_vector_anew(open_engine, file):
    engine = await open_engine(**file)
    await engine.store_many(["one", "two"])
    assert (await engine.reembed(force=True)).embedded == 2
    assert (await engine.reembed()).skipped == 2


async def test_tenants_have_fingerprints_of_their_own(open_engine, file):
    ours = await open_engine(**file)
    await ours.store("one")
    theirs = await open_engine(**file, tenant="other", embed=HashingEmbedder(64))
    await theirs.store("one")
    assert (await theirs.recall("one")).degraded == ()
    assert (await ours.recall("one")).degraded == ()


async def test_without_an_embedder_there_is_nothing_to_reembed(open_engine, file):
    engine = await open_engine(**file, embedding="none")
    with pytest.raises(ConfigError, match="embed"):
        await engine.reembed()


async def test_each_stored_text_finds_itself_first(open_engine, place):
    engine = await open_engine(**place)
    texts = [f"{animal} number {number}" for animal in ("heron", "otter", "lynx") for number in range(30)]
    await engine.store_many(texts)
    for text in texts:
        assert (await engine.recall(text, mode="vector", limit=1))[0].entry.content == text


class TestTwoEnginesOnOneFile:
    """Each with its own model: whatever one does, the vectors of both are never mixed."""

    async def test_what_one_changed_over_the_other_neither_writes_nor_searches(self, open_engine, file):
        first = await open_engine(**file)
        await first.store("one fact")
        second = await open_engine(**file, embed=Rotated())
        await second.reembed()
        await first.store("two facts")
        results = await first.recall("one fact", mode="vector")
        assert results[0].entry.content == "one fact"
        assert Reason.OTHER_MODEL in {mark.reason for mark in results.degraded}
        assert all(result.score_breakdown.vector is None for result in results)
        assert (await first.stats()).reembed_needed
        assert (await second.stats()).without_embedding == 1
        assert (await second.reembed_missing()).embedded == 1
        assert (await second.recall("two facts", mode="vector", limit=1))[0].entry.content == "two facts"

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    @pytest.mark.parametrize("length", [256, 64])
    async def test_a_recall_that_notices_the_change_first_goes_by_keyword(self, open_engine, file, mode, length):
        first = await open_engine(**file)
        await first.store_many(["one fact", "two facts", "something else"])
        await (await open_engine(**file, embed=Rotated(length))).reembed()
        results = await first.recall("one fact", mode=mode)
        assert [result.entry.content for result in results] == ["one fact", "two facts"]
        assert all(result.score_breakdown.vector is None for result in results)
        assert [mark.reason for mark in results.degraded] == [Reason.OTHER_MODEL]

    async def test_what_the_other_stored_first_is_found_by_vector_at_once(self, open_engine, file):
        first, second = await open_engine(**file), await open_engine(**file)
        await second.store_many(["one fact", "two facts", "something else"])
        results = await first.recall("one fact", mode="vector", limit=1)
        assert [each.entry.content for each in results] == ["one fact"]
        assert results[0].score_breakdown.vector == pytest.approx(1)
        assert results.degraded == ()

    async def test_when_another_changed_over_to_the_same_model_both_search_and_write_by_it(self, open_engine, file):
        await (await open_engine(**file)).store("one fact")
        first, second = [await open_engine(**file, embed=Rotated()) for _ in range(2)]
        assert (await first.stats()).reembed_needed
        await second.reembed()
        await first.store("two facts")
        for engine in (first, second):
            stats = await engine.stats()
            assert (stats.reembed_needed, stats.without_embedding) == (False, 0)
            results = await engine.recall("two facts", mode="vector", limit=1)
            assert (results[0].entry.content, results.degraded) == ("two facts", ())

    async def test_recalling_is_enough_to_notice_that_another_changed_over_to_the_same_model(self, open_engine, file):
        await (await open_engine(**file)).store("one fact")
        first, second = [await open_engine(**file, embed=Rotated()) for _ in range(2)]
        await second.reembed()
        results = await first.recall("one fact", mode="vector", limit=1)
        assert (results[0].entry.content, results.degraded) == ("one fact", ())

    async def test_gaps_that_another_leaves_and_fills_are_noticed_after_a_while(self, open_engine, file, monkeypatch):
        monkeypatch.setattr("lamina.memory.embedding.GAPS_COUNTED_EVERY", 0)
        first = await open_engine(**file)
        await first.store("one fact")
        await (await open_engine(**file, embed=None, embedding="none")).store("two facts")
        marks = (await first.recall("one fact", mode="vector")).degraded
        assert [mark.reason for mark in marks] == [Reason.SOME_WITHOUT_VECTOR]
        await (await open_engine(**file)).reembed_missing()
        assert (await first.recall("one fact", mode="vector")).degraded == ()

    async def test_vectors_restored_after_a_change_over_are_left_out(self, open_engine, file):
        first = await open_engine(**file)
        id = await first.store("one fact")
        entry = await first.get(id)
        await first.forget(id)
        second = await open_engine(**file, embed=Rotated())
        await second.reembed()
        report = await first.restore([entry], fingerprint=Fingerprint("testing", "hashing", 256), revive=True)
        assert (report.written, report.without_vector) == (1, 1)
        assert (await second.stats()).without_embedding == 1

    async def test_an_edit_after_a_change_over_brings_no_foreign_vector(self, open_engine, file):
        first = await open_engine(**file)
        id = await first.store("one fact")
        second = await open_engine(**file, embed=Rotated())
        await second.reembed()
        entry = await first.update(id, content="another fact")
        assert (entry.content, entry.embedding) == ("another fact", None)

    async def test_the_first_to_store_in_a_fresh_file_decides(self, open_engine, file):
        first = await open_engine(**file)
        second = await open_engine(**file, embed=Rotated())
        await first.store("one fact")
        await second.store("two facts")
        assert (await second.stats()).fingerprint == Fingerprint("testing", "hashing", 256)
        assert (await second.stats()).without_embedding == 1
        assert (await second.recall("two facts"))[0].entry.content == "two facts"

    async def test_another_length_is_a_mark_and_no_error(self, open_engine, file):
        first = await open_engine(**file)
        await first.store("one fact")
        second = await open_engine(**file, embed=Rotated(64))
        await second.reembed()
        await first.store("two facts")
        results = await first.recall("two facts")
        assert results[0].entry.content == "two facts"
        assert Reason.OTHER_MODEL in {mark.reason for mark in results.degraded}


async def test_memories_without_a_vector_are_marked_until_they_have_one(open_engine, place):
    class Failing(HashingEmbedder):
        failing = True

        async def embed_documents(self, texts):
            if self.failing:
                raise ProviderUnavailable("The embedder", "it is down")
            return await super().embed_documents(texts)

    failing = Failing()
    engine = await open_engine(**place, embed=failing)
    await engine.store("banana")
    failing.failing = False
    await engine.store("ice")
    assert [mark.reason for mark in (await engine.recall("papaya")).degraded] == [Reason.SOME_WITHOUT_VECTOR]
    await engine.reembed_missing()
    assert (await engine.recall("papaya")).degraded == ()


async def test_embedding_leaves_revision_and_history_alone(open_engine, file):
    engine = await open_engine(**file)
    id = await engine.store("one fact")
    await engine.reembed(force=True)
    assert (await engine.get(id)).revision == 1
    assert await engine.history(id) == []
