from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from scripted_server import FAILURES, Request, ScriptedServer

Lamina = Callable[..., Any]


@pytest.fixture
def later(lamina: Lamina) -> Callable[..., Any]:
    """Runs the command in a thread, so that the server beside it can answer."""

    async def run(*arguments: str, **options: Any) -> Any:
        return await asyncio.to_thread(lamina, *arguments, **options)

    return run


async def test_a_question_is_answered_from_memories_documents_and_the_thread(
    later: Lamina, server: ScriptedServer, speaks: Any, folder: Path
) -> None:
    (folder / "seats.md").write_text("# Seats\n\nSeat 14 is at the window.\n", encoding="utf-8")
    options = speaks("Seat ", "14.")
    await later("remember", "Mira prefers the window seat", "-u", "mira")
    await later("remember", "Tomas prefers the aisle seat", "-u", "tomas")
    await later("ingest", "seats.md")
    await later("thread", "add", "trip", "We go by the night train.", "-u", "mira")
    server.plays(server.pieces("Seat ", "14."))
    run = await later("ask", "Which seat should I book?", "-u", "mira", "--thread", "trip", *options)
    assert (run.code, run.out, run.err) == (0, "Seat 14.\n", "")
    sent = json.dumps(server.requests[-1].json, ensure_ascii=False)
    assert server.requests[-1].json["stream"] is True
    for known in ("Mira prefers the window seat", "Seat 14 is at the window.", "night train", "Which seat should I"):
        assert known in sent
    assert "Tomas" not in sent
    history = (await later("thread", "history", "trip", "--json")).document["messages"]
    assert [each["content"] for each in history[1:]] == ["Which seat should I book?", "Seat 14."]


async def test_as_json_the_answer_comes_with_what_it_was_made_from_and_what_it_cost(
    later: Lamina, server: ScriptedServer, speaks: Any
) -> None:
    options = speaks(server.chat("Noon."))
    run = await later("ask", "When is lunch?", "--json", *options, "--budget", "900")
    document = run.document
    assert (run.code, document["answer"], document["thread_id"]) == (0, "Noon.", None)
    assert document["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert document["context"]["token_budget"] == 900
    assert document["context"]["tokens"] == sum(document["context"]["tokens_by_source"].values())
    assert document["warnings"][0] == "longterm degraded (vector: no_embedder)"


async def test_a_question_comes_from_a_pipe_and_the_answer_stays_harmless(
    later: Lamina, server: ScriptedServer, speaks: Any
) -> None:
    options = speaks()
    server.plays(server.pieces("red \x1b[31m", "one\r", "\ntwo\r", " 路線図 🗼\n"))
    run = await later("ask", *options, stdin="what is\nthis?\n")
    assert run.out == "red \ufffd[31mone\ntwo\ufffd 路線図 🗼\n"
    assert "what is\\nthis?" in json.dumps(server.requests[0].json)


async def test_without_a_model_it_says_what_to_configure_and_makes_nothing(later: Lamina, tmp_path: Path) -> None:
    for command, arguments in (("ask", ["hello"]), ("chat", [])):
        run = await later(command, *arguments)
        assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)
        assert f"`lamina {command}` needs a language model" in run.err
        for way in ("--model", "LAMINA_MODEL", "lamina.toml", "--base-url"):
            assert way in run.err
    assert not (tmp_path / "data").exists()
    assert (await later("ask", " ")).code == 2
    assert "pipe it in" in (await later("ask", terminal=True)).err


async def test_the_model_may_be_named_by_settings_and_part_of_it_by_options(
    later: Lamina, server: ScriptedServer, folder: Path
) -> None:
    server.plays(server.pieces("yes"))
    env = {"LAMINA_MODEL": "http:small", "LAMINA_MODEL__BASE_URL": server.url}
    assert (await later("ask", "hello", env=env)).out == "yes\n"
    (folder / "lamina.toml").write_text(
        f'[model]\nprovider = "http"\nmodel = "small"\nbase_url = "{server.url}"\n', encoding="utf-8"
    )
    assert (await later("ask", "hello")).out == "yes\n"
    assert (await later("ask", "hello", "--model", "http:other")).out == "yes\n"
    assert [each.json["model"] for each in server.requests] == ["small", "small", "other"]
    assert "Use one of:" in (await later("ask", "hello", "--model", "nobody:x")).err


FAST = {name: FAILURES[name] for name in ("401", "HTML with status 200", "no choices", "a blank answer")}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("reply", FAST.values(), ids=FAST.keys())
async def test_a_model_that_gives_no_answer_is_one_line_and_nothing_is_kept(
    later: Lamina, speaks: Any, reply: Any, form: list[str]
) -> None:
    options = speaks(reply)
    await later("thread", "add", "trip", "first")
    run = await later("ask", "hello", "--thread", "trip", *options, *form)
    assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)
    assert run.err.startswith("Error: The question was not answered. Provider")
    assert (await later("thread", "history", "trip", "--json")).document["total"] == 1


async def test_an_answer_that_breaks_off_ends_its_line_and_is_no_answer(
    later: Lamina, server: Any, speaks: Any
) -> None:
    options = speaks(server.cut("Seat four"))
    run = await later("ask", "which?", "--thread", "trip", *options)
    assert (run.code, run.out) == (1, "Seat four\n")
    assert "was not answered" in run.err
    assert (await later("thread", "list", "--json")).document["threads"] == []


async def test_another_owner_s_thread_and_an_archived_one_are_refused(
    later: Lamina, server: ScriptedServer, speaks: Any
) -> None:
    options = speaks("never")
    await later("thread", "add", "diary", "secret", "-u", "mira")
    for command in ("ask", "context"):
        run = await later(command, "what?", "--thread", "diary", "-u", "tomas", *(options if command == "ask" else []))
        assert (run.code, run.err) == (1, "Error: The thread 'diary' belongs to another owner.\n")
    await later("thread", "archive", "diary")
    assert "archived" in (await later("ask", "what?", "--thread", "diary", "-u", "mira", *options)).err
    assert "archived" in (await later("context", "what?", "--thread", "diary", "-u", "mira")).err
    assert server.requests == []


async def test_auto_save_remembers_what_was_said_in_the_namespace(
    later: Lamina, server: ScriptedServer, speaks: Any
) -> None:
    options = speaks(server.chat("Hello Mira."), server.chat('{"facts": []}'))
    env = {"LAMINA_MEMORY__AUTO_SAVE": "1"}
    assert (await later("ask", "My name is Mira.", "--json", "-n", "home", *options, env=env)).code == 0
    server.plays(server.chat("Hello again."), server.error(401))
    run = await later("ask", "My name is Mira.", "--json", "-n", "home", *options, env=env)
    assert run.document["warnings"][-1:] == ["auto_save went by rules: the model failed with ProviderError"]
    (entry,) = (await later("list", "-n", "home", "--json")).document["memories"]
    assert (entry["content"], [entry["id"]]) == ("My name is Mira.", run.document["saved"])


def test_what_would_be_sent_is_shown_with_bars_and_changes_nothing(lamina: Lamina, folder: Path) -> None:
    (folder / "seats.md").write_text("# Seats\n\nSeat 14 is at the window.\n", encoding="utf-8")
    lamina("remember", "Mira prefers the window seat", "-u", "mira", "-t", "preference")
    lamina("remember", "The window seat of the ferry is wet", "-u", "mira", "--id", "wet")
    lamina("ingest", "seats.md")
    lamina("thread", "add", "trip", "We go by ferry.", "-u", "mira")
    run = lamina("context", "Which window seat?", "-u", "mira", "--thread", "trip")
    assert (run.code, run.err) == (0, "")
    sources = ("preferences", "longterm", "documents", "conversation", "goal")
    texts = ("Mira prefers the window seat", "ferry is wet", "Seat 14", "We go by ferry.", "Nothing was dropped.")
    for part in ("of 8,000 tokens (estimate)", "█", *sources, *texts):
        assert part in run.out
    assert lamina("get", "wet", "--json").document["access_count"] == 0
    assert lamina("thread", "history", "trip", "--json").document["total"] == 1


def test_what_was_dropped_is_told_with_its_tokens_and_why(lamina: Lamina) -> None:
    for number in range(6):
        lamina("remember", f"The ferry number {number} has a window seat that is free " + "x" * 200)
    document = lamina("context", "Which window seat?", "--budget", "420", "--json").document
    assert document["tokens"] <= document["token_budget"] == 420
    assert document["tokens"] == sum(document["tokens_by_source"].values())
    assert {each["reason"] for each in document["dropped"]} == {"budget"}
    kept = [each for each in document["kept"] if each["kind"] == "memory"]
    assert len(kept) + len(document["dropped"]) == 6
    shown = lamina("context", "Which window seat?", "--budget", "420").out
    assert all(each["id"] in shown for each in document["dropped"])
    over = lamina("context", "Which window seat?", "--budget", "3", env={"COLUMNS": "60"})
    assert (over.code, "over budget" in over.out) == (0, True)


def test_what_would_be_sent_comes_in_each_shape(lamina: Lamina) -> None:
    lamina("remember", "The lamp is \x1b[31m green")
    plain = lamina("context", "Which lamp?", "--form", "plain").out
    assert ("<goal>\nWhich lamp?\n</goal>" in plain, "\x1b" in plain) == (True, False)
    openai = lamina("context", "Which lamp?", "--form", "openai").document
    assert openai[-1] == {"role": "user", "content": "Which lamp?"}
    anthropic = lamina("context", "Which lamp?", "--form", "anthropic").document
    assert ("system" in anthropic, anthropic["messages"][-1]["role"]) == (True, "user")
    assert lamina("context", "Which lamp?", "--form", "plain", "--json").document.endswith("</goal>\n")
    assert lamina("context", "Which lamp?", "--json").document["messages"] == openai
    assert lamina("context", "Which lamp?", "--form", "letter").code == 2


def test_tokens_are_counted_as_the_named_model_does(lamina: Lamina) -> None:
    pytest.importorskip("bpe_openai")
    lamina("remember", "The lamp is green")
    assert lamina("context", "Which lamp?", "--json", "--model", "openai:gpt-4o").document["counter"] == "o200k_base"
    env = {"LAMINA_MODEL": "openai:gpt-4o"}
    assert lamina("context", "Which lamp?", "--json", env=env).document["counter"] == "o200k_base"


def test_a_thread_that_is_not_there_yet_is_told(lamina: Lamina) -> None:
    lamina("remember", "The lamp is green")
    run = lamina("context", "Which lamp?", "--thread", "new")
    assert (run.code, "There is no thread 'new' yet" in run.err) == (0, True)
    assert lamina("thread", "list", "--json").document["threads"] == []


async def test_a_real_model_answers_and_the_turn_is_kept(
    later: Lamina, server: ScriptedServer, real_model: Any
) -> None:
    async def few_words(request: Request, writer: asyncio.StreamWriter) -> None:
        """Passes on to the real model, and keeps it short: left alone it talks until its window is full."""
        body = {**request.json, "max_tokens": 16, "temperature": 0}
        async with httpx2.AsyncClient(timeout=300) as client:
            answer = await client.post(f"{real_model.url}/chat/completions", json=body)
        kind = answer.headers["content-type"]
        await ScriptedServer.raw(answer.content, answer.status_code, content_type=kind)(request, writer)

    server.plays(few_words)
    options = ["--model", f"http:{real_model.name}", "--base-url", server.url, "--thread", "t"]
    await later("remember", "The spare key is under the blue pot")
    streamed = await later("ask", "Where is the spare key?", *options)
    assert (streamed.code, streamed.err) == (0, "")
    assert streamed.out.strip()
    whole = (await later("ask", "Say it again.", *options, "--json")).document
    assert whole["usage"]["output_tokens"] > 0
    history = (await later("thread", "history", "t", "--json")).document["messages"]
    assert [each["role"] for each in history] == ["user", "assistant"] * 2
    assert history[1]["content"].strip() == streamed.out.strip()
