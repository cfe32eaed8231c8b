"""Where Qdrant is, and a client for it: a server's over HTTP, or the library's own local engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient

from lamina.errors import ConfigError

__all__ = ["IN_MEMORY", "Connection", "Location", "locate"]

IN_MEMORY: Final = ":memory:"


class Location:
    """A server's URL and key, or a folder; `str` of it shows neither key nor password."""

    def __init__(self, url: str | None, path: str | None, api_key: str | None) -> None:
        self.url, self.path, self.api_key = url, path, api_key
        if url is None:
            self.place = "the collection in memory" if path == IN_MEMORY else f"the folder {path}"
        else:
            parts = urlsplit(url)
            self.place = f"{parts.hostname}:{parts.port or 6333}"

    def __str__(self) -> str:
        return self.place


def locate(url: str | None, path: str | os.PathLike[str] | None, api_key: str | None) -> Location:
    """The place that the options name.

    Raises:
        ConfigError: they name none or two, or the URL is none of a server. Nothing of it is repeated, because
            it may hold a password.
    """
    if (url is None) == (path is None):
        remedy = "Give the url of a server, or the path of a folder (':memory:' for none) for the local engine."
        raise ConfigError("url", "one of url and path is needed, and not both", remedy)
    if path is not None:
        if api_key is not None:
            raise ConfigError("api_key", "is given with a path", "Only a server takes a key.")
        name = os.fspath(path)
        return Location(None, name if name == IN_MEMORY else str(Path(name).absolute()), None)
    remedy = "Give one such as http://127.0.0.1:6333 or https://name.cloud.qdrant.io:6333."
    try:
        parts = urlsplit(str(url))
        is_known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_known = False
    if not is_known:
        raise ConfigError("url", "is no URL of a Qdrant server", remedy)
    return Location(url, None, api_key)


class Connection:
    """A client that the adapter's threads share.

    The local engine is not safe between threads: there only one has its `turn` at a time.
    """

    def __init__(self, location: Location, *, timeout: float, threads: int) -> None:
        self.location = location
        self._client: QdrantClient
        self._turn: AbstractContextManager[object]
        if location.path is None:
            self._client, self._turn = _remote(location, timeout, threads), nullcontext()
        else:
            self._client, self._turn = _LOCAL.join(location.path)

    @property
    def is_local(self) -> bool:
        return self.location.path is not None

    @contextmanager
    def turn(self) -> Iterator[QdrantClient]:
        """The client, for one task."""
        with self._turn:
            yield self._client

    def close(self) -> None:
        """Let go of it; the local engine's folder is free when its last user has."""
        if self.location.path is None:
            self._client.close()
        else:
            _LOCAL.leave(self.location.path, self._client)


def _remote(location: Location, timeout: float, threads: int) -> QdrantClient:
    key = {} if location.api_key is None else {"api-key": location.api_key}
    limits = httpx.Limits(max_connections=threads, max_keepalive_connections=threads)
    return QdrantClient(
        url=location.url,
        timeout=timeout,  # type: ignore[arg-type]  # it takes fractions and rounds them up
        check_compatibility=False,  # which would ask the server before anybody is ready for its failure
        headers=key,
        limits=limits,
        verify=str(location.url).startswith("https"),  # certificates are not even read where none is asked for
    )


class _LocalClients:
    """One client for each folder that this process has open: the engine locks it against a second one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, str], tuple[QdrantClient, threading.RLock, int]] = {}

    def join(self, path: str) -> tuple[QdrantClient, threading.RLock]:
        if path == IN_MEMORY:
            return QdrantClient(IN_MEMORY), threading.RLock()
        key = os.getpid(), path  # a forked child has none of its parent's
        with self._lock:
            if key in self._open:
                client, lock, users = self._open[key]
            else:
                _check_free(Path(path))
                client = QdrantClient(path=path, force_disable_check_same_thread=True)
                lock, users = threading.RLock(), 0
            self._open[key] = client, lock, users + 1
            return client, lock

    def leave(self, path: str, client: QdrantClient) -> None:
        if path == IN_MEMORY:
            client.close()
            return
        key = os.getpid(), path
        with self._lock:
            _, lock, users = self._open[key]
            if users > 1:
                self._open[key] = client, lock, users - 1
                return
            del self._open[key]
            client.close()


def _check_free(folder: Path) -> None:
    """Refuse a folder that another process has open, before the engine reads all of it and then does the same.

    Raises:
        RuntimeError: as the engine's own.
    """
    import portalocker

    lock = folder / ".lock"
    if not lock.exists():
        return
    with lock.open("r+") as file:
        try:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.LockException:
            raise RuntimeError("the folder is already accessed") from None
        portalocker.unlock(file)


_LOCAL: Final = _LocalClients()
