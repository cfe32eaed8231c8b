"""Several processes on one server store: each request is done once, also if whoever does it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import lamina
from lamina.domain.idempotency import KeptResponse, RequestState
from lamina.ports.clock import utc_now
from lamina.state.opening import open_server_store

SCRIPT = Path(__file__).parents[1] / "support" / "repeat_requests.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}
NUMBER = 60
PROCESSES = 3


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """The place of a store, and the name of its schema, if it has one."""
    if request.param == "sqlite":
        return str(tmp_path / "lamina.db"), ""
    return request.getfixturevalue("postgres_url"), request.getfixturevalue("postgres_schema")


def start(place, name, *words):
    command = [sys.executable, str(SCRIPT), *place, name, str(NUMBER), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)


def opened(place):
    where, schema = place
    return open_server_store(where, **({"schema": schema, "callers_clocks": True} if schema else {}))


async def test_of_several_processes_with_the_same_requests_one_does_each(place):
    async with opened(place):
        pass  # the tables are there
    processes = {name: start(place, name) for name in [f"p{number}" for number in range(PROCESSES)]}
    said = {name: (await asyncio.to_thread(each.communicate, timeout=120))[0] for name, each in processes.items()}
    assert [each.returncode for each in processes.values()] == [0] * PROCESSES, said
    lines = [(name, *line.split()) for name, text in said.items() for line in text.splitlines() if line != "ready"]
    done = {int(count): name for name, what, count in lines if what == "does"}
    leased = [int(count) for _, what, count in lines if what == "leases"]
    assert sorted(done) == sorted(leased) == list(range(NUMBER))
    assert sum(what == "does" for _, what, _ in lines) == NUMBER
    async with opened(place) as store:
        now = utc_now()
        for count, name in done.items():
            begun = await store.begin("acme", "caller", f"k{count}", "f", now=now, lease_until=now + timedelta(hours=1))
            assert begun.response == KeptResponse(200, (), name.encode())
            assert await store.acquire_lease(f"l{count}", "late", now=now, until=now + timedelta(hours=1)) is False


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_a_request_whose_process_was_killed_is_taken_over_when_its_lease_has_run_out(place):
    process = start(place, "killed", "hangs")
    assert process.stdout is not None
    with process:
        said = [await asyncio.to_thread(process.stdout.readline) for _ in range(2)]
        process.kill()
    assert said == ["ready\n", "does 0\n"]
    async with opened(place) as store:
        now = utc_now()
        soon, late = now + timedelta(milliseconds=1), now + timedelta(seconds=3)
        request = ("acme", "caller", "k0", "f")
        held = await store.begin(*request, now=now - timedelta(seconds=60), lease_until=soon)
        assert held.state is RequestState.IN_PROGRESS
        begun = await store.begin(*request, now=late, lease_until=late + timedelta(seconds=60))
        assert begun.state is RequestState.NEW
        assert await store.finish("acme", "caller", "k0", begun.claim, response=KeptResponse(204))
