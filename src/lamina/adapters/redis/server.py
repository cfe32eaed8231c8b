"""The connection to a server: what kind of server it is, and the scripts that run inside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.exceptions import ConnectionError as ConnectionFailed
from redis.exceptions import ResponseError
from redis.retry import Retry

from lamina.adapters.redis.layout import BACKEND
from lamina.adapters.redis.options import Options
from lamina.errors import AdapterError, ConfigError

__all__ = ["Server"]

_OLDEST: Final = (6, 2)
_SCRIPTS: Final = ("commit", "load", "alike", "count", "reindex", "scan")


class Server:
    """A pool of connections to one server, and the scripts of one table.

    `connected` counts the connections that were ever made: when it has grown, the server may have been
    restarted in between, or be another one.
    """

    def __init__(self, options: Options) -> None:
        self.place = options.place
        self.connected = 0
        self._prefix = options.prefix
        self._counting = threading.Lock()
        self._pool = redis.BlockingConnectionPool(
            **{"host": "localhost", **options.address} if "path" not in options.address else options.address,
            max_connections=options.threads,
            timeout=options.timeout,
            socket_timeout=options.timeout,
            socket_connect_timeout=options.connect_timeout,
            protocol=3,
            retry=Retry(NoBackoff(), 0),  # a change whose answer was lost must not be repeated blindly
            redis_connect_func=self._greet,
        )
        self.client = redis.Redis(connection_pool=self._pool)
        self._scripts: dict[str, Script] = {name: self.client.register_script(_source(name)) for name in _SCRIPTS}

    def close(self) -> None:
        """Let go of all connections."""
        self._pool.disconnect()

    def check(self, *, accept_eviction: bool) -> bool:
        """Whether the server may drop what does not expire; refuse one that cannot be used.

        Raises:
            ConfigError: it is too old, or a node of a cluster.
            AdapterError: it may drop what does not expire, and that was not accepted.
        """
        about = self.client.info()
        version = str(about["redis_version"])
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            raise ConfigError("url", f"{self.place} is Redis {version}", "Use Redis 6.2 or newer.")
        if about.get("cluster_enabled"):
            remedy = "Give a server that is none: the scripts change keys that a cluster keeps on several nodes."
            raise ConfigError("url", f"{self.place} is a node of a Redis Cluster", remedy)
        policy = str(about.get("maxmemory_policy", "noeviction"))
        evicts = bool(about.get("maxmemory", 0)) and policy != "noeviction"
        if evicts and not accept_eviction:
            problem = f"{self.place} drops memories when it is full (maxmemory-policy {policy})"
            remedy = "Set maxmemory-policy to noeviction, or give accept_eviction=True if losing memories is fine."
            raise AdapterError(BACKEND, problem, remedy)
        return evicts

    def ask(self, script: str, *arguments: Any) -> Any:
        """Run a script that only reads, again if the connection was lost."""
        while True:
            try:
                found = self._run(script, arguments)
            except ConnectionFailed:
                found = self._run(script, arguments)
            if found is not None:  # else it first cleared away more than one call should
                return found

    def tell(self, script: str, *arguments: Any) -> Any:
        """Run a script that writes, once."""
        return self._run(script, arguments)

    def read(self, *command: Any) -> Any:
        """Run a command that only reads, again if the connection was lost."""
        try:
            return self.client.execute_command(*command)
        except ConnectionFailed:
            return self.client.execute_command(*command)

    def _run(self, script: str, arguments: Sequence[Any]) -> Any:
        return self._scripts[script](keys=[self._prefix], args=list(arguments))

    def _greet(self, connection: Any) -> None:
        connection.on_connect()
        with self._counting:
            self.connected += 1


def has_query_engine(client: redis.Redis) -> bool:
    """Whether the server knows the commands of the query engine."""
    try:
        client.execute_command("FT._LIST")
    except ResponseError as error:
        if "unknown command" in str(error).lower():
            return False
        raise
    return True


def as_json(value: Any) -> str:
    """What a script decodes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@cache
def _source(name: str) -> str:
    folder = Path(__file__).parent
    return "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))
