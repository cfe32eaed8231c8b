"""Programs that are killed while they write lose nothing that was acknowledged: the short form of `make soak`."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack

import pytest
import pytest_asyncio
from kill_harness import AFTERWARDS, Forge, Rounds
from kill_outages import DiskFull, FilesMayNotGrow, ServerKilled, small_disk
from kill_places import PostgresPlace, SqlitePlace
from kill_writers import WAYS

from lamina.sync import create_memory_engine
from lamina.testing import HashingEmbedder

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL"),
    pytest.mark.asyncio(loop_scope="module"),
]

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")

KILLS = 2
WAIT = 0.12


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return SqlitePlace(tmp_path)
    return PostgresPlace(tmp_path, request.getfixturevalue("postgres_database"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forge(tmp_path_factory):
    async with Forge(tmp_path_factory.mktemp("forge")) as forge:
        yield forge


@pytest.fixture
def killed(forge):
    async def kill(place, way, *, kills=KILLS, outage=None, **options):
        rounds = Rounds(forge, place, way, seed=1, longest_wait=WAIT, outage=outage)
        return await rounds.kill(kills, **options)

    return kill


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_acknowledged_survives_kill_9_and_nothing_is_invented(place, killed, way):
    report = await killed(place, way)
    assert report.findings == []
    assert (report.kills, report.lost, report.invented) == (KILLS, 0, 0)
    assert report.acknowledged >= KILLS
    assert report.looked_up or way == "compacting"


async def test_a_program_that_acknowledges_before_it_writes_is_found_out(place, killed):
    report = await killed(place, "storing", kills=1, after=2, lies=True)
    assert report.lost >= 1
    assert "lost" in report.findings[0]


@pytest.fixture
def disk(tmp_path):
    with ExitStack() as stack:
        try:
            stack.enter_context(small_disk(tmp_path))
        except PermissionError as error:
            pytest.skip(f"no file system may be mounted: {error}")
        yield tmp_path


async def test_a_writer_goes_on_by_itself_once_a_killed_server_has_recovered(
    tmp_path, postgres, postgres_database, killed
):
    place = PostgresPlace(tmp_path, postgres_database)
    went_on(await killed(place, "storing", kills=1, outage=ServerKilled(postgres)))


@LINUX
async def test_a_writer_goes_on_by_itself_once_its_files_may_grow_again(tmp_path, killed):
    went_on(await killed(SqlitePlace(tmp_path), "compacting", kills=1, outage=FilesMayNotGrow()))


@LINUX
async def test_a_writer_goes_on_by_itself_once_the_disk_has_room_again(disk, killed):
    went_on(await killed(SqlitePlace(disk), "editing", kills=1, outage=DiskFull()))


def went_on(report):
    assert report.findings == []
    assert (report.kills, report.lost, report.invented) == (1, 0, 0)
    assert report.refused >= 1
    assert report.acknowledged >= AFTERWARDS


@LINUX
async def test_a_program_that_acknowledges_what_was_refused_is_found_out(tmp_path, killed):
    report = await killed(SqlitePlace(tmp_path), "storing", kills=1, outage=FilesMayNotGrow(), lies=True)
    assert report.lost >= 1


FAULTS = {
    "a word of the text index": (
        "storing",
        "DELETE FROM lamina_memories_text WHERE rowid = (SELECT min(key) FROM lamina_memories)",
        "DELETE FROM lamina.lamina_memories_words WHERE seq = (SELECT min(seq) FROM lamina.lamina_memories)",
        ["in the text index", "is not found by its own words"],
    ),
    "a vector": (
        "storing",
        "DELETE FROM lamina_memories_vectors WHERE key = (SELECT min(key) FROM lamina_memories)",
        None,
        ["vectors"],
    ),
    "a row": (
        "storing",
        "DELETE FROM lamina_memories WHERE key = (SELECT min(key) FROM lamina_memories)",
        "DELETE FROM lamina.lamina_memories WHERE seq = (SELECT min(seq) FROM lamina.lamina_memories)",
        ["lost: 1"],
    ),
    "a text that nobody wrote": (
        "storing",
        "UPDATE lamina_memories SET content = 'x' WHERE key = (SELECT min(key) FROM lamina_memories)",
        None,
        ["invented: 1"],
    ),
    "a chunk of a document": (
        "ingesting",
        "DELETE FROM lamina_chunks WHERE key = (SELECT min(key) FROM lamina_chunks)",
        None,
        ["invented: 1, such as document:"],
    ),
    "a message": (
        "compacting",
        "DELETE FROM lamina_messages WHERE key = (SELECT min(key) FROM lamina_messages)",
        None,
        ["lost: 1, such as message:", "are not numbered"],
    ),
    "a memory of a pack": (
        "sweeping",
        "DELETE FROM lamina_pack_memories WHERE key = (SELECT min(key) FROM lamina_pack_memories)",
        None,
        ["lost: 1, such as pack:"],
    ),
}
"""By what is taken or put there behind Lamina's back: while what is done, how in both stores, and what is found."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_found(tmp_path, killed, fault):
    way, statement, _, told = FAULTS[fault]
    place = SqlitePlace(tmp_path)
    report = await killed(place, way, kills=1, after=5, damage=lambda: place.run(statement))
    assert [each for each in told if not any(each in finding for finding in report.findings)] == []


@pytest.mark.parametrize("fault", [name for name, (_, _, statement, _) in FAULTS.items() if statement])
async def test_a_planted_fault_is_found_in_postgres(tmp_path, postgres_database, killed, fault):
    way, _, statement, told = FAULTS[fault]
    place = PostgresPlace(tmp_path, postgres_database)
    report = await killed(place, way, kills=1, after=5, damage=lambda: place.run(statement))
    assert [each for each in told if not any(each in finding for finding in report.findings)] == []


async def test_a_memory_that_nobody_stored_is_found(tmp_path, killed):
    place = SqlitePlace(tmp_path)

    def intrude():
        with create_memory_engine(path=place.file, embed=HashingEmbedder(32)) as engine:
            engine.store("Nobody told of this one")

    report = await killed(place, "storing", kills=1, after=5, damage=intrude)
    assert (report.lost, report.invented) == (0, 1)


async def test_an_index_that_leads_elsewhere_than_its_table_is_found(tmp_path, killed):
    place = SqlitePlace(tmp_path)

    def spoil():
        place.run("PRAGMA wal_checkpoint(TRUNCATE)")
        find = "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'lamina_memories' AND name LIKE 'sqlite_auto%'"
        size = place.run("PRAGMA page_size")[0][0]
        begin = (place.run(find)[0][0] - 1) * size
        data = bytearray(place.file.read_bytes())
        data[data.index(b"r0w", begin, begin + size)] ^= 1
        place.file.write_bytes(data)

    report = await killed(place, "storing", kills=1, after=5, damage=spoil)
    assert any("index" in finding for finding in report.findings), report.findings
