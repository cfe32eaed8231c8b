"""Several processes on one file."""

import asyncio
import subprocess
import sys
from pathlib import Path

from lamina.testing.memory_contract.material import by_text, listed

WRITER = Path(__file__).with_name("crash_writer.py")


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
