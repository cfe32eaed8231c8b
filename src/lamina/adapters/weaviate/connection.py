"""Where the service is, and the client of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

import weaviate
from weaviate.classes.init import AdditionalConfig, Auth, Timeout
from weaviate.config import ConnectionConfig, GrpcConfig
from weaviate.connect import ConnectionParams
from weaviate.exceptions import WeaviateStartUpError

from lamina.adapters._shared.options import check_count, check_seconds
from lamina.adapters.weaviate.failures import NAME
from lamina.errors import AdapterError, ConfigError

__all__ = ["Connection", "connected"]

_LEAST: Final = (1, 33)
"""The version since which filters can say what is not in a list."""

_GRPC: Final = 50_051

_RECONNECTING: Final = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]
"""A service that is up again is noticed soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the service is, and how long it may take."""

    url: str = field(repr=False)
    api_key: str | None = field(repr=False)
    grpc_host: str | None
    grpc_port: int | None
    threads: int
    timeout: float
    freshness_timeout: float

    def __post_init__(self) -> None:
        _split(self.url)
        if self.api_key is not None and (not self.api_key.strip() or not self.api_key.isprintable()):
            raise ConfigError("api_key", "is blank or malformed", "Give the key alone, or leave it out.")
        if self.grpc_host is not None and (not self.grpc_host or set(self.grpc_host) & set("/@ ")):
            raise ConfigError("grpc_host", "is no name of a host", "Give the host alone; the port is grpc_port.")
        if self.grpc_port is not None:
            check_count("grpc_port", self.grpc_port, 65_535)
        if self.grpc_address == (self.address.hostname, _port(self.address)):
            raise ConfigError("grpc_port", "is that of url", "Weaviate serves gRPC on a port of its own.")
        check_seconds(timeout=self.timeout, freshness_timeout=self.freshness_timeout)

    @property
    def address(self) -> SplitResult:
        """Of HTTP."""
        return _split(self.url)

    @property
    def grpc_address(self) -> tuple[str, int]:
        """Host and port of gRPC: those that were given, or else those that Weaviate uses by default."""
        host, port = self.address.hostname or "", _GRPC
        if host.endswith(".weaviate.network"):
            name, _, domain = host.partition(".")
            host, port = f"{name}.grpc.{domain}", 443
        elif host.endswith(".weaviate.cloud"):
            host, port = f"grpc-{host}", 443
        return self.grpc_host or host, self.grpc_port or port

    @property
    def place(self) -> str:
        """The service, for errors."""
        return f"Weaviate at {self.address.hostname}:{_port(self.address)}"


def connected(connection: Connection) -> weaviate.WeaviateClient:
    """A client that has reached the service.

    Raises:
        AdapterError: what answers is no Weaviate, or one that is too old.
    """
    client = weaviate.WeaviateClient(
        connection_params=_params(connection),
        auth_client_secret=None if connection.api_key is None else Auth.api_key(connection.api_key),
        additional_config=AdditionalConfig(
            timeout=Timeout(query=connection.timeout, insert=connection.timeout, init=connection.timeout),
            connection=ConnectionConfig(
                session_pool_connections=connection.threads, session_pool_maxsize=connection.threads
            ),
            grpc_config=GrpcConfig(channel_options=_RECONNECTING),
        ),
        skip_init_checks=True,  # they also ask a package index for news
    )
    try:
        version = _version(client, connection)
        _check_version(version, connection)
    except BaseException:
        client.close()
        raise
    return client


def _version(client: weaviate.WeaviateClient, connection: Connection) -> str:
    try:
        client.connect()
        version: str = client.get_meta()["version"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{connection.place} does not answer as Weaviate does"
        raise AdapterError(NAME, problem, "Check url.") from error
    except WeaviateStartUpError as error:
        if error.__cause__ is not None:
            raise
        return "1.26"  # or older: the client itself takes none below 1.27
    return version


def _check_version(version: str, connection: Connection) -> None:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < _LEAST:
        least = ".".join(map(str, _LEAST))
        problem = f"{connection.place} has the version {version} or an older one, and {least} is needed"
        raise AdapterError(NAME, problem, "Upgrade the service.")


def _params(connection: Connection) -> ConnectionParams:
    address = connection.address
    is_secure = address.scheme == "https"
    host, port = connection.grpc_address
    return ConnectionParams.from_params(
        http_host=address.hostname or "",
        http_port=_port(address),
        http_secure=is_secure,
        grpc_host=host,
        grpc_port=port,
        grpc_secure=is_secure,
    )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        is_right = is_right and parts.path in {"", "/"} and not (parts.query or parts.fragment)
    except (ValueError, AttributeError, TypeError):
        is_right, parts = False, urlsplit("")
    if not is_right or parts.username is not None or parts.password is not None:
        remedy = "Give an address such as http://localhost:8080, without a user or path; the key is api_key."
        raise ConfigError("url", "is no address of a Weaviate", remedy)
    return parts


def _port(address: SplitResult) -> int:
    return address.port or (443 if address.scheme == "https" else 80)
