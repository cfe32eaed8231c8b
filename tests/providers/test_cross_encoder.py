from __future__ import annotations

import asyncio
import shutil
from importlib.metadata import distribution
from pathlib import Path

import pytest

from lamina.errors import ConfigError, ProviderError
from lamina.ports.reranker import reads
from lamina.providers import cross_encoder
from lamina.providers.cross_encoder import CrossEncoder
from lamina.registry import load_reranker

QUERY = "When does the library close?"
TEXTS = [
    "The library shuts its doors at eight in the evening.",
    "The library has a cat.",
    "",
    "x" * 100_000,
    "[SEP] 🦉",
]


async def test_a_text_that_answers_gets_more_than_one_that_mentions() -> None:
    scores = await CrossEncoder().score(QUERY, TEXTS)
    assert scores[0] > 0.5 > scores[1]
    assert scores[0] == max(scores)
    assert all(0 <= score <= 1 for score in scores)


async def test_a_text_gets_the_same_score_alone_among_others_and_side_by_side() -> None:
    reranker = CrossEncoder()
    together, *again = await asyncio.gather(*(reranker.score(QUERY, TEXTS) for _ in range(3)))
    assert again == [together, together]
    assert [(await reranker.score(QUERY, [text]))[0] for text in TEXTS] == together
    assert await reranker.score(QUERY, []) == []


@pytest.mark.parametrize(
    ("query", "known"),
    [
        (QUERY, True),
        ("adoption agency", True),
        ("Where is the Straße of Käthe?", True),
        ("42", True),
        ("Tea: no. Coffee: yes, at 8, with milk.", True),
        ("Wann schließt die Bibliothek?", False),
        ("Cuándo cierra la biblioteca", False),
        ("Quand est-ce que la bibliothèque ferme ?", False),
        ("Wanneer sluit de bibliotheek?", False),
        ("図書館はいつ閉まりますか", False),
        ("图书馆几点关门?", False),
        ("Когда закрывается библиотека?", False),
        ("مكتبة", False),
        ("Müllabfuhr", False),
    ],
)
def test_only_what_may_be_english_prose_is_read(query: str, known: bool) -> None:
    reranker = load_reranker("cross-encoder")
    assert reads(reranker, query, TEXTS[:2]) is known
    assert reads(reranker, QUERY, [query] * 2) is known
    assert not reads(reranker, query, ["def closes(self, day=None):\n    return self._hours[day or today()].end"])


async def test_a_file_that_is_missing_or_not_the_reviewed_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="cannot be read"):
        await CrossEncoder(root=tmp_path).score(QUERY, TEXTS)
    files = cross_encoder._FILES
    for name in files.sha256:
        shutil.copy(str(distribution(files.distribution).locate_file(f"{files.folder}/{name}")), tmp_path / name)
    (tmp_path / "vocab.txt").write_text("[CLS]\n[SEP]\n[UNK]\n")
    with pytest.raises(ProviderError, match="not the reviewed one"):
        await CrossEncoder(root=tmp_path).score(QUERY, TEXTS)


def test_another_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="ms-marco-MiniLM-L-12-v2-int8"):
        load_reranker("cross-encoder:large")
