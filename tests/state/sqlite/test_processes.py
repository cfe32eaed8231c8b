"""Several processes on one thread, and processes that are killed in the middle of it."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.state.sqlite import SqliteStateStore
from lamina.testing.state_contract.material import REF, ids, indexes

WRITER = Path(__file__).with_name("crash_writer.py")
KILLS = 10


class Writer:
    """A process that adds messages, and the file in which it says what it does."""

    def __init__(self, folder: Path, name: str, number: int, mode: str) -> None:
        self.output = folder / f"{name}.out"
        with self.output.open("w") as output, self.output.with_suffix(".err").open("w") as errors:
            command = [sys.executable, str(WRITER), str(folder / "lamina.db"), name, str(number), mode]
            self.process = subprocess.Popen(command, stdout=output, stderr=errors)

    async def end(self) -> int:
        return await asyncio.to_thread(self.process.wait, timeout=240)

    def said(self, kind: str) -> dict[str, str]:
        """What it said of this kind; a last line that was cut off was never said."""
        assert self.output.with_suffix(".err").read_text() == ""
        lines = [line.split() for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return {words[1]: words[-1] for words in lines if words[0] == kind}


async def test_four_processes_add_500_messages_each_to_one_thread_and_none_is_lost_or_out_of_order(
    tmp_path: Path,
) -> None:
    writers = [Writer(tmp_path, f"p{number}", 500, "adds") for number in range(4)]
    for writer in writers:
        assert await writer.end() == 0
    async with SqliteStateStore(tmp_path / "lamina.db") as store:
        found = await store.events(REF)
        assert await store.check() == []
    assert indexes(found) == list(range(1, 2001))
    assert len(set(ids(found))) == 2000
    for number, writer in enumerate(writers):
        own = [each for each in found if each.message.id.startswith(f"p{number}-")]
        assert ids(own) == [f"p{number}-{count}" for count in range(500)]
        assert {each.message.id: str(each.message.index) for each in own} == writer.said("added")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_what_was_acknowledged_survives_kill_9_and_nothing_is_half_written(tmp_path: Path) -> None:
    chance = random.Random(20260802)
    tried: set[str] = set()
    added: dict[str, str] = {}
    folded = 0
    killed = 0
    for attempt in range(KILLS):
        writer = Writer(tmp_path, f"k{attempt}", 100_000, "folds")
        while not writer.said("folded") and writer.process.poll() is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.uniform(0.02, 0.2))
        writer.process.kill()
        killed += await writer.end() == -signal.SIGKILL
        tried |= writer.said("tries").keys()
        added |= writer.said("added")
        folded = max(folded, *map(int, writer.said("folded")))
        async with SqliteStateStore(tmp_path / "lamina.db") as store:
            assert await store.check() == []
            found = await store.events(REF)
            head = await store.get_thread(REF)
        there = {each.message.id: str(each.message.index) for each in found}
        assert added.items() <= there.items(), "lost, or given another index"
        assert there.keys() <= tried, "invented"
        assert all((f"{id[:-1]}q" in there) == (f"{id[:-1]}a" in there) for id in there), "half a pair"
        assert indexes(found) == list(range(1, len(found) + 1))
        assert head is not None
        assert head.folded_through >= folded
    assert killed == KILLS  # the harness really killed them
    assert len(added) > 20 * KILLS
