from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Lamina = Callable[..., Any]

RULE = (
    "The furnace of the Ankara plant is relined every 18 months by Demir, last on 4 May 2025, and the brick has to dry "
    "for 9 days before anybody lights a fire under it, whatever the sales people say about a late delivery."
)


@pytest.fixture
def plant(lamina: Lamina) -> str:
    """A pack of one memory, and that one's id."""
    assert lamina("packs", "create", "plant", "--description", "How furnaces are kept", "--unit", "1h").code == 0
    return str(lamina("packs", "add", "plant", RULE, "--kind", "policy", "--name", "lining").out.strip())


def test_packs_are_made_and_listed_and_shown_without_a_trace(lamina: Lamina, plant: str) -> None:
    assert lamina("packs", "list", "--json").document["packs"][0]["name"] == "plant"
    assert "How furnaces are kept" in lamina("packs", "list").out
    shown = lamina("packs", "show", "plant", "--json").document
    assert (shown["memory_count"], shown["memories"][0]["content"]) == (1, RULE)
    assert shown["access"]["total"] == 0
    assert plant in lamina("packs", "show", "plant", env={"COLUMNS": "200"}).out
    assert lamina("packs", "list", "--json", "--nl").lines[0]["type"] == "project"
    assert lamina("packs", "list", "--type", "domain", "--json").document == {"packs": [], "total": 0}


def test_a_search_counts_as_reading_unless_it_is_told_not_to(lamina: Lamina, plant: str) -> None:
    def reads() -> int:
        return int(lamina("packs", "show", "plant", "--json").document["access"]["total"])

    found = lamina("packs", "search", "furnace", "--pack", "plant", "--no-touch", "--json").document["results"]
    assert ([each["id"] for each in found], reads()) == ([plant], 0)
    assert RULE[:30] in lamina("packs", "search", "furnace").out
    assert reads() == 1
    assert lamina("packs", "search", "furnace", "--json", "--nl").lines[0]["found_in"] == "full"
    assert lamina("packs", "search", "furnace", "--pack", "nowhere").code == 1


def test_what_fades_next_is_told_and_done_and_undone(lamina: Lamina, plant: str) -> None:
    (step,) = lamina("packs", "fade", "--dry-run", "--json").document["steps"]
    assert (step["id"], step["tier"], step["next_tier"]) == (plant, "full", "summary")
    assert "lining" in lamina("packs", "fade", "--dry-run").out
    assert lamina("packs", "fade").out == "0 memories due; moved: none; 0 failed.\n"
    assert lamina("packs", "pin", plant).out == "1 memory pinned.\n"
    assert lamina("packs", "fade", "--dry-run").out == "Nothing found.\n"
    lamina("packs", "unpin", plant)
    (archived,) = lamina("packs", "archive", plant, "--json").document["memories"]
    assert archived["tier"] == "archived"
    assert lamina("packs", "search", "furnace", "--pack", "plant", "--json").document["results"] == []
    lamina("packs", "restore", plant)
    assert lamina("packs", "search", "furnace", "--json").document["results"][0]["content"] == RULE


def test_what_is_due_fades(lamina: Lamina) -> None:
    lamina("packs", "create", "brief", "--unit", "1s")
    lamina("packs", "add", "brief", RULE)
    time.sleep(1.1)
    report = lamina("packs", "fade", "--json").document
    assert (report["examined"], sum(report["moved"].values()), report["is_complete"]) == (1, 1, True)


def test_what_is_wrong_is_said_and_nothing_is_made(lamina: Lamina, plant: str, folder: Path) -> None:
    assert lamina("packs", "create", "plant").code == 1
    assert lamina("packs", "create", "talk", "--type", "session").code != 0
    assert lamina("packs", "create", "talk", "--type", "session", "-u", "mira").code == 0
    assert [each["name"] for each in lamina("packs", "list", "--json").document["packs"]] == ["plant"]
    assert lamina("packs", "show", "talk").code == 1
    assert lamina("packs", "create", "x", "--unit", "soon").code == 2
    assert lamina("packs", "add", "nowhere", "text").code == 1
    assert lamina("packs", "pin", plant, "nowhere").code == 1
    assert lamina("packs", "show", "plant", "--json").document["memories"][0]["pinned_at"] is None
    assert lamina("packs", "fade", "-u", "mira").code == 2


def test_only_what_fades_needs_the_model_that_shortens(lamina: Lamina, plant: str) -> None:
    by_model = {"LAMINA_PACKS__REDUCER": "model"}
    assert lamina("packs", "list", env=by_model).code == 0
    assert lamina("packs", "fade", "--dry-run", env=by_model).code == 0
    run = lamina("packs", "fade", env=by_model)
    assert (run.code, "packs.reducer" in run.err) == (1, True)


def test_no_word_of_what_packs_have_lost_is_left_in_the_file_that_was_scrubbed(
    lamina: Lamina, plant: str, tmp_path: Path
) -> None:
    def is_told() -> bool:
        (file,) = tmp_path.rglob("lamina.db")
        return b"sale" in file.read_bytes()

    lamina("packs", "archive", plant)
    if sqlite3.sqlite_version_info < (3, 42):
        assert is_told()
    assert lamina("packs", "scrub").out == "Scrubbed.\n"
    assert not is_told()
    assert lamina("packs", "scrub", "--json").document == {"scrubbed": True}
    lamina("packs", "restore", plant)
    assert lamina("packs", "search", "furnace", "--json").document["results"][0]["content"] == RULE
