"""What the names in a configuration make; the entry points of Lamina's own providers lead here.

No provider is ever chosen because a key happens to be set: OPENAI_API_KEY is read only for `openai`, by
name, and sent only to OpenAI's own address.
Every embedder but the static model2vec gets a cache; one that is reached over a network, or is a caller's own,
also gets time limits and a circuit breaker.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from lamina.errors import ConfigError
from lamina.ports.embedder import Embedder
from lamina.ports.language_model import LanguageModel
from lamina.ports.reranker import Reranker
from lamina.providers.resilience import (
    CACHE_BYTES,
    BorrowedEmbedder,
    CachingEmbedder,
    EmbeddingCache,
    ObservedEmbedder,
    resilient,
    unwrapped,
)

__all__ = [
    "adopted_embedder",
    "builtin_embedder",
    "cross_encoder_reranker",
    "fastembed_embedder",
    "http_embedder",
    "http_language_model",
    "model2vec_embedder",
    "ollama_embedder",
    "ollama_language_model",
    "openai_embedder",
    "openai_language_model",
    "pydantic_ai_embedder",
    "pydantic_ai_language_model",
    "sentence_transformers_embedder",
    "use_embedder",
]

T = TypeVar("T")

OLLAMA_URL: Final = "http://localhost:11434/v1"


def adopted_embedder(thing: object = None, *, owned: bool = False, **options: Any) -> Embedder:
    """Somebody's own object or function: see `lamina.providers.callables.as_embedder`.

    An `Embedder` keeps its provider and model, and is checked as a function is: it raises only `ProviderError`s and
    gives only good vectors. It is closed only if it is `owned`.

    Raises:
        ConfigError: a model is named that is not the embedder's own.
    """
    from lamina.providers.callables import as_embedder, guarded_embedder

    embedder = as_embedder(thing, **options)
    if embedder is not thing:
        return resilient(embedder)
    if options.get("model") not in {None, embedder.model}:
        remedy = "Leave it out, or give a function in place of an embedder."
        raise ConfigError("model", f"the embedder that is given says it is {embedder.model!r}", remedy)
    if _checks_itself(embedder) and options.get("dimensions") is None:
        return resilient(embedder if owned else BorrowedEmbedder(embedder))
    return resilient(guarded_embedder(embedder, dimensions=options.get("dimensions"), owned=owned))


def builtin_embedder(model: str | None = None, **options: Any) -> Embedder:
    """The default embedder."""
    from lamina.providers.builtin import BuiltinEmbedder

    return _cached(_made("builtin", BuiltinEmbedder, model, options))


def openai_embedder(model: str | None = None, **options: Any) -> Embedder:
    """OpenAI's embeddings; the key is `api_key` or else, at OpenAI's own address, OPENAI_API_KEY."""
    from lamina.providers.openai_compatible import OpenAICompatibleEmbedder

    return resilient(_made("openai", OpenAICompatibleEmbedder, model, _with_openai_key(options)))


def ollama_embedder(model: str | None = None, **options: Any) -> Embedder:
    """Embeddings of an Ollama on this machine, or at `base_url`; without a key."""
    from lamina.providers.openai_compatible import OpenAICompatibleEmbedder

    options = {"base_url": OLLAMA_URL, "provider": "ollama", **options}
    return resilient(_made("ollama", OpenAICompatibleEmbedder, model, options))


def http_embedder(model: str | None = None, **options: Any) -> Embedder:
    """Embeddings of the OpenAI-compatible server at `base_url`."""
    from lamina.providers.openai_compatible import OpenAICompatibleEmbedder

    return resilient(_made("http", OpenAICompatibleEmbedder, model, _with_base_url(options)))


def use_embedder(model: str | None = None, **options: Any) -> Embedder:
    """The part of the default embedder that knows other languages, alone."""
    from lamina.providers.builtin import BuiltinEmbedder
    from lamina.providers.universal_encoder import MODEL

    return _cached(BuiltinEmbedder(MODEL if model is None else model, provider="use", **options))


def fastembed_embedder(model: str | None = None, **options: Any) -> Embedder:
    """A model of fastembed."""
    from lamina.providers import local_models

    return _cached(_made("fastembed", local_models.fastembed_embedder, model, options))


def sentence_transformers_embedder(model: str | None = None, **options: Any) -> Embedder:
    """A model of sentence-transformers."""
    from lamina.providers import local_models

    return _cached(_made("sentence-transformers", local_models.sentence_transformers_embedder, model, options))


def model2vec_embedder(model: str | None = None, **options: Any) -> Embedder:
    """A model of model2vec."""
    from lamina.providers import local_models

    return ObservedEmbedder(_made("model2vec", local_models.model2vec_embedder, model, options))


def pydantic_ai_embedder(model: str | None = None, **options: Any) -> Embedder:
    """Any embedding model of pydantic-ai; its name has the provider in it: `pydantic-ai:cohere:embed-v4.0`."""
    from lamina.providers.pydantic_ai import PydanticAIEmbedder

    return resilient(_made("pydantic-ai", PydanticAIEmbedder, model, options))


def openai_language_model(model: str | None = None, **options: Any) -> LanguageModel:
    """OpenAI's chat completions; the key is `api_key` or else, at OpenAI's own address, OPENAI_API_KEY."""
    from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel

    return _made("openai", OpenAICompatibleLanguageModel, model, _with_openai_key(options))


def ollama_language_model(model: str | None = None, **options: Any) -> LanguageModel:
    """A language model of an Ollama on this machine, or at `base_url`; without a key."""
    from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel

    options = {"base_url": OLLAMA_URL, "provider": "ollama", **options}
    return _made("ollama", OpenAICompatibleLanguageModel, model, options)


def http_language_model(model: str | None = None, **options: Any) -> LanguageModel:
    """A language model of the OpenAI-compatible server at `base_url`."""
    from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel

    return _made("http", OpenAICompatibleLanguageModel, model, _with_base_url(options))


def pydantic_ai_language_model(model: str | None = None, **options: Any) -> LanguageModel:
    """Any language model of pydantic-ai; its name has the provider in it: `pydantic-ai:anthropic:claude-haiku-4-5`."""
    from lamina.providers.pydantic_ai import PydanticAILanguageModel

    return _made("pydantic-ai", PydanticAILanguageModel, model, options)


def cross_encoder_reranker(model: str | None = None, **options: Any) -> Reranker:
    """The cross-encoder that comes with Lamina."""
    from lamina.providers.cross_encoder import CrossEncoder

    return _made("cross-encoder", CrossEncoder, model, options)


def _checks_itself(embedder: Embedder) -> bool:
    """Whether it is Lamina's own, below all wrappers; one of those may mean a zero vector, as the builtin one does."""
    return type(unwrapped(embedder)).__module__.startswith("lamina.providers.")


def _cached(embedder: Embedder) -> Embedder:
    return CachingEmbedder(ObservedEmbedder(embedder), EmbeddingCache(CACHE_BYTES))


def _made(name: str, factory: Callable[..., T], model: str | None, options: dict[str, Any]) -> T:
    """What the factory makes, if it knows every option."""
    parameters = inspect.signature(factory).parameters.values()
    known = sorted(each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY)
    for option in options:
        if option not in known:
            remedy = f"Use: {', '.join(known)}." if known else "It has none."
            raise ConfigError(option, f"is no option of the provider {name}", remedy)
    if model is None and next(iter(inspect.signature(factory).parameters.values())).default is inspect.Parameter.empty:
        raise ConfigError("model", f"is missing: {name} has no default", f"Name one, as in {name}:MODEL.")
    return factory(model, **options)


def _with_openai_key(options: dict[str, Any]) -> dict[str, Any]:
    """The options with a key. The environment's is for OpenAI alone: whoever sets another address gives its key too."""
    from lamina.providers.openai_compatible import OPENAI_URL

    key = options.get("api_key")
    if not key and options.get("base_url") not in {None, OPENAI_URL, f"{OPENAI_URL}/"}:
        problem = "is missing beside base_url: OPENAI_API_KEY is used for OpenAI's own address only"
        raise ConfigError(
            "api_key", problem, "Give the key of that address, or name a server without one as http:MODEL."
        )
    key = key or os.environ.get("OPENAI_API_KEY")
    if not key:
        raise ConfigError("api_key", "is missing, and OPENAI_API_KEY is not set", "Give one of the two.")
    return {"provider": "openai", **options, "api_key": key}


def _with_base_url(options: dict[str, Any]) -> dict[str, Any]:
    if not options.get("base_url"):
        raise ConfigError("base_url", "is missing", "Give the server's address, such as http://localhost:8080/v1.")
    return {"provider": "http", **options}
