"""Name → class or factory, by entry point, imported on first use."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, PackageNotFoundError, distribution, entry_points
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.errors import ConfigError

if TYPE_CHECKING:
    from lamina.ports.earlier_store import EarlierStore
    from lamina.ports.embedder import Embedder
    from lamina.ports.language_model import LanguageModel
    from lamina.ports.memory_adapter import MemoryAdapter
    from lamina.ports.reranker import Reranker

__all__ = [
    "adapter_names",
    "adopt_embedder",
    "adopt_language_model",
    "adopt_reranker",
    "load_adapter",
    "load_embedder",
    "load_language_model",
    "load_reranker",
    "open_earlier",
]


def adapter_names() -> list[str]:
    """The adapters that can be named in a configuration, sorted."""
    return sorted({point.name for point in entry_points(group="lamina.adapters")})


def load_adapter(name: str) -> type[MemoryAdapter]:
    """The adapter class of this name.

    Raises:
        ConfigError: no installed package offers the name; the message lists those that are.
        MissingExtra: the adapter's client library is not installed.
    """
    adapter: type[MemoryAdapter] = _load("lamina.adapters", "provider", name)
    return adapter


def load_embedder(spec: str, **options: Any) -> Embedder:
    """The embedder that `provider` or `provider:model` names, made with these options.

    One that another package offers is guarded as a caller's own is: see `adopt_embedder`.

    Raises:
        ConfigError: no installed package offers the provider, or it does not know the model or an option.
        MissingExtra: its library is not installed.
    """
    provider, _, model = spec.partition(":")
    embedder: Embedder = _load("lamina.embedders", "embedding", provider)(model or None, **options)
    ours = type(embedder).__module__.startswith("lamina.")
    return embedder if ours else adopt_embedder(embedder, owned=True)


def load_language_model(spec: str, **options: Any) -> LanguageModel:
    """The language model that `provider:model` names, made with these options; raises as `load_embedder`."""
    provider, colon, model = spec.partition(":")
    if not colon and not _knows("lamina.language_models", provider):
        raise ConfigError("model", f"{spec!r} names no provider", f"Write provider:model, such as openai:{spec}.")
    language_model: LanguageModel = _load("lamina.language_models", "model", provider)(model or None, **options)
    return language_model


def load_reranker(spec: str, **options: Any) -> Reranker:
    """The reranker that `provider` or `provider:model` names, made with these options; raises as `load_embedder`.

    One that another package offers is guarded as a caller's own is: see `adopt_reranker`.
    """
    provider, _, model = spec.partition(":")
    reranker: Reranker = _load("lamina.rerankers", "rerank", provider)(model or None, **options)
    return reranker if type(reranker).__module__.startswith("lamina.") else adopt_reranker(reranker, owned=True)


@cache
def _own() -> EntryPoints:
    """What Lamina itself offers: found without a look at all installed packages, which takes many times as long."""
    try:
        return distribution("lamina").entry_points
    except PackageNotFoundError:  # it is not installed but put beside a program: see all
        return EntryPoints()


def _knows(group: str, name: str) -> bool:
    return any(point.name == name for point in entry_points(group=group))


def _load(group: str, field: str, name: str) -> Any:
    for point in _own().select(group=group, name=name):
        return point.load()
    known = {point.name: point for point in entry_points(group=group)}
    if name not in known:
        raise ConfigError(field, f"{name!r} is unknown", f"Use one of: {', '.join(sorted(known))}.")
    return known[name].load()


def adopt_embedder(thing: object = None, **options: Any) -> Embedder:
    """A caller's own object or function as an embedder: see `lamina.providers.factories.adopted_embedder`."""
    embedder: Embedder = _load("lamina.embedders", "embed", "callable")(thing, **options)
    return embedder


def adopt_language_model(thing: object) -> LanguageModel:
    """The language model made of a caller's own object or function: see `as_language_model` there."""
    language_model: LanguageModel = _load("lamina.language_models", "llm", "callable")(thing)
    return language_model


def adopt_reranker(thing: object, *, owned: bool = False) -> Reranker:
    """A caller's own object or function as a reranker: see `lamina.providers.callable_reranker.as_reranker`."""
    reranker: Reranker = _load("lamina.rerankers", "rerank", "callable")(thing, owned=owned)
    return reranker


def open_earlier(path: str | PathLike[str]) -> EarlierStore:
    """The SQLite file that version 1 wrote, or the PostgreSQL database at a URL, to be read where it is.

    Raises:
        MissingExtra: it is a URL, and `lamina[postgres]` is not installed.
    """
    if isinstance(path, str) and path.startswith(("postgresql://", "postgres://")):
        import lamina.databases.postgres  # noqa: F401 - says which extra is missing
        from lamina.databases.earlier_postgres import EarlierPostgres

        return EarlierPostgres(path)
    from lamina.databases.earlier_sqlite import EarlierSqlite

    return EarlierSqlite(Path(path))
