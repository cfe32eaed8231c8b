"""`lamina serve` as a process of its own, over a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import lamina as lamina_package

COMMAND = [sys.executable, "-c", "from lamina.cli import main; main()"]
Served = Callable[..., AbstractContextManager[tuple[subprocess.Popen[str], str]]]


@pytest.fixture
def served(environment: dict[str, str], folder: Path) -> Served:
    """Starts the command, and gives the process and the address that it tells."""
    env = environment | {"PYTHONPATH": str(Path(lamina_package.__file__).parents[1])}

    @contextlib.contextmanager
    def start(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        with subprocess.Popen(
            [*COMMAND, "serve", "--json", "--port", "0", *arguments],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                yield process, json.loads(process.stdout.readline())["address"]
            finally:
                process.kill()

    return start


def asked(address: str, path: str, token: str | None = None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{address}{path}", headers=headers, timeout=20).status_code


def test_it_serves_until_it_is_told_to_stop_and_ends_well(served: Served) -> None:
    with served() as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert [asked(address, path) for path in ("/healthz", "/readyz", "/v1/memories/x")] == [200, 200, 404]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        log = process.stderr.read()
        assert "Traceback" not in log
        assert "route=/v1/memories/{id} status=404" in log


def test_ctrl_c_is_a_good_end_too(served: Served) -> None:
    with served() as (process, address):
        assert asked(address, "/healthz") == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_token_opens_the_door_to_its_tenant_until_it_is_revoked(served: Served, lamina: Callable[..., Any]) -> None:
    made = lamina("token", "create", "--scope", "read", "--json").document
    with served() as (_, address):
        assert asked(address, "/v1/memories/x") == 401
        assert asked(address, "/v1/memories/x", "lamina_wrong") == 401
        assert asked(address, "/v1/memories/x", made["secret"]) == 404
        assert asked(address, "/metrics", made["secret"]) == 403
        assert lamina("token", "revoke", made["id"]).code == 0
        deadline = time.monotonic() + 30
        while asked(address, "/v1/memories/x", made["secret"]) != 401:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_the_first_token_shuts_the_door_of_a_server_that_runs_already(
    served: Served, lamina: Callable[..., Any]
) -> None:
    with served() as (_, address):
        assert asked(address, "/v1/memories/x") == 404
        made = lamina("token", "create", "--scope", "read", "--json").document
        deadline = time.monotonic() + 30
        while asked(address, "/v1/memories/x") != 401:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert asked(address, "/v1/memories/x", made["secret"]) == 404
        assert asked(address, "/healthz") == 200


def test_without_a_token_other_machines_are_not_let_in(lamina: Callable[..., Any]) -> None:
    refused = lamina("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is what must be refused
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: server.host: 0.0.0.0 is reached from other machines")
    assert "lamina token create" in refused.err


def test_a_port_that_is_taken_is_an_error_of_one_line(served: Served, lamina: Callable[..., Any]) -> None:
    with served() as (_, address):
        refused = lamina("serve", "--port", address.rpartition(":")[2])
    assert refused.code == 1
    assert "is in use. Choose another place" in refused.err


def test_it_serves_on_a_socket_in_the_file_system_that_is_its_owners_alone(served: Served, folder: Path) -> None:
    with served("--uds", "lamina.sock") as (process, address):
        file = folder / "lamina.sock"
        assert address in {f"unix:{file}", "unix:lamina.sock"}
        assert file.stat().st_mode & 0o777 == 0o600
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(file)), base_url="http://localhost") as http:
            assert http.get("/healthz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert not file.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="several processes cannot share a socket there")
def test_a_worker_that_is_killed_is_replaced_and_all_end_with_the_first(served: Served) -> None:
    with served("--workers", "2", "--log-format", "json") as (process, address):
        seen = set()
        deadline = time.monotonic() + 60
        while len(seen) < 2:
            assert asked(address, "/readyz") == 200
            seen |= workers_of(process)
            assert time.monotonic() < deadline
        victim = min(seen)
        os.kill(victim, signal.SIGKILL)
        while not (workers_of(process) - seen):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert asked(address, "/readyz") == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_maintenance_runs_beside_requests_and_does_not_keep_it_from_ending_well(served: Served, folder: Path) -> None:
    (folder / "lamina.toml").write_text("[server]\nmaintenance_interval = 0.01\n", encoding="utf-8")
    with served() as (process, address):
        assert process.stderr is not None
        while "maintenance was done" not in (line := process.stderr.readline()):
            assert line, "it ended without any maintenance"
        assert asked(address, "/readyz") == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()


def workers_of(process: subprocess.Popen[str]) -> set[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not tell who the children of a process are")
    return set(map(int, children.read_text(encoding="ascii").split()))
