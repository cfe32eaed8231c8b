import subprocess
import sys
from math import sqrt

import pytest

from lamina.errors import ConfigError
from lamina.testing import HashingEmbedder


def cosine(a, b) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


async def test_similar_texts_are_close_and_others_are_not():
    lamp, lamps, kite = await HashingEmbedder().embed_documents(
        ["The harbour lamp is lit", "harbour lamps are lit", "A kite above the dunes"]
    )
    assert cosine(lamp, lamps) > 0.6
    assert abs(cosine(lamp, kite)) < 0.3


async def test_a_query_lies_where_its_document_does():
    embedder = HashingEmbedder(64)
    [document] = await embedder.embed_documents(["The harbour lamp"])
    assert await embedder.embed_query("The harbour lamp") == document
    assert embedder.texts == 2


@pytest.mark.parametrize("dimensions", [1, 2, 7, 384])
@pytest.mark.parametrize("text", ["lamp", "路線図", "🎉", "***", "", "\ud83d"])
async def test_every_text_has_a_unit_vector_of_the_length_asked_for(dimensions, text):
    vector = await HashingEmbedder(dimensions).embed_query(text)
    assert len(vector) == dimensions
    assert sqrt(cosine(vector, vector)) == pytest.approx(1, abs=1e-6)


async def test_a_text_has_the_same_vector_in_every_process():
    code = (
        "import asyncio; from lamina.testing import HashingEmbedder; "
        "print(list(asyncio.run(HashingEmbedder(8).embed_query('the harbour lamp'))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: ASYNC221 - the test waits for nothing else
    assert run.stdout.strip() == str(list(await HashingEmbedder(8).embed_query("the harbour lamp")))


async def test_it_says_who_it_is_and_closes():
    embedder = HashingEmbedder()
    assert (embedder.provider, embedder.model) == ("testing", "hashing")
    await embedder.close()


def test_no_dimensions_are_refused():
    with pytest.raises(ConfigError, match="dimensions"):
        HashingEmbedder(0)
