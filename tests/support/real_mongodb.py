"""A MongoDB in place of the real one: a third-party server that speaks its protocol over its storage engine."""

from __future__ import annotations

import secrets
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import bson
import pymongo
import pytest
import services
from cutting_proxy import CuttingProxy

_FEW: Final = 100


class MongoDBServer(services.Process):
    """A server process on the loopback address, which tests may kill and start again. Everybody may log in.

    It has MongoDB's own fail points, which `configureFailPoint` sets. What it acknowledges is on the disk only where
    it is told to be durable: unlike MongoDB, it does so for no write concern.
    """

    program: tuple[str | Path, ...] = ("-m", "secantus")

    def __init__(self, *arguments: str, durable: bool = False) -> None:
        try:
            import secantus  # noqa: F401 - the process runs it
        except ImportError as error:
            raise services.Missing("secantusdb is not installed") from error
        super().__init__("mongodb")
        (self.folder / "secantusd.toml").write_text(f"[storage]\nsync_on_commit = {str(durable).lower()}\n")
        self.port = services.free_port()
        self.arguments = arguments
        self.start()

    @property
    def url(self) -> str:
        """Looked at often, since a failure that is only pretended is followed by no news of the server's."""
        return f"mongodb://127.0.0.1:{self.port}/?heartbeatFrequencyMS=500"

    def start(self) -> None:
        command = [sys.executable, *self.program, "--port", str(self.port), "--storage-path", self.folder / "data"]
        command += ["--config", self.folder / "secantusd.toml", "--enable-test-commands"]
        self.run([*command, *self.arguments], services.listens(self.port))

    @contextmanager
    def client(self) -> Iterator[pymongo.MongoClient[Any]]:
        """A client beside the code under test."""
        with pymongo.MongoClient(self.url, directConnection=True, tz_aware=True) as client:
            yield client

    @contextmanager
    def failing(self, *commands: str, times: int | None = None, **how: Any) -> Iterator[None]:
        """Let these commands fail, so many times or until the end."""
        mode = "alwaysOn" if times is None else {"times": times}
        with self.client() as client:
            point = {"configureFailPoint": "failCommand", "mode": mode, "data": {"failCommands": [*commands], **how}}
            client.admin.command(point)
            try:
                yield
            finally:
                client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})

    def empty(self, client: pymongo.MongoClient[Any], table: str, database: str = "lamina") -> None:
        """Remove what an adapter stored, and where it is much, the collections as well."""
        for name in (table, f"{table}.history", f"{table}.controls"):
            collection = client[database][name]
            if collection.estimated_document_count() > _FEW:
                collection.drop()
            else:
                collection.delete_many({})

    def drop(self, table: str, database: str = "lamina") -> None:
        """Remove what an adapter made."""
        with self.client() as client:
            for name in (table, f"{table}.history", f"{table}.controls"):
                client[database].drop_collection(name)


class MongoDBServerWithProducts(MongoDBServer):
    """The same with the product of vectors that MongoDB has from 8.3 on: for many searches by vector."""

    program = (Path(__file__).with_name("serve_mongodb_with_products.py"),)


@pytest.fixture(scope="session")
def mongodb() -> Iterator[Any]:
    """One server for the whole run; each test keeps to a collection of its own."""
    yield from services.started("mongodb")


@pytest.fixture
def mongodb_table(mongodb: MongoDBServer) -> Iterator[str]:
    """A collection that no other test uses; what was made under it is dropped."""
    name = f"t{secrets.token_hex(6)}"
    yield name
    mongodb.drop(name)


class MongoDBProxy(CuttingProxy):
    """Goes message by message.

    `command` may change what the client sends, or answer in the server's place; `cut_after` says of a command
    whether the connection is cut when the server has carried it out, so that no answer reaches the client.
    """

    def __init__(self, port: int) -> None:
        self.command: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None
        self.cut_after: Callable[[dict[str, Any]], bool] = lambda _: False
        super().__init__(port)

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def read(self, source: socket.socket) -> bytes:
        head = _exactly(source, 4)
        return head + _exactly(source, struct.unpack("<i", head)[0] - 4)

    def is_cut_at(self, data: bytes, client: socket.socket, server: socket.socket) -> bool:
        if struct.unpack_from("<i", data, 12)[0] != _OP_MSG:
            server.sendall(data)
            return False
        command = _decoded(data)
        answer = self.command(command)
        number = struct.unpack_from("<i", data, 4)[0]
        if answer is not None:
            client.sendall(_encoded(answer, number=0, to=number))
            return False
        server.sendall(_encoded(command, number=number, to=0))
        if self.cut_after(command):
            self.read(server)
            self.cuts += 1
            return True
        return False


_OP_MSG = 2013


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise ConnectionError("the other side has gone")
        data += part
    return data


def _decoded(message: bytes) -> dict[str, Any]:
    """The command of an OP_MSG: its body, with each sequence of documents as a list in it."""
    command: dict[str, Any] = {}
    at = 20
    sequences: dict[str, Any] = {}
    while at < len(message):
        kind = message[at]
        at += 1
        size = struct.unpack_from("<i", message, at)[0]
        if kind == 0:
            command = bson.decode(message[at : at + size])
        else:
            end = message.index(b"\0", at + 4)
            documents = message[end + 1 : at + size]
            sequences[message[at + 4 : end].decode()] = bson.decode_all(documents)
        at += size
    return {**command, **sequences}


def _encoded(body: dict[str, Any], *, number: int, to: int) -> bytes:
    data = struct.pack("<iB", 0, 0) + bson.encode(body)
    return struct.pack("<iiii", 16 + len(data), number, to, _OP_MSG) + data


@pytest.fixture
def mongodb_proxy(mongodb: MongoDBServer) -> Iterator[MongoDBProxy]:
    proxy = MongoDBProxy(mongodb.port)
    yield proxy
    proxy.close()
