"""Several processes on one pack, and processes that are killed in the middle of it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lamina
from lamina.state.postgres import PostgresPackStore
from lamina.testing.pack_contract.material import NOW, TENANT, all_of

WRITER = Path(__file__).with_name("pack_crash_writer.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}


class Writer:
    def __init__(self, output, url, schema, name, number):
        self.output = output
        command = [sys.executable, str(WRITER), url, schema, name, str(number)]
        with output.open("w") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=ENVIRONMENT)

    async def end(self):
        return await asyncio.to_thread(self.process.wait, timeout=240)

    def said(self, kind):
        """The ids of which it said this; a last line that was cut off was never said."""
        lines = [line.split() for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        assert all(words[0] in {"tries", "added", "touched"} for words in lines), self.output.read_text()
        return {words[1] for words in lines if words[0] == kind}


def assert_whole(found, added, tried):
    assert added <= found.keys() <= tried, "lost, or invented"
    for id, each in found.items():
        assert each.content == f"{id} " * 50
        assert (f"{id[:-1]}a" in found) == (f"{id[:-1]}b" in found), "half a batch"
        if id.endswith("a"):
            assert each.superseded_by == f"{id[:-1]}b"
    for name in {id.split("-")[0] for id in found}:
        own = [each for each in found.values() if each.name == name]
        assert [each.superseded_by for each in own] == [*(each.id for each in own[1:]), None]


async def test_four_processes_change_one_pack_and_nothing_is_lost(tmp_path, postgres_url, postgres_schema):
    names = [f"p{number}" for number in range(4)]
    writers = [Writer(tmp_path / name, postgres_url, postgres_schema, name, 25) for name in names]
    for writer in writers:
        assert await writer.end() == 0, writer.output.read_text()
    async with PostgresPackStore(postgres_url, schema=postgres_schema) as store:
        found = {each.id: each for each in await store.find_memories(all_of(include_superseded=True))}
    assert len(found) == 200
    added = set.union(*(writer.said("added") for writer in writers))
    assert_whole(found, added, added)
    assert {each.access_count for each in found.values() if each.id.endswith("b")} == {2}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_what_was_acknowledged_of_packs_survives_kill_9_and_nothing_is_half_written(
    tmp_path, postgres_url, postgres_schema
):
    chance = random.Random(20260802)
    tried, added, touched = set(), set(), set()
    for attempt in range(5):
        writer = Writer(tmp_path / f"k{attempt}", postgres_url, postgres_schema, f"k{attempt}", 100_000)
        while not writer.said("touched") and writer.process.poll() is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.uniform(0.02, 0.2))
        writer.process.kill()
        assert await writer.end() == -signal.SIGKILL
        tried |= writer.said("tries")
        added |= writer.said("added")
        touched |= writer.said("touched")
        async with PostgresPackStore(postgres_url, schema=postgres_schema) as store:
            # What was sent may still be committed after the kill; a change of the tenant's packs waits for that.
            await store.supersede(TENANT, f"k{attempt}-0-a", by=f"k{attempt}-0-b", now=NOW)
            found = {each.id: each for each in await store.find_memories(all_of(include_superseded=True))}
        assert_whole(found, added, tried)
        assert all(found[id].access_count == 2 for id in touched), "an access that was acknowledged is lost"
