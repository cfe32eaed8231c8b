"""Several processes on one file, and processes that are killed in the middle of it."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.testing.memory_contract.material import MINE, by_text, by_vector, ids, listed

WRITER = Path(__file__).with_name("crash_writer.py")
KILLS = 15


class Writer:
    """A process that writes, and the file in which it says what it does."""

    def __init__(self, file: Path, name: str, number: int) -> None:
        self.output = file.with_name(f"{name}.out")
        with self.output.open("w") as output, self.output.with_suffix(".err").open("w") as errors:
            command = [sys.executable, str(WRITER), str(file), name, str(number)]
            self.process = subprocess.Popen(command, stdout=output, stderr=errors)

    async def end(self) -> int:
        return await asyncio.to_thread(self.process.wait, timeout=240)

    def said(self) -> str:
        assert self.output.with_suffix(".err").read_text() == ""
        return self.output.read_text()


class Said:
    """What writers said, line by line; a last line that was cut off was never said."""

    def __init__(self) -> None:
        self.sets: dict[str, set[str]] = {kind: set() for kind in ("tries", "stored", "drops", "deleted")}
        self.words: dict[str, str] = {}

    def read(self, output: str) -> None:
        for line in output.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            kind, id, *rest = line.split()
            if kind == "updated":
                self.words[id] = rest[0]
            else:
                self.sets[kind].add(id)

    def check(self, found: set[str]) -> None:
        """The oracle: no acknowledged change is lost, and nothing is there that nobody wrote."""
        assert self.sets["stored"] - self.sets["drops"] <= found, "lost"
        assert found <= self.sets["tries"], "invented"
        assert not self.sets["deleted"] & found, "revived"


async def test_four_processes_write_at_once_and_nothing_is_lost_or_refused(file: Path, opened) -> None:
    writers = [Writer(file, f"p{number}", 200) for number in range(4)]
    said = Said()
    for writer in writers:
        assert await writer.end() == 0
        said.read(writer.said())
    adapter = await opened()
    found = await listed(adapter, limit=10_000)
    assert len(said.sets["stored"]) == 800
    assert {entry.id for entry in found} == said.sets["stored"] - said.sets["deleted"]
    assert len({entry.seq for entry in found}) == len(found)
    for number in range(4):
        own = [int(entry.id.partition("-")[2]) for entry in found if entry.id.startswith(f"p{number}-")]
        assert [count // 4 for count in own] == sorted(count // 4 for count in own)  # fours were written together
    assert await adapter.check() == []
    for id, word in said.words.items():
        if id not in said.sets["deleted"]:
            assert word in {part for hit in await by_text(adapter, word) for part in hit.entry.content.split()}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_what_was_acknowledged_survives_kill_9_and_nothing_is_invented(file: Path) -> None:
    chance = random.Random(20260801)
    said = Said()
    killed = 0
    for attempt in range(KILLS):
        writer = Writer(file, f"k{attempt}", 4000)
        while "stored" not in writer.said() and writer.process.poll() is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.uniform(0.02, 0.25))
        writer.process.kill()
        killed += await writer.end() == -signal.SIGKILL
        said.read(writer.said())
        adapter = SqliteAdapter(file)
        await adapter.initialize()
        said.check(set(ids(await listed(adapter, limit=100_000))))
        assert await adapter.check() == []
        await adapter.close()
    assert killed == KILLS  # the harness really killed them
    assert len(said.sets["stored"]) > 10 * KILLS
    await assert_each_is_found_by_its_own(file, said)


async def assert_each_is_found_by_its_own(file: Path, said: Said) -> None:
    adapter = SqliteAdapter(file)
    await adapter.initialize()
    found = await listed(adapter, limit=100_000, include_embeddings=True)
    for entry in found[:: max(1, len(found) // 60)]:
        assert entry.embedding is not None
        assert ids(await by_vector(adapter, entry.embedding, limit=1)) == [entry.id]
        word = next(part for part in entry.content.split() if part.startswith("word"))
        assert entry.id in ids(await by_text(adapter, f"{word} {entry.id}", limit=1000))
    for id, word in said.words.items():
        entry = await adapter.get(MINE, id)
        assert entry is None or int(entry.content.split()[1][4:]) >= int(word[4:])
    await adapter.close()
