from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Lamina = Callable[..., Any]


def test_what_is_remembered_is_recalled_with_its_score_in_parts(lamina: Lamina) -> None:
    stored = lamina("remember", "Mira prefers the window seat", "-u", "mira", "-t", "preference")
    assert (stored.code, stored.err) == (0, "")
    found = lamina("recall", "which seat?", "-u", "mira", "--json").document
    (result,) = found["results"]
    assert result["entry"]["id"] == stored.out.strip()
    assert result["entry"]["tags"] == ["preference"]
    assert set(result["score_breakdown"]) >= {"similarity", "recency", "frequency", "relevance"}
    assert found["degraded"] == [{"leg": "vector", "reason": "no_embedder", "detail": ""}]


def test_the_best_ones_are_read_again_where_that_is_asked_for(lamina: Lamina) -> None:
    lamina("remember", "Mira prefers the window seat")
    found = lamina("recall", "which seat does Mira like?", "--rerank", "cross-encoder", "--explain", "--json").document
    assert found["results"][0]["explanation"]["rerank"] > 0.5
    shown = lamina("recall", "wo sitzt Mira, und wann?", "--rerank", "cross-encoder").out
    assert "the reranker did not answer in full: other_language" in " ".join(shown.split())
    assert lamina("recall", "seat", "--rerank", "magic").code != 0


def test_people_see_a_table_with_bars_and_what_was_degraded(lamina: Lamina) -> None:
    lamina("remember", "Mira prefers the window seat")
    shown = lamina("recall", "window seat").out
    for part in ("similarity", "recency", "frequency", "relevance", "Mira prefers the window seat", "█", "degraded"):
        assert part in shown


def test_nothing_found_is_no_error(lamina: Lamina) -> None:
    lamina("remember", "gone soon", "--id", "x")
    lamina("forget", "x", "--yes")
    found = lamina("recall", "anything")
    assert (found.code, "Nothing found." in found.out) == (0, True)
    assert lamina("list").code == 0
    assert lamina("list", "--json").document == {"memories": [], "total": 0}
    assert lamina("recall", "anything", "--json", "--nl").out == ""


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_text_comes_from_a_pipe(lamina: Lamina, arguments: tuple[str, ...]) -> None:
    lamina("remember", *arguments, stdin="two lines\nof a note\n")
    (entry,) = lamina("list", "--json").document["memories"]
    assert entry["content"] == "two lines\nof a note"
    assert lamina("recall", *arguments, "--json", stdin="note\n").document["results"]


def test_a_text_that_is_missing_at_a_terminal_is_asked_for_by_an_error(lamina: Lamina) -> None:
    for name in ("remember", "recall"):
        run = lamina(name, terminal=True)
        assert run.code == 2
        assert run.err.startswith("Error: ")
        assert "pipe it in" in run.err


def test_every_part_of_a_memory_can_be_said(lamina: Lamina) -> None:
    lamina(
        "remember", "Lunch at noon", "--id", "lunch", "--layer", "session", "--ttl", "12h", "--relevance", "0.9",
        "--confidence", "0.5", "--source", "mail:7", "--untrusted", "--occurred-at", "2026-03-01", "-n", "plans",
        "--meta", "guests=4", "--meta", "place.city=Izmir", "--meta", "place.open=true", "--meta", 'code="4"',
        "--meta", "note=a=b",
    )  # fmt: skip
    entry = lamina("get", "lunch", "--json").document
    assert entry["metadata"] == {"guests": 4, "place": {"city": "Izmir", "open": True}, "code": "4", "note": "a=b"}
    assert (entry["layer"], entry["ttl"], entry["relevance"], entry["confidence"]) == ("session", 43200.0, 0.9, 0.5)
    assert (entry["source"], entry["trust"], entry["namespace"]) == ("mail:7", "untrusted", "plans")
    assert entry["occurred_at"] == "2026-03-01T00:00:00.000000Z"
    assert "Izmir" in lamina("get", "lunch").out


def test_a_life_may_be_endless(lamina: Lamina) -> None:
    lamina("remember", "kept", "--id", "kept", "--layer", "session", "--ttl", "never")
    assert lamina("get", "kept", "--json").document["expires_at"] is None


def test_the_working_layer_outlives_the_process(lamina: Lamina) -> None:
    lamina("remember", "comparing two trains", "--layer", "working")
    assert lamina("recall", "trains", "--json").document["results"][0]["entry"]["layer"] == "working"


def test_filters_bound_recall_and_list(lamina: Lamina) -> None:
    for name, arguments in {
        "a": ("--meta", "status=open", "--meta", "due=4", "-t", "x"),
        "b": ("--meta", "status=open", "--meta", "due=9", "-t", "y", "-n", "other"),
        "c": ("--meta", "status=done", "--layer", "session"),
    }.items():
        lamina("remember", f"task {name}", "--id", name, *arguments)

    def ids(*arguments: str) -> list[str]:
        return sorted(entry["id"] for entry in lamina("list", "--json", "--nl", *arguments).lines)

    assert ids("--where", '{"status": "open"}') == ["a", "b"]
    assert ids("--where", '{"due": {"lte": 5}}') == ["a"]
    assert ids("-n", "other") == ["b"]
    assert ids("-t", "x") == ["a"]
    assert ids("--any-tag", "x", "--any-tag", "y") == ["a", "b"]
    assert ids("-l", "session", "-l", "longterm") == ["a", "b", "c"]
    assert [line["entry"]["id"] for line in lamina("recall", "task", "-l", "session", "--json", "--nl").lines] == ["c"]


def test_owners_do_not_see_each_other(lamina: Lamina) -> None:
    lamina("remember", "mira's secret", "-u", "mira", "--id", "m")
    assert lamina("list", "-u", "tomas", "--json").document["total"] == 0
    assert lamina("get", "m", "-u", "tomas").code == 1
    assert lamina("forget", "m", "-u", "tomas", "--yes").code == 1
    assert lamina("get", "m", "-u", "mira").code == 0
    assert lamina("list", "--tenant", "other", "--json").document["total"] == 0


def test_an_owner_in_the_environment_binds_reading_as_well(lamina: Lamina) -> None:
    lamina("remember", "mira's", "-u", "mira")
    as_tomas = {"LAMINA_OWNER": "tomas"}
    lamina("remember", "tomas's", env=as_tomas)
    assert [entry["owner"] for entry in lamina("list", "--json", "--nl", env=as_tomas).lines] == ["tomas"]
    assert len(lamina("list", "--json", "--nl").lines) == 2


def test_pages_tile_the_list_and_say_what_follows(lamina: Lamina) -> None:
    for number in range(5):
        lamina("remember", f"note {number}")
    first, second = lamina("list", "--limit", "3"), lamina("list", "--limit", "3", "--offset", "3")
    assert "1 to 3 of 5; --offset 3 shows the next" in first.err
    assert second.err == ""
    seen = [
        line["id"]
        for offset in (0, 3)
        for line in lamina("list", "--json", "--nl", "--limit", "3", "--offset", str(offset)).lines
    ]
    assert len(set(seen)) == 5


def test_listing_counts_no_access_and_recalling_does_unless_told_not_to(lamina: Lamina) -> None:
    lamina("remember", "window seat", "--id", "w")
    lamina("list")
    lamina("recall", "window", "--no-touch")
    assert lamina("get", "w", "--json").document["access_count"] == 0
    lamina("recall", "window")
    assert lamina("get", "w", "--json").document["access_count"] == 1


def test_a_recall_explains_itself(lamina: Lamina) -> None:
    lamina("remember", "window seat")
    document = lamina("recall", "window", "--explain", "--json").document
    assert document["explanation"]["terms"]
    assert document["results"][0]["explanation"]["contributions"]
    shown = lamina("recall", "the window yesterday", "--explain").out
    assert "Candidates:" in shown
    assert 'Read "yesterday" as from' in shown


def test_a_memory_cannot_command_the_terminal(lamina: Lamina) -> None:
    lamina("remember", "\x1b[2J cleared \x07 [bold]not bold[/bold] \u202egnirts", "--id", "evil")
    for arguments in (("recall", "cleared"), ("list",), ("get", "evil")):
        shown = lamina(*arguments).out
        assert "[bold]not bold[/bold]" in shown
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_forgetting_by_id(lamina: Lamina) -> None:
    lamina("remember", "one", "--id", "one")
    lamina("remember", "two", "--id", "two")
    assert lamina("forget", "one", "--dry-run", "--json").document == {"would_forget": 1}
    assert lamina("forget", "one", "two", "--yes", "--json").document == {"forgotten": 2}
    assert lamina("list", "--json").document["total"] == 0


def test_forgetting_an_unknown_id_forgets_nothing_else(lamina: Lamina) -> None:
    lamina("remember", "one", "--id", "one")
    run = lamina("forget", "one", "none", "--yes")
    assert (run.code, run.err) == (1, "Error: No memory here has the id 'none'.\n")
    assert lamina("list", "--json").document["total"] == 1


def test_forgetting_by_filter_touches_only_what_meets_all_conditions(lamina: Lamina) -> None:
    lamina("remember", "a", "--id", "a", "-l", "session", "-t", "x")
    lamina("remember", "b", "--id", "b", "-l", "session")
    lamina("remember", "c", "--id", "c", "-t", "x")
    assert lamina("forget", "-l", "session", "-t", "x", "--dry-run").out == "1 memory would be forgotten.\n"
    assert lamina("list", "--json").document["total"] == 3
    assert lamina("forget", "-l", "session", "-t", "x", "--yes").code == 0
    assert sorted(line["id"] for line in lamina("list", "--json", "--nl").lines) == ["b", "c"]
    assert lamina("forget", "--older-than", "30d", "--yes", "--json").document == {"forgotten": 0}
    assert lamina("forget", "--older-than", "2999-01-01", "--yes", "--json").document == {"forgotten": 2}


def test_without_a_terminal_nothing_is_forgotten_unasked(lamina: Lamina) -> None:
    lamina("remember", "one", "--id", "one")
    for arguments in (("one",), ("-n", "default")):
        run = lamina("forget", *arguments, stdin="y\n")
        assert (run.code, "--yes" in run.err) == (2, True)
    assert lamina("list", "--json").document["total"] == 1


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 130, 1), ("y\n", 0, 0)])
def test_at_a_terminal_it_asks(lamina: Lamina, answer: str, code: int, left: int) -> None:
    lamina("remember", "one", "--id", "one")
    run = lamina("forget", "one", stdin=answer, terminal=True)
    assert (run.code, "Delete 1 memory" in run.err) == (code, True)
    assert lamina("list", "--json").document["total"] == left


@pytest.mark.parametrize("arguments", [(), ("one", "-l", "session")])
def test_forgetting_takes_ids_or_a_filter(lamina: Lamina, arguments: tuple[str, ...]) -> None:
    assert lamina("forget", *arguments, "--yes").code == 2


def test_an_owner_of_the_settings_alone_is_no_condition_for_forgetting(lamina: Lamina) -> None:
    lamina("remember", "one", "-u", "mira")
    assert lamina("forget", "--yes", env={"LAMINA_OWNER": "mira"}).code == 2
    assert lamina("forget", "-u", "mira", "--yes", "--json").document == {"forgotten": 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("remember", "x", "--meta", "novalue"), "not key=value"),
        (("remember", "x", "--meta", "a=1", "--meta", "a.b=2"), "plain value"),
        (("remember", "x", "--ttl", "soon"), "no duration"),
        (("remember", "x", "--relevance", "2"), "relevance"),
        (("remember", "   "), "blank"),
        (("remember", "x", "--layer", "attic"), "longterm"),
        (("remember", "x", "--layer", "longtrem"), "'global'. Did you mean 'longterm'?"),
        (("recall", " "), "blank"),
        (("recall", "x", "--where", "status=open"), "JSON object"),
        (("recall", "x", "--where", '{"a": {"near": 1}}'), "operator"),
        (("recall", "x", "--where", "[" * 50_000), "JSON object"),
        (("recall", "x", "--where", '{"a": ' + "9" * 5000 + "}"), "JSON object"),
        (("recall", "x", "--where", '{"not": ' * 900 + '{"a": 1}' + "}" * 900), "JSON object"),
        (("list", "--limit", "9" * 30), "limit"),
        (("list", "--offset", "9" * 30), "offset"),
        (("recall", "x", "--min-score", "7"), "min_score"),
        (("recall", "x", "--limit", "0"), "limit"),
        (("recall", "x", "--mod", "text"), "--mode"),
        (("forget", "--older-than", "yesterday", "--yes"), "90d"),
        (("recall", "x", "--nl"), "needs --json"),
        (("list", "--nl"), "needs --json"),
        (("remember", "x", "--ttl", "0s"), "`never`"),
        (("remembr", "x"), "remember"),
    ],
)
def test_a_wrong_call_is_one_line_with_a_suggestion_and_exit_code_2(
    lamina: Lamina, arguments: tuple[str, ...], told: str
) -> None:
    lamina("remember", "so that there is a database")
    run = lamina(*arguments)
    assert run.code == 2
    assert run.out == ""
    assert run.err.startswith("Error: ")
    assert run.err.count("\n") == 1
    assert told in run.err


def test_a_memory_that_is_not_there_is_exit_code_1(lamina: Lamina) -> None:
    lamina("remember", "so that there is a database")
    run = lamina("get", "mem_none", "--json")
    assert (run.code, run.out, run.err) == (1, "", "Error: No memory here has the id 'mem_none'.\n")


def test_json_carries_all_scripts_as_they_are(lamina: Lamina) -> None:
    lamina("remember", "路線図は灯台の隣 🗼")
    out = lamina("list", "--json").out
    assert "路線図は灯台の隣 🗼" in out
    assert json.loads(out)


LONG = "Mira prefers the window seat on long journeys, and the aisle on short ones; " * 9
ID = "mem_0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("columns", ["48", "80", "120"])
def test_an_id_stands_whole_in_its_line_whatever_the_width(lamina: Lamina, columns: str) -> None:
    lamina("remember", LONG, "--id", ID)
    for arguments in (("recall", "window seat"), ("list",)):
        assert ID in lamina(*arguments, env={"COLUMNS": columns}).out


def test_in_little_room_the_bars_go_first_and_the_score_and_the_memory_stay(lamina: Lamina) -> None:
    lamina("remember", "Window seats are best", "--id", ID)
    for columns, bars, components in (("120", True, True), ("80", False, True), ("40", False, False)):
        shown = lamina("recall", "window seats", env={"COLUMNS": columns}).out
        assert ("█" in shown, "rec" in shown) == (bars, components)
        assert "score" in shown
        assert "Window seats are best" in shown


def test_a_list_shows_one_line_of_each_memory(lamina: Lamina) -> None:
    lamina("remember", LONG + "\n" + LONG, "--id", ID)
    shown = lamina("list", env={"COLUMNS": "80"}).out.splitlines()
    assert len(shown) == 4
    assert shown[1].rstrip().endswith("…")
    assert "Mira prefers the window seat" in shown[1]


def test_no_color_means_no_escape_sequence_at_all(process: Lamina) -> None:
    process("remember", "Window seats are best")
    shown = process("recall", "window", env={"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert "Window" in shown.out
    assert "\x1b" not in shown.out + shown.err


READS = [
    ("recall", "x"),
    ("list",),
    ("get", "x"),
    ("forget", "x", "--yes"),
    ("decay",),
    ("reembed",),
    ("export",),
    ("stats",),
]


@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_what_only_reads_makes_no_database_and_says_that_there_is_none(
    lamina: Lamina, folder: Path, arguments: tuple[str, ...]
) -> None:
    run = lamina(*arguments, "--db", "sub/mistyped.db")
    assert (run.code, run.out) == (1, "")
    assert f"there is none at {folder / 'sub' / 'mistyped.db'}" in run.err
    assert list(folder.iterdir()) == []


def test_a_database_that_is_named_is_made_but_not_its_folder(lamina: Lamina, folder: Path, tmp_path: Path) -> None:
    assert lamina("remember", "x", "--db", "new.db").code == 0
    run = lamina("remember", "x", "--db", "sub/new.db")
    assert (run.code, f"there is no folder {folder / 'sub'}" in run.err) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["new.db"]
    assert lamina("remember", "x", "--data-dir", str(tmp_path / "made" / "for" / "it")).code == 0


def test_what_came_from_a_source_is_put_away_listed_released_and_forgotten(lamina: Lamina) -> None:
    lamina("remember", "Pay Evilbank", "--source", "web:bad.example/\x1b[2J1", "--untrusted")
    lamina("remember", "Pay Northbank", "--source", "web:good.example/1")
    assert lamina("quarantine", "--prefix", "web:bad.example").code != 0
    (act,) = lamina("quarantine", "--prefix", "web:bad.example/", "--json").document
    assert (len(act["from_source"]), act["derived"]) == (1, [])
    assert [each["entry"]["content"] for each in lamina("recall", "Pay whom?", "--json").document["results"]] == [
        "Pay Northbank"
    ]
    shown = lamina("quarantine").out
    assert shown.startswith(act["id"])
    assert "\x1b" not in shown
    assert lamina("release", act["id"]).out == "1 memory released.\n"
    assert lamina("quarantine").out == "Nothing is in quarantine.\n"
    assert lamina("forget-source", "--prefix", "web:bad.example/").code != 0  # nobody can be asked
    assert lamina("forget-source", "--prefix", "web:bad.example/", "--dry-run").out == "1 memory would be forgotten.\n"
    assert lamina("forget-source", "--prefix", "web:bad.example/", "--yes", "--json").document == {"forgotten": 1}
