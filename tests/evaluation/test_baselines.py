from __future__ import annotations

import sys
from types import SimpleNamespace

from lamina.evaluation.baselines import BASELINES, Baseline, fts5_porter, reciprocal_rank_fusion, vector_only
from lamina.evaluation.dataset import load_dataset
from lamina.testing import HashingEmbedder


def test_the_plain_keyword_baseline_stems_and_keeps_to_the_group(ferries):
    found = fts5_porter(load_dataset(ferries), 10)
    assert found["q2"] == ["a/2"]
    assert found["q3"] == ["b/1"]
    assert found["q4"] == []


async def test_the_plain_vector_baseline_keeps_to_the_group(ferries):
    found = await vector_only(load_dataset(ferries), 10, HashingEmbedder())
    assert found["q3"] == ["b/1", "b/2"]
    assert found["q5"][0] == "b/2"
    assert len(found["q1"]) == 3


def test_fusion_rewards_what_both_rankings_have():
    fused = reciprocal_rank_fusion([{"q": ["a", "b"]}, {"q": ["c", "b"]}], 2)
    assert fused == {"q": ["b", "a"]}


def test_a_baseline_whose_module_is_not_installed_is_not_available():
    assert BASELINES[0].is_available
    assert Baseline("json", fts5_porter, needs="json").is_available
    assert not Baseline("none", fts5_porter, needs="no_such_module").is_available


def test_bm25s_ranks_the_documents_that_a_stand_in_of_it_scores(ferries, monkeypatch):
    class BM25:
        def index(self, corpus, **_):
            self.corpus = corpus

        def retrieve(self, words, *, k, **_):
            scores = [float(len(set(words[0]) & set(text))) for text in self.corpus]
            order = sorted(range(len(scores)), key=lambda place: -scores[place])[:k]
            return [order], [[scores[place] for place in order]]

    stand_in = SimpleNamespace(BM25=BM25, tokenize=lambda texts, **_: [text.lower().split() for text in texts])
    monkeypatch.setitem(sys.modules, "bm25s", stand_in)
    found = BASELINES[1].rank(load_dataset(ferries), 10)
    assert found["q3"] == ["b/1"]
    assert found["q2"] == ["a/2"]
