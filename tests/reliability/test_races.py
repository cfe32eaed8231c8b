"""Many write to one file at once: the short form of `make soak`."""

from __future__ import annotations

import pytest
from kill_places import SqlitePlace
from races import TASKS, judged, raced, threads_with

from lamina.sync import create_memory_engine
from lamina.testing import HashingEmbedder


def test_threads_processes_and_tasks_are_refused_nothing_and_lose_nothing(tmp_path):
    races = raced(tmp_path, seconds=0.2)
    assert [finding for race in races for finding in race.findings] == []
    assert all(race.calls >= 4 and race.slow > 0 for race in races)
    assert races[-1].calls >= TASKS


class Faulty:
    """An engine of which every fifth store is not what it says."""

    def __init__(self, engine, fault):
        self.engine, self.fault, self.count = engine, fault, 0

    def store(self, text, *, id):
        self.count += 1
        if self.count % 5:
            self.engine.store(text, id=id)
        elif self.fault == "refuses":
            raise RuntimeError("database is locked")
        elif self.fault == "invents":
            self.engine.store(text, id=id)
            self.engine.store("nobody asked for this", id="stray")


@pytest.mark.parametrize(
    ("fault", "told"), [("loses", "lost:"), ("refuses", "database is locked"), ("invents", "invented: 1")]
)
def test_a_race_in_which_something_goes_wrong_is_found_out(tmp_path, fault, told):
    place = SqlitePlace(tmp_path)
    with create_memory_engine(path=place.file, embed=HashingEmbedder(32)) as engine:
        runners = threads_with([Faulty(engine, fault)], 0.2)
    assert any(told in finding for finding in judged("one thread", place, runners).findings)
