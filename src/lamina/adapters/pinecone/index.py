"""The index: found or made, and opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import pinecone
from pinecone import errors

from lamina.adapters._shared.options import check_count, check_seconds
from lamina.adapters._shared.patience import attempts
from lamina.adapters.pinecone.failures import NAME
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError

__all__ = ["IndexOptions", "OpenIndex", "open_index"]

MAX_DIMENSION: Final = 20_000
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Where the index is, and how it is made if it is not there."""

    name: str
    api_key: str | None = field(repr=False)
    url: str | None
    dimension: int | None
    cloud: str
    region: str
    threads: int
    timeout: float
    create_timeout: float
    freshness_timeout: float

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            remedy = "Use 1 to 45 lower-case letters, digits and hyphens, none of these at its ends."
            raise ConfigError("index_name", "is no name of a Pinecone index", remedy)
        if self.dimension is not None:
            check_count("dimension", self.dimension, MAX_DIMENSION)
        check_seconds(
            timeout=self.timeout, create_timeout=self.create_timeout, freshness_timeout=self.freshness_timeout
        )
        if self.url is not None:
            _check_url(self.url)

    @property
    def place(self) -> str:
        """The index, for errors."""
        return f"the index {self.name!r}"

    @property
    def is_plain(self) -> bool:
        """Whether the control plane was named without TLS, as on a loopback address; the index is taken to be alike."""
        return self.url is not None and self.url.startswith("http://")


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """The clients of an index that is ready."""

    service: pinecone.Pinecone
    index: pinecone.Index
    dimension: int

    def close(self) -> None:
        """Let go of their connections."""
        self.index.close()
        self.service.close()


def open_index(options: IndexOptions) -> OpenIndex:
    """Find the index, or make it, and wait until it is ready.

    Raises:
        ConfigError: it cannot keep memories, or is not there and nobody says how long its vectors are.
        AdapterUnavailable: it was not ready in time.
    """
    try:
        service = pinecone.Pinecone(
            api_key=options.api_key,
            host=options.url,
            timeout=options.timeout,
            connection_pool_maxsize=options.threads,
            ssl_verify=not options.is_plain,  # without TLS, no certificates are loaded
        )
    except errors.PineconeValueError as error:
        raise ConfigError("api_key", "is missing or malformed", "Give it, or set PINECONE_API_KEY.") from error
    try:
        model = _ready(service, options)
        dimension = _dimension(model, options)
        index = pinecone.Index(
            host=_host(model, options),
            api_key=service.config.api_key,
            timeout=options.timeout,
            connection_pool_maxsize=options.threads,
            ssl_verify=not options.is_plain,
        )
    except BaseException:
        service.close()
        raise
    return OpenIndex(service, index, dimension)


def _ready(service: pinecone.Pinecone, options: IndexOptions) -> pinecone.IndexModel:
    model = _described(service, options)
    for _ in attempts(options.create_timeout, first=0.2, longest=4.0):
        if model.status.ready and model.host is not None:
            return model
        if model.status.state in {"InitializationFailed", "Terminating", "Disabled"}:
            raise AdapterError(NAME, f"{options.place} is not being served", "Look at it in Pinecone's console.")
        model = service.indexes.describe(options.name)
    problem = f"{options.place} was not ready within {options.create_timeout:g} seconds"
    raise AdapterUnavailable(NAME, problem, "Try again.")


def _described(service: pinecone.Pinecone, options: IndexOptions) -> pinecone.IndexModel:
    try:
        return service.indexes.describe(options.name)
    except errors.NotFoundError as error:
        if options.dimension is None:
            remedy = "Give the length of your embedder's vectors, and the index is made; it can never be changed."
            raise ConfigError("dimension", f"is missing, and there is no index {options.name!r}", remedy) from error
    # Under the name of this field, vectors are read and written past any schema of documents.
    schema = {"fields": {"_values": {"type": "dense_vector", "dimension": options.dimension, "metric": "cosine"}}}
    deployment = {"deployment_type": "managed", "cloud": options.cloud, "region": options.region}
    try:
        return service.indexes.create(name=options.name, schema=schema, deployment=deployment, timeout=-1)
    except errors.ConflictError:  # somebody else was faster
        return service.indexes.describe(options.name)


def _dimension(model: pinecone.IndexModel, options: IndexOptions) -> int:
    try:
        dimension, metric = model.dimension, model.metric
    except AttributeError:  # what the client raises where there is no such vector, or more than one
        dimension, metric = None, ""
    if dimension is None or metric != "cosine":
        problem = f"names {options.name!r}, which is no index of one dense vector compared by cosine"
        raise ConfigError("index_name", problem, "Name another one, and it is made as it must be.")
    if options.dimension not in {None, dimension}:
        problem = f"is {options.dimension}, but the index {options.name!r} has {dimension}"
        raise ConfigError("dimension", problem, "Leave it out, or name another index.")
    return dimension


def _host(model: pinecone.IndexModel, options: IndexOptions) -> str:
    host = model.host or ""
    if options.is_plain:
        return f"http://{host.removeprefix('https://').removeprefix('http://')}"
    return host


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError, TypeError):
        is_right = False
        parts = urlsplit("")
    if not is_right or parts.username is not None or parts.query or parts.fragment:
        remedy = "Give an address such as https://api.pinecone.io, without a user; the key is api_key."
        raise ConfigError("url", "is no address of a control plane", remedy)
