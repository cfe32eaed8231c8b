"""Several processes on one thread."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import lamina
from lamina.testing.state_contract.material import REF, ids, indexes

WRITER = Path(__file__).with_name("append_writer.py")
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
        """The numbers of the pairs; a last line that was cut off was never said."""
        lines = [line.split() for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        assert all(words[0] in {"tries", "added"} for words in lines), self.output.read_text()
        return [int(words[2]) for words in lines if words[0] == kind]


async def test_four_processes_add_500_messages_each_to_one_thread_and_none_is_lost_or_out_of_order(
    tmp_path, store, postgres_url, postgres_schema
):
    names = [f"p{number}" for number in range(4)]
    writers = [Writer(tmp_path / name, postgres_url, postgres_schema, name, 250) for name in names]
    for writer in writers:
        assert await writer.end() == 0, writer.output.read_text()
    found = await store.events(REF)
    assert indexes(found) == list(range(1, 2001))
    for name in names:
        own = [id for id in ids(found) if id.startswith(f"{name}-")]
        assert own == [f"{name}-{count}-{part}" for count in range(250) for part in ("q", "a")]
    places = {id: place for place, id in enumerate(ids(found))}
    assert all(places[id] + 1 == places[f"{id[:-1]}a"] for id in places if id.endswith("q")), "a pair was separated"
    assert await store.live_size(REF) == (2000, sum(each.tokens for each in found))
