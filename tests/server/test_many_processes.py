"""Several real `lamina serve` over one database: a short form of `benchmarks/server_load.py`, and its oracle."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")


def _load_module():
    """The benchmark, which is no package."""
    spec = importlib.util.spec_from_file_location("server_load", ROOT / "benchmarks" / "server_load.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


server_load = _load_module()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lamina.db'}"
    return request.getfixturevalue("postgres_database")


@pytest.fixture(autouse=True)
def quick_embedder(monkeypatch):
    """The processes embed by the model that comes with Lamina, whatever the environment of the tests says."""
    for name in [name for name in os.environ if name.startswith("LAMINA_")]:
        monkeypatch.delenv(name)


class Ask:
    """Requests of one account to any of the processes."""

    def __init__(self, account):
        self.headers = {"Authorization": f"Bearer {account.token}"}

    def __call__(self, address, method, path="", **what):
        headers = {**self.headers, **what.pop("headers", {})}
        return httpx2.request(method, f"{address}/v1/memories{path}", headers=headers, timeout=30, **what)


async def test_under_load_with_one_process_killed_nothing_is_lost_or_invented_and_the_oracle_would_see_it(url):
    async with server_load.serving(url, 2, maintenance_interval=1) as (cluster, accounts):
        load = server_load.Load(cluster, accounts)
        await load.run(seconds=2, clients=6, kill=True)
        assert load.wrong == []
        assert await server_load.check(cluster, accounts) == []
        assert len(cluster.addresses) == 1
        answers = {kind: each.outcomes for kind, each in load.measured.items()}
        assert min(answers[kind]["ok"] for kind in ("write", "recall", "edit", "read")) > 0, answers
        assert sum(each["error"] for each in answers.values()) == 0, answers
        for plant, seen in FAULTS.items() if url.startswith("sqlite") else ():  # the oracle asks servers alone
            mend = plant(cluster.addresses[0], accounts)
            found = await server_load.check(cluster, accounts)
            assert {each.partition(":")[0] for each in found} == seen, (plant.__name__, found)
            mend()  # and the next fault is seen alone
        assert await server_load.check(cluster, accounts) == []
        assert await asyncio.to_thread(cluster.stop) == []


def one_is_forgotten(address, accounts):
    account = next(each for each in accounts if set(each.written) - set(each.edited))
    id = next(id for id in account.written if id not in account.edited)
    assert Ask(account)(address, "DELETE", f"/{id}").status_code == 204
    return lambda: account.written.pop(id)


def one_is_changed(address, accounts):
    account, id, text = some(accounts)
    ask = Ask(account)
    ask(address, "PATCH", f"/{id}", json={"content": "something else"}, headers={"If-Match": "*"}).raise_for_status()
    back = {"json": {"content": text}, "headers": {"If-Match": "*"}}
    return lambda: ask(address, "PATCH", f"/{id}", **back).raise_for_status()


def one_is_invented(address, accounts):
    account = accounts[0]
    body = {"content": "nobody wrote this", "metadata": {"label": account.label}}
    id = Ask(account)(address, "POST", json=body).raise_for_status().json()["id"]
    return lambda: Ask(account)(address, "DELETE", f"/{id}").raise_for_status()


def one_is_anothers(address, accounts):
    """As if a scope had been mixed up: what was written by one owner stands at another."""
    account, id, text = some(accounts)
    other = next(each for each in accounts if each.label != account.label)
    body = {"content": f"{text} {id}", "metadata": {"label": account.label}}
    id = Ask(other)(address, "POST", json=body).raise_for_status().json()["id"]
    return lambda: Ask(other)(address, "DELETE", f"/{id}").raise_for_status()


def an_edit_is_overwritten(address, accounts):
    """As if two processes had changed the memory from the same revision."""
    account, id = next((each, id) for each in accounts for id, edits in each.edited.items() if edits)
    ask = Ask(account)
    metadata = ask(address, "GET", f"/{id}").raise_for_status().json()["metadata"]
    lost = next(edit for edit in metadata["edits"] if edit in account.edited[id])
    less = {**metadata, "edits": [edit for edit in metadata["edits"] if edit != lost]}
    ask(address, "PATCH", f"/{id}", json={"metadata": less}, headers={"If-Match": "*"}).raise_for_status()
    back = {"json": {"metadata": metadata}, "headers": {"If-Match": "*"}}
    return lambda: ask(address, "PATCH", f"/{id}", **back).raise_for_status()


def some(accounts):
    account = next(each for each in accounts if each.written)
    return account, *next(iter(account.written.items()))


FAULTS = {
    one_is_forgotten: {"lost"},
    one_is_changed: {"changed"},
    one_is_invented: {"invented"},
    one_is_anothers: {"foreign", "invented"},
    an_edit_is_overwritten: {"edit lost"},
}


async def test_a_recall_that_misses_what_was_acknowledged_is_seen_while_the_load_runs(tmp_path):
    async with server_load.serving(f"sqlite:///{tmp_path / 'lamina.db'}", 1) as (cluster, accounts):
        account = accounts[0]
        load = server_load.Load(cluster, [account])
        account.written["no-such-id"] = "words that were never stored"
        async with httpx2.AsyncClient(timeout=30) as http:
            await load._recall(http, account)
        assert [each.partition(":")[0] for each in load.wrong] == ["missed"]


async def test_four_processes_that_start_together_make_one_empty_database_ready(url, tmp_path):
    cluster = server_load.Cluster(url, tmp_path)
    try:
        await asyncio.to_thread(cluster.start, 4)
        addresses = cluster.addresses
        assert len(addresses) == 4
        with ThreadPoolExecutor() as threads:
            ready = list(threads.map(lambda each: httpx2.get(f"{each}/readyz", timeout=30).status_code, addresses))
            assert ready == [200] * 4
        body = {"content": "The spare key is under the blue pot."}
        id = httpx2.post(f"{addresses[0]}/v1/memories", json=body, timeout=30).raise_for_status().json()["id"]
        for address in addresses:
            asked = {"query": "spare key", "mode": "vector"}
            found = httpx2.post(f"{address}/v1/memories/recall", json=asked, timeout=30).raise_for_status().json()
            assert ([hit["memory"]["id"] for hit in found["data"]], found["degraded"]) == ([id], [])
    finally:
        stopped = await asyncio.to_thread(cluster.stop)
    assert stopped == []


async def test_what_one_process_holds_the_other_knows(url):
    async with server_load.serving(url, 2) as (cluster, accounts):
        first, second = cluster.addresses
        ask = Ask(accounts[0])
        working = ask(first, "POST", json={"content": "in working memory", "layer": "working"}).json()["id"]
        assert ask(second, "GET", f"/{working}").json()["content"] == "in working memory"
        once = {"json": {"content": "stored once"}, "headers": {"Idempotency-Key": "k1"}}
        answers = [ask(each, "POST", **once) for each in (first, second)]
        assert answers[0].json() == answers[1].json()
        assert answers[1].headers["Idempotency-Replayed"] == "true"
        id = answers[0].json()["id"]
        stale = ask(second, "GET", f"/{id}").headers["ETag"]
        edit = {"json": {"content": "edited by the first"}, "headers": {"If-Match": stale}}
        assert ask(first, "PATCH", f"/{id}", **edit).status_code == 200
        assert ask(second, "PATCH", f"/{id}", **edit).status_code == 412
        assert ask(second, "GET", f"/{id}").json()["content"] == "edited by the first"
        assert ask(second, "DELETE", f"/{id}").status_code == 204
        assert ask(first, "GET", f"/{id}").status_code == 404
