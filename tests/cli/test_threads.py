from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import FAILURES

Lamina = Callable[..., Any]


def fill(lamina: Lamina, count: int, *, thread: str = "trip") -> None:
    for number in range(count):
        assert lamina("thread", "add", thread, f"message {number}").code == 0


def test_messages_are_added_in_order_and_shown(lamina: Lamina) -> None:
    first = lamina("thread", "add", "trip", "Book the window seat", "-u", "mira", "--meta", "app=mail")
    assert (first.code, first.err, first.out.startswith("msg_")) == (0, "", True)
    lamina("thread", "add", "trip", "--role", "assistant", "--name", "Ada", stdin="Done.\nAnything else?\n")
    shown = lamina("thread", "show", "trip", "--json").document
    assert (shown["id"], shown["owner"], shown["status"], shown["total"]) == ("trip", "mira", "active", 2)
    assert [(each["role"], each["content"]) for each in shown["messages"]] == [
        ("user", "Book the window seat"),
        ("assistant", "Done.\nAnything else?"),
    ]
    assert (shown["messages"][0]["id"], shown["messages"][0]["metadata"]) == (first.out.strip(), {"app": "mail"})
    people = lamina("thread", "show", "trip").out
    assert people.index("Book the window seat") < people.index("assistant Ada") < people.index("Anything else?")


def test_adding_with_an_id_of_ones_own_is_harmless_to_repeat(lamina: Lamina) -> None:
    for _ in range(2):
        assert lamina("thread", "add", "trip", "once", "--id", "m1").out == "m1\n"
    assert lamina("thread", "history", "trip", "--json").document["total"] == 1
    assert lamina("thread", "add", "trip", "other words", "--id", "m1").code == 1


def test_threads_are_listed_the_last_changed_first_by_status_owner_and_namespace(lamina: Lamina) -> None:
    lamina("thread", "add", "one", "hello", "-u", "mira")
    lamina("thread", "add", "two", "hello", "-u", "tomas", "-n", "work")
    lamina("thread", "add", "three", "hello", "-u", "mira", "-n", "work")
    lamina("thread", "archive", "one")

    def listed(*options: str) -> list[str]:
        return [each["id"] for each in lamina("thread", "list", "--json", *options).document["threads"]]

    assert listed() == ["three", "two"]
    assert listed("--status", "all", "-u", "mira") == ["one", "three"]  # it was changed last
    assert listed("--status", "archived") == ["one"]
    assert listed("-n", "work", "-u", "tomas") == ["two"]
    page = lamina("thread", "list", "--json", "--limit", "1", "--offset", "1").document
    assert ([each["id"] for each in page["threads"]], page["more"]) == (["two"], False)
    assert [each["id"] for each in lamina("thread", "list", "--json", "--nl").lines] == ["three", "two"]
    assert lamina("thread", "list", "--status", "lost").code == 2
    assert "--offset 1 shows the next" in lamina("thread", "list", "--limit", "1").err


def test_another_owner_s_thread_is_refused_in_every_command(lamina: Lamina) -> None:
    lamina("thread", "add", "diary", "secret", "-u", "mira")
    for command in ("show", "history", "compact", "archive", "unarchive", "delete --yes", "add"):
        name, *rest = command.split()
        run = lamina("thread", name, "diary", *rest, *(["words"] if name == "add" else []), "-u", "tomas")
        assert (run.code, run.out) == (1, ""), command
        assert run.err == "Error: The thread 'diary' belongs to another owner.\n"
    for name in ("show", "history", "archive"):
        assert (
            lamina("thread", name, "diary", "-n", "work").err == "Error: The thread 'diary' is of another namespace.\n"
        )
    assert lamina("thread", "history", "diary", "--json").document["total"] == 1


def test_an_unknown_thread_is_told(lamina: Lamina) -> None:
    lamina("remember", "a database")
    for name in ("show", "history", "compact", "archive", "unarchive", "delete"):
        run = lamina("thread", name, "none")
        assert (run.code, run.err) == (1, "Error: No thread here has the id 'none'.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        *("thread list", "thread show x", "thread history x", "thread compact x", "thread archive x"),
        *("thread delete x --yes", "docs list", "docs show x", "docs search x", "docs remove x --yes"),
        *("docs clear --yes", "docs stats", "context x"),
    ],
)
def test_what_only_reads_or_removes_makes_no_database(lamina: Lamina, tmp_path: Path, arguments: str) -> None:
    run = lamina(*arguments.split())
    assert (run.code, run.out, "there is none at" in run.err) == (1, "", True)
    assert not (tmp_path / "data").exists()


def test_an_archived_thread_takes_no_messages_until_it_is_brought_back(lamina: Lamina) -> None:
    fill(lamina, 1)
    assert lamina("thread", "archive", "trip").out == "1 thread archived.\n"
    assert "archived" in lamina("thread", "add", "trip", "more").err
    assert lamina("thread", "show", "trip", "--json").document["messages"][0]["content"] == "message 0"
    assert lamina("thread", "unarchive", "trip", "--json").document == {"unarchived": 1}
    assert lamina("thread", "add", "trip", "more").code == 0


def test_deleting_asks_and_deletes_for_good(lamina: Lamina) -> None:
    fill(lamina, 1)
    fill(lamina, 1, thread="move")
    assert "add --yes" in lamina("thread", "delete", "trip").err
    assert lamina("thread", "delete", "trip", terminal=True, stdin="n\n").code == 130
    assert lamina("thread", "delete", "trip", "none", "--yes").code == 1
    assert lamina("thread", "delete", "trip", "trip", "move", "--yes", "--json").document == {"deleted": 2}
    assert lamina("thread", "list", "--status", "all", "--json").document["threads"] == []


def test_compacting_without_a_model_folds_into_extracts_and_loses_nothing(lamina: Lamina, folder: Path) -> None:
    (folder / "lamina.toml").write_text("[conversation]\nwindow = 3\n", encoding="utf-8")
    fill(lamina, 3)
    lamina("thread", "add", "trip", "The booking number is 7431 and the train leaves at 10:42.")
    report = lamina("thread", "compact", "trip", "--json").document
    shown = lamina("thread", "show", "trip", "--json").document
    assert (report["kept"], shown["folded"], shown["summary"]["source"]) == (3, 1, "extractive")
    fill(lamina, 4)
    assert "7431" in lamina("thread", "show", "trip").out
    history = lamina("thread", "history", "trip", "--json", "--offset", "3", "--limit", "2").document
    assert [each["index"] for each in history["messages"]] == [4, 5]
    assert history["total"] == 8
    assert len(lamina("thread", "history", "trip", "--json", "--nl").lines) == 8
    assert "--offset 2 shows the next" in lamina("thread", "history", "trip", "--limit", "2").err


@pytest.mark.parametrize("failure", ["503", "an empty answer"])
async def test_a_summariser_that_fails_is_told_and_changes_nothing(
    lamina: Lamina, folder: Path, speaks: Any, failure: str
) -> None:
    (folder / "lamina.toml").write_text("[conversation]\nwindow = 2\nsummarize_batch_size = 9\n", encoding="utf-8")
    options = speaks(FAILURES[failure])
    await asyncio.to_thread(fill, lamina, 4)
    run = await asyncio.to_thread(lamina, "thread", "compact", "trip", *options)
    assert (run.code, run.out) == (1, "0 messages folded, 4 kept in full.\n")
    assert run.err.strip()
    shown = (await asyncio.to_thread(lamina, "thread", "show", "trip", "--json")).document
    assert (shown["summary"], len(shown["messages"])) == (None, 4)


async def test_facts_are_extracted_with_a_model_and_remembered(lamina: Lamina, server: Any, speaks: Any) -> None:
    options = speaks(server.chat('{"topics": ["food"], "facts": ["Mira is allergic to walnuts"]}'))
    lamina_ = lambda *arguments: asyncio.to_thread(lamina, *arguments)  # noqa: E731
    await lamina_("thread", "add", "trip", "I am allergic to walnuts.", "-u", "mira")
    run = await lamina_("thread", "extract", "trip", "--json", *options)
    assert run.code == 0, run.err
    (stored,) = run.document["ids"]
    assert "walnuts" in (await lamina_("get", stored, "-u", "mira")).out
    without = await lamina_("thread", "extract", "trip")
    assert (without.code, "needs a language model" in without.err) == (1, True)


def test_reading_needs_no_model_though_the_settings_name_one_that_cannot_be_made(lamina: Lamina) -> None:
    fill(lamina, 1)
    env = {"LAMINA_MODEL": "openai:gpt-4o", "LAMINA_MEMORY__LLM": "openai:gpt-4o"}
    for arguments in ("thread list", "thread show trip", "thread history trip", "docs list", "context hello"):
        assert lamina(*arguments.split(), env=env).code == 0
    assert "OPENAI_API_KEY" in lamina("ask", "hello", env=env).err


def test_control_characters_of_a_message_stay_harmless_and_wide_ones_whole(lamina: Lamina) -> None:
    lamina("thread", "add", "trip\x1b[2J", stdin="red \x1b[31m alert \u202e txt 路線図 🗼\n")
    for arguments in (("show", "trip\x1b[2J"), ("history", "trip\x1b[2J"), ("list",)):
        shown = lamina("thread", *arguments).out
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "路線図 🗼" in lamina("thread", "history", "trip\x1b[2J").out
