from __future__ import annotations

from typing import get_args

import pytest

from lamina.errors import ConfigError
from lamina.rag.chunking import MAX_CHUNK_SIZE, ChunkOptions, ChunkStrategy
from lamina.settings.rag import MAX_TOKENS, RagConfig


def test_the_defaults_are_the_documented_ones():
    config = RagConfig()
    assert (config.chunk_strategy, config.chunk_size, config.chunk_overlap) == ("recursive", 512, 50)
    assert (config.top_k, config.min_score, config.search_mode) == (5, None, "hybrid")


def test_strategies_and_limits_are_those_of_the_chunker():
    assert get_args(RagConfig.model_fields["chunk_strategy"].annotation) == tuple(ChunkStrategy)
    assert (RagConfig().chunk_size, RagConfig().chunk_overlap) == (ChunkOptions().size, ChunkOptions().overlap)
    assert MAX_TOKENS == MAX_CHUNK_SIZE


def test_camel_case_is_taken():
    assert RagConfig(chunkSize=100, minScore=0.5, topK=3).chunk_size == 100


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"chunk_size": 0}, "chunk_size"),
        ({"chunk_size": 50}, "chunk_overlap"),
        ({"chunk_overlap": 512}, "chunk_overlap"),
        ({"chunk_overlap": True}, "chunk_overlap"),
        ({"chunk_strategy": "magic"}, "chunk_strategy"),
        ({"min_score": 1.5}, "min_score"),
        ({"top_k": 0}, "top_k"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"chunksize": 5}, "chunksize"),
    ],
)
def test_what_cannot_be_is_refused(settings, field):
    with pytest.raises(ConfigError) as caught:
        RagConfig(**settings)
    assert field in str(caught.value)
