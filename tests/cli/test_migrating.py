from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Lamina = Callable[..., Any]


@pytest.fixture
def old(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.execute("CREATE TABLE agent_memories (id, content, user_id)")
        connection.execute("INSERT INTO agent_memories VALUES ('a', 'The blue pot', 'mira'), ('b', NULL, 'mira')")
        connection.commit()
    return "old.db"


def test_migrating_tells_what_was_done_and_which_row_was_left_out(lamina: Lamina, old: str) -> None:
    done = lamina("migrate-v1", old)
    assert done.code == 0
    assert "1 memory migrated, 0 were there already, 0 had expired" in done.out
    assert "row 2 of agent_memories was left out: content: is missing" in done.err
    assert "The blue pot" in lamina("recall", "pot", "-u", "mira").out


def test_migrating_twice_changes_nothing(lamina: Lamina, old: str) -> None:
    lamina("migrate-v1", old)
    before = lamina("export").out
    report = lamina("migrate-v1", old, "--json").document
    assert (report["written"], report["skipped"], report["bad_count"]) == (0, 1, 1)
    assert lamina("export").out == before


def test_a_missing_file_is_told_and_makes_no_memories(lamina: Lamina) -> None:
    refused = lamina("migrate-v1", "nowhere.db")
    assert refused.code != 0
    assert "is no file" in refused.err
