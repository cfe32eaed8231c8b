"""Embedders that run in this process with optional libraries, loaded at first use in a worker thread."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from lamina.errors import ConfigError, MissingExtra
from lamina.providers.callables import CallableEmbedder
from lamina.providers.vectors import BatchEmbed
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["fastembed_embedder", "model2vec_embedder", "sentence_transformers_embedder"]

Encode: TypeAlias = Callable[[list[str]], Iterable[Any]]


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
