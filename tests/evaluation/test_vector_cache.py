from __future__ import annotations

import pytest

from lamina.errors import InvalidInput
from lamina.evaluation.vector_cache import DiskCachedEmbedder, VectorCache
from lamina.testing import HashingEmbedder


async def test_a_text_is_embedded_once_for_all_runs_of_a_model(tmp_path):
    plain = HashingEmbedder(8)
    for run in range(2):
        cache, inner = VectorCache(tmp_path / "vectors.db"), HashingEmbedder(8)
        embedder = DiskCachedEmbedder(inner, cache)
        vectors = await embedder.embed_documents(["one", "two", "one"])
        assert [list(each) for each in vectors] == [
            list(each) for each in await plain.embed_documents(["one", "two", "one"])
        ]
        assert list(await embedder.embed_query("one")) == list(await plain.embed_query("one"))
        assert (embedder.take_query_seconds() is None) == bool(run)
        assert embedder.take_query_seconds() is None
        assert inner.texts == (1 if run else 4)  # one tells how many dimensions there are
        cache.close()
    assert b"one" not in (tmp_path / "vectors.db").read_bytes()


async def test_vectors_of_another_model_are_not_taken_for_its_own(tmp_path):
    cache = VectorCache(tmp_path / "vectors.db")
    await DiskCachedEmbedder(HashingEmbedder(8), cache).embed_documents(["one"])
    (vector,) = await DiskCachedEmbedder(HashingEmbedder(16), cache).embed_documents(["one"])
    assert len(vector) == 16
    cache.close()


def test_a_file_that_is_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("something else " * 99)
    with pytest.raises(InvalidInput, match="cannot be used"):
        VectorCache(tmp_path / "notes.txt")
