"""A MongoDB in place of the real one: a third-party server that speaks its protocol over its storage engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import services


class MongoDBServer(services.Process):
    """A server process on the loopback address, which tests may kill and start again. Everybody may log in.

    It has MongoDB's own fail points, which `configureFailPoint` sets.
    """

    def __init__(self, *arguments: str) -> None:
        try:
            import secantus  # noqa: F401 - the process runs it
        except ImportError as error:
            raise services.Missing("secantusdb is not installed") from error
        super().__init__("mongodb")
        self.port = services.free_port()
        self._arguments = arguments
        self.start()

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/"

    def start(self) -> None:
        command = [sys.executable, "-m", "secantus", "--port", str(self.port), "--storage-path", self.folder / "data"]
        self.run([*command, "--enable-test-commands", *self._arguments], services.listens(self.port))


@pytest.fixture(scope="session")
def mongodb() -> Iterator[Any]:
    """One server for the whole run; each test keeps to a collection of its own."""
    yield from services.started("mongodb")
