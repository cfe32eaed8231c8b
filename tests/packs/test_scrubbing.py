"""What is left in the file of what packs have lost, and what packs find wrong with their file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.errors import Unsupported

FADED = "The quokka plant relines its furnace every 18 months, and the brick has to dry for 9 days before that."
ERASED = "The xanadu plant was closed in May, and nobody has asked for the key of its gate ever since then."
CANARIES = {b"quokka", b"xanadu"}


def traces(*files):
    data = [file.read_bytes() for file in files if file.exists()]
    return {canary for canary in CANARIES if any(canary in each for each in data)}


async def test_nothing_that_faded_or_was_erased_is_left_in_the_file_or_its_log(open_packs, fade, tmp_path):
    packs = await open_packs()
    file, log = tmp_path / "lamina.db", tmp_path / "lamina.db-wal"
    await packs.create("plant", "project")
    await packs.add("plant", FADED, id="faded")
    await packs.add("plant", ERASED, id="erased")
    await packs.add("plant", "The gate code is asked for at the desk.", id="other")
    await fade(packs, "faded", "key_facts", "18 months, 9 days")
    assert await packs.delete_memory("erased", permanent=True)
    assert traces(file, log) == CANARIES
    await packs.kept.scrub()  # of the log alone
    if sqlite3.sqlite_version_info < (3, 42):
        assert traces(file) == CANARIES
    await packs.scrub()
    assert traces(file, log) == set()
    assert await packs.check() == []
    (hit,) = await packs.retrieve("plant", "months", limit=1)
    assert (hit.memory.content, hit.found_in) == (FADED, "key_facts")
    (hit,) = await packs.retrieve("plant", "gate code desk", limit=1)
    assert hit.memory.id == "other"


async def test_what_cannot_scrub_is_named_and_the_other_has_done_it(open_packs, tmp_path):
    packs = await open_packs(adapter=InMemoryAdapter())
    await packs.create("plant", "project")
    await packs.add("plant", ERASED, id="erased", provenance="xanadu")
    await packs.delete_memory("erased", permanent=True)
    with pytest.raises(Unsupported, match="memory backend does not support scrubbing"):
        await packs.scrub()
    assert traces(tmp_path / "lamina.db", tmp_path / "lamina.db-wal") == set()


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE lamina_pack_memories SET due_at = 5", "due at another time"),
        ("DELETE FROM lamina_packs_text", "have no text in the index"),
    ],
)
async def test_damage_of_the_store_and_of_the_index_is_told(open_packs, tmp_path, statement, finding):
    packs = await open_packs()
    assert await packs.check() == []
    with closing(sqlite3.connect(tmp_path / "lamina.db")) as file:
        assert file.execute("SELECT 1 FROM sqlite_master WHERE name = 'lamina_packs_text'").fetchone()
    await packs.create("plant", "project")
    await packs.add("plant", FADED)
    with closing(sqlite3.connect(tmp_path / "lamina.db")) as file:
        file.execute(statement)
        file.commit()
    assert any(finding in each for each in await packs.check())
