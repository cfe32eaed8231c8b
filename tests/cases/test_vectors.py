"""Vectors and models: scores say how alike, and vectors of two models are never mixed."""

from __future__ import annotations

import pytest

from lamina.domain.recall import Reason
from lamina.errors import EmbeddingDimensionError, InvalidInput
from lamina.testing import HashingEmbedder

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


class Stretched(HashingEmbedder):
    """Vectors of other lengths than one."""

    def _embed(self, text):
        return [each * (3 + len(text) % 50) for each in super()._embed(text)]


class Rotated(HashingEmbedder):
    """Of the same length, and of another space."""

    @property
    def model(self):
        return "rotated"

    def _embed(self, text):
        vector = list(super()._embed(text))
        return vector[1:] + vector[:1]


@pytest.mark.case("B113", "B118")
@EVERYWHERE
@pytest.mark.parametrize("embedder", [HashingEmbedder, Stretched])
async def test_a_score_is_a_likeness_on_every_store(open_engine, place, embedder):
    engine = await open_engine(**place, embed=embedder())
    texts = ["the lamp of the harbour is cracked", "violins are tuned on Tuesdays", "tea with lemon at breakfast"]
    ids = await engine.store_many(texts)
    for id, text in zip(ids, texts, strict=True):
        for mode in ("vector", "hybrid", "text"):
            found = await engine.recall(text, mode=mode, min_match=0)
            assert found[0].entry.id == id
            assert all(0 <= hit.score <= 1 for hit in found)
            assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        [only] = await engine.recall(text, mode="vector", min_match=0.7)
        assert only.entry.id == id
        assert only.score_breakdown.vector == pytest.approx(1, abs=1e-3)


@pytest.mark.case("B115")
async def test_vectors_of_another_length_leave_words_at_work_and_say_what_to_do(open_engine, place):
    engine = await open_engine(**place, embed=HashingEmbedder(384))
    id = await engine.store("the lamp is lit")
    await engine.close()
    engine = await open_engine(**place, embed=HashingEmbedder(768))
    found = await engine.recall("lamp")
    assert [hit.entry.id for hit in found] == [id]
    assert [(mark.reason, "lamina reembed --force" in mark.detail) for mark in found.degraded] == [
        (Reason.OTHER_MODEL, True)
    ]
    with pytest.raises(EmbeddingDimensionError, match="lamina reembed --force"):
        await engine.store("the lamp is out")
    assert (await engine.reembed(force=True)).embedded == 1
    assert (await engine.recall("lamp")).degraded == ()


@pytest.mark.case("B116")
async def test_a_model_of_the_same_length_is_another_one_and_nothing_is_mixed(open_engine, place):
    engine = await open_engine(**place)
    await engine.store_many([f"note {number} of the harbour" for number in range(20)])
    stored = (await engine.stats()).fingerprint
    await engine.close()
    other = await open_engine(**place, embed=Rotated())
    found = await other.recall("note 7")
    assert [mark.reason for mark in found.degraded] == [Reason.OTHER_MODEL]
    await other.store("a note of the second model")
    assert (await other.stats()).fingerprint == stored
    assert (await other.reembed()).embedded == 21
    assert (await other.recall("note 7 of the harbour", mode="vector"))[0].entry.content == "note 7 of the harbour"


@pytest.mark.case("B113")
@EVERYWHERE
@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "0.5"])
async def test_a_threshold_that_no_score_can_have_is_refused(engine, bad):
    await engine.store("lamp")
    with pytest.raises((InvalidInput, TypeError), match="min_score"):
        await engine.recall("lamp", min_score=bad)
