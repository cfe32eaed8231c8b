"""Several processes on one thread."""

import asyncio
import subprocess
import sys
from pathlib import Path

from lamina.state.sqlite import SqliteStateStore
from lamina.testing.state_contract.material import REF, ids, indexes

WRITER = Path(__file__).with_name("thread_writer.py")


class Writer:
    """A process that adds messages, and the file in which it says what it does."""

    def __init__(self, folder: Path, name: str, number: int) -> None:
        self.output = folder / f"{name}.out"
        with self.output.open("w") as output, self.output.with_suffix(".err").open("w") as errors:
            command = [sys.executable, str(WRITER), str(folder / "lamina.db"), name, str(number)]
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
    writers = [Writer(tmp_path, f"p{number}", 500) for number in range(4)]
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
