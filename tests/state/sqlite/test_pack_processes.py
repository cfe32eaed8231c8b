"""Several processes on one pack, and processes that are killed in the middle of it."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.domain.pack import SUPERSEDES, Relationship
from lamina.domain.pack_decay import Tier
from lamina.state.sqlite import SqlitePackStore
from lamina.testing.pack_contract.material import all_of

WRITER = Path(__file__).with_name("pack_crash_writer.py")
KILLS = 8


class Writer:
    """A process that adds memories, and the file in which it says what it does."""

    def __init__(self, folder: Path, name: str, number: int) -> None:
        self.output = folder / f"{name}.out"
        with self.output.open("w") as output, self.output.with_suffix(".err").open("w") as errors:
            command = [sys.executable, str(WRITER), str(folder / "lamina.db"), name, str(number)]
            self.process = subprocess.Popen(command, stdout=output, stderr=errors)

    async def end(self) -> int:
        return await asyncio.to_thread(self.process.wait, timeout=240)

    def said(self, kind: str) -> set[str]:
        """The ids of which it said this; a last line that was cut off was never said."""
        assert self.output.with_suffix(".err").read_text() == ""
        lines = [line.split() for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return {words[1] for words in lines if words[0] == kind}


def assert_whole(found: dict, last: dict[str, str]) -> None:
    """Each pair is there with both sides, and of each process's pairs the last one has the name."""
    for id, each in found.items():
        assert each.content == f"{id} " * 50
        if id.endswith("-a"):
            new = found[f"{id[:-1]}b"]
            assert each.superseded_by == new.id
            assert Relationship(SUPERSEDES, id) in new.relationships
            assert new.access_count in {0, 1, 2}
            assert new.name == id.split("-")[0]
    live = {each.name: each.id for each in found.values() if each.superseded_by is None}
    assert live == last


async def test_four_processes_change_one_pack_and_nothing_is_lost(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(4)]
    writers = [Writer(tmp_path, name, 25) for name in names]
    for writer in writers:
        assert await writer.end() == 0
    async with SqlitePackStore(tmp_path / "lamina.db") as store:
        found = {each.id: each for each in await store.find_memories(all_of(include_superseded=True))}
        assert await store.check() == []
    assert found.keys() == set.union(*(writer.said("added") for writer in writers))
    assert len(found) == 200
    assert_whole(found, {name: f"{name}-24-b" for name in names})
    news = [each for each in found.values() if each.id.endswith("b")]
    assert [each.access_count for each in news] == [2] * 100
    assert {found[f"{name}-24-b"].tier for name in names} == {Tier.SUMMARY}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_what_was_acknowledged_of_packs_survives_kill_9_and_nothing_is_half_written(tmp_path: Path) -> None:
    chance = random.Random(20260802)
    tried: set[str] = set()
    added: set[str] = set()
    touched: set[str] = set()
    killed = 0
    for attempt in range(KILLS):
        writer = Writer(tmp_path, f"k{attempt}", 100_000)
        while not writer.said("touched") and writer.process.poll() is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.uniform(0.02, 0.2))
        writer.process.kill()
        killed += await writer.end() == -signal.SIGKILL
        tried |= writer.said("tries")
        added |= writer.said("added")
        touched |= writer.said("touched")
        async with SqlitePackStore(tmp_path / "lamina.db") as store:
            assert await store.check() == []
            found = {each.id: each for each in await store.find_memories(all_of(include_superseded=True))}
        assert added <= found.keys() <= tried, "lost, or invented"
        assert all((f"{id[:-1]}a" in found) == (f"{id[:-1]}b" in found) for id in found), "half a batch"
        assert all(found[id].access_count == 2 for id in touched), "an access that was acknowledged is lost"
        newest: dict[str, str] = {}
        for id in found:  # in the order of adding
            if id.endswith("b"):
                newest[id.split("-")[0]] = id
        assert_whole(found, newest)
    assert killed == KILLS  # the harness really killed them
    assert len(added) > 4 * KILLS
