from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

Lamina = Callable[..., Any]
NEEDS_TERMINALS = pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")


@pytest.fixture
def chat(lamina: Lamina, server: ScriptedServer) -> Callable[..., Any]:
    """Runs a chat in a thread, so that the server beside it can answer."""

    async def run(lines: str, *arguments: str, **options: Any) -> Any:
        named = ("chat", "--model", "http:scripted", "--base-url", server.url, *arguments)
        return await asyncio.to_thread(lamina, *named, stdin=lines, **options)

    return run


@pytest.fixture
def start(executable: Path, environment: dict[str, str], folder: Path, server: ScriptedServer) -> Callable[..., Any]:
    """Starts a chat as a process of its own."""

    async def begin(*arguments: str, **streams: Any) -> asyncio.subprocess.Process:
        named = ("chat", "--model", "http:scripted", "--base-url", server.url, "--thread", "t", *arguments)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        return await asyncio.create_subprocess_exec(
            executable, *named, cwd=folder, env=environment, **{**pipes, **streams}
        )

    return begin


async def kept(lamina: Lamina, thread: str = "t") -> list[tuple[str, str, str | None]]:
    """Role, text and the mark of having no answer, of every message of the thread."""
    run = await asyncio.to_thread(lamina, "thread", "history", thread, "--json")
    return [
        (each["role"], each["content"], each.get("metadata", {}).get("unanswered")) for each in run.document["messages"]
    ]


async def starts_to_answer(server: ScriptedServer, reader: asyncio.StreamReader, text: bytes) -> None:
    """Waits until this much of an answer has come out."""
    async with asyncio.timeout(30):
        assert await reader.readexactly(len(text)) == text


async def arrived(descriptor: int, wanted: bytes) -> bytes:
    """What can be read up to this; the event loop, where the server is, goes on meanwhile."""
    os.set_blocking(descriptor, False)
    seen = b""
    while wanted not in seen:
        try:
            seen += os.read(descriptor, 1)
        except BlockingIOError:
            await asyncio.sleep(0.01)
    return seen


def stalls(*texts: str) -> Any:
    """Says these pieces and then nothing more."""

    async def reply(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for text in texts:
            data = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
        await asyncio.sleep(3600)

    return reply


async def test_each_line_of_a_pipe_is_a_turn_that_sees_those_before(
    chat: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("Hello ", "Mira."), server.pieces("You are Mira."))
    run = await chat("I am Mira.\n\nWho am I?\n", "--thread", "t", "-u", "mira")
    assert (run.code, run.out, run.err) == (0, "Hello Mira.\nYou are Mira.\n", "")
    assert [each["content"] for each in server.requests[1].json["messages"]][-3:] == [
        "I am Mira.", "Hello Mira.", "Who am I?",
    ]  # fmt: skip
    assert len(await kept(lamina)) == 4
    server.plays(server.pieces("Still Mira."))
    assert (await chat("And now?\n", "--thread", "t", "-u", "mira")).out == "Still Mira.\n"
    assert "You are Mira." in json.dumps(server.requests[-1].json)


async def test_without_a_thread_each_chat_has_its_own(chat: Any, lamina: Lamina, server: ScriptedServer) -> None:
    server.plays(server.pieces("yes"))
    await chat("one\n")
    await chat("two\n")
    found = (await asyncio.to_thread(lamina, "thread", "list", "--json")).document["threads"]
    assert [(each["id"].startswith("chat_"), each["total"], each["owner"]) for each in found] == [
        (True, 2, "default")
    ] * 2


async def test_commands_are_no_turns(chat: Any, lamina: Lamina, server: ScriptedServer) -> None:
    server.plays(server.pieces("yes"))
    await asyncio.to_thread(lamina, "remember", "The lamp is green")
    run = await chat("/context\n/help\n/nonsense now\nWhich lamp?\n/context\n/quit\nnever said\n", "--thread", "t")
    assert run.code == 0
    for told in ("Nothing was asked yet.", "/quit", "/nonsense is no command"):
        assert told in run.err
    for part in ("yes\n", "tokens (estimate)", "The lamp is green", "Nothing was dropped."):
        assert part in run.out
    assert [text for _, text, _ in await kept(lamina)] == ["Which lamp?", "yes"]


async def test_a_line_may_go_on_and_may_begin_with_a_slash(chat: Any, lamina: Lamina, server: ScriptedServer) -> None:
    server.plays(server.pieces("yes"))
    await chat("one\\\ntwo\n//etc is a folder\nlast\\\n", "--thread", "t")
    assert [text for role, text, _ in await kept(lamina) if role == "user"] == [
        "one\ntwo", "/etc is a folder", "last",
    ]  # fmt: skip


async def test_in_a_pipe_the_first_turn_that_fails_ends_it_and_what_was_said_is_kept(
    chat: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("yes"), server.error(401))
    run = await chat("first\nsecond\nthird\n", "--thread", "t")
    assert (run.code, run.out, run.err.count("\n")) == (1, "yes\n", 1)
    assert run.err.startswith("Error: That was not answered. ProviderError: ")
    wanted = [("user", "first", None), ("assistant", "yes", None), ("user", "second", "ProviderError")]
    assert await kept(lamina) == wanted
    assert (await chat("second\n", "--thread", "t")).code == 1
    assert await kept(lamina) == wanted
    server.plays(server.pieces("at last"))
    assert (await chat("second\n", "--thread", "t")).out == "at last\n"
    assert (await kept(lamina))[3:] == [("user", "second", None), ("assistant", "at last", None)]


async def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came(
    chat: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.cut("Seat ", "four"))
    run = await chat("which?\n", "--thread", "t", "-n", "plans")
    assert (run.code, run.out) == (1, "Seat four\n")
    assert await kept(lamina) == [
        ("user", "which?", "ProviderUnavailable"), ("assistant", "Seat four", "ProviderUnavailable"),
    ]  # fmt: skip
    shown = await asyncio.to_thread(lamina, "thread", "show", "t", "--json", "-n", "plans")
    assert shown.document["namespace"] == "plans"


async def test_a_person_may_go_on_after_a_turn_that_failed(chat: Any, lamina: Lamina, server: ScriptedServer) -> None:
    server.plays(server.error(401), server.pieces("yes"))
    run = await chat("first\nsecond\n", "--thread", "t", terminal=True)
    assert (run.code, "That was not answered. ProviderError" in run.err) == (0, True)
    assert "lamina chat --thread t" in run.err
    assert [text for _, text, _ in await kept(lamina)] == ["first", "second", "yes"]


async def test_a_thread_of_another_owner_or_namespace_or_an_archived_one_is_refused_at_once(
    chat: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("never"))
    await asyncio.to_thread(lamina, "thread", "add", "t", "secret", "-u", "mira", "-n", "home")
    assert "another owner" in (await chat("hello\n", "--thread", "t", "-u", "tomas")).err
    assert "another namespace" in (await chat("hello\n", "--thread", "t", "-u", "mira", "-n", "work")).err
    await asyncio.to_thread(lamina, "thread", "archive", "t")
    assert "archived" in (await chat("hello\n", "--thread", "t", "-u", "mira")).err
    assert server.requests == []


async def test_the_chat_has_no_json_form(chat: Any) -> None:
    run = await chat("hello\n", "--json")
    assert (run.code, "lamina ask --json" in run.err) == (2, True)


async def test_input_that_is_no_utf_8_is_refused_and_turns_before_it_stay(
    chat: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("yes"))
    run = await chat(b"first\n" + b"x" * 10_000 + b"\ncaf\xe9\n", "--thread", "t")  # type: ignore[arg-type]
    assert (run.code, run.err) == (1, "Error: the input is not UTF-8. Convert it first\n")
    assert (await kept(lamina))[0] == ("user", "first", None)


async def test_ctrl_c_stops_an_answer_and_keeps_the_question_and_what_was_said(
    start: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(stalls("So ", "far"))
    process = await start()
    process.stdin.write(b"tell me\nnever asked\n")
    await starts_to_answer(server, process.stdout, b"So far")
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    assert (process.returncode, out) == (130, b"\n")
    assert b"Stopped; what was said is kept." in err
    assert await kept(lamina) == [("user", "tell me", "interrupted"), ("assistant", "So far", "interrupted")]


async def test_ctrl_c_before_the_first_word_keeps_the_question(
    start: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.hangs)
    process = await start()
    process.stdin.write(b"tell me\n")
    async with asyncio.timeout(30):
        while not server.requests:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert await kept(lamina) == [("user", "tell me", "interrupted")]


async def test_ctrl_c_while_it_waits_for_a_line_leaves_what_was_said_before(
    start: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("yes"))
    process = await start()
    process.stdin.write(b"first\n")
    await starts_to_answer(server, process.stdout, b"yes\n")
    async with asyncio.timeout(30):
        while len(await kept(lamina)) < 2:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 130
    assert [text for _, text, _ in await kept(lamina)] == ["first", "yes"]


async def test_a_reader_that_goes_away_is_no_traceback_and_loses_no_turn(
    start: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    server.plays(server.pieces("first answer"), server.pieces("never read"))
    reader, writer = os.pipe()
    process = await start(stdout=writer)
    os.close(writer)
    process.stdin.write(b"first\n")
    async with asyncio.timeout(30):
        await arrived(reader, b"first answer\n")
        os.close(reader)
        process.stdin.write(b"second\n")
        _, err = await process.communicate()
    assert (process.returncode, err) == (141, b"")
    assert [text for role, text, _ in await kept(lamina) if role == "user"] == ["first", "second"]


class Terminal:
    """A terminal with a person at it."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()

    async def shows(self, text: str) -> None:
        """Waits until this has come onto the screen."""
        async with asyncio.timeout(30):
            await arrived(self._master, text.encode())

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def close(self) -> None:
        os.close(self.slave)
        os.close(self._master)


async def at_terminal(start: Any, terminal: Terminal) -> asyncio.subprocess.Process:
    import fcntl
    import termios

    return await start(  # type: ignore[no-any-return]
        stdin=terminal.slave,
        stdout=terminal.slave,
        stderr=terminal.slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )


@NEEDS_TERMINALS
async def test_at_a_terminal_ctrl_c_stops_the_answer_and_the_talk_goes_on(
    start: Any, lamina: Lamina, server: ScriptedServer
) -> None:
    terminal = Terminal()
    server.plays(stalls("So far"), server.pieces("Better."))
    process = await at_terminal(start, terminal)
    await terminal.shows("> ")
    terminal.types("tell me\n")
    await terminal.shows("So far")
    terminal.types("\x03")  # as the key: the terminal makes the signal of it
    await terminal.shows("what was said is kept.")
    await terminal.shows("> ")
    terminal.types("shorter\n")
    await terminal.shows("Better.")
    await terminal.shows("> ")
    terminal.types("/quit\n")
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    await terminal.shows("`lamina chat --thread t` goes on from here.")
    terminal.close()
    assert await kept(lamina) == [
        ("user", "tell me", "interrupted"),
        ("assistant", "So far", "interrupted"),
        ("user", "shorter", None),
        ("assistant", "Better.", None),
    ]


@NEEDS_TERMINALS
@pytest.mark.parametrize(
    ("lines", "code"), [(["one\x03", "two\x03"], 130), (["\x04"], 0), (["half a line\x03", "/quit\n"], 0)]
)
async def test_at_the_prompt_ctrl_c_drops_the_line_and_twice_leaves(
    start: Any, server: ScriptedServer, lines: list[str], code: int
) -> None:
    terminal = Terminal()
    process = await at_terminal(start, terminal)
    for line in lines:
        await terminal.shows("> ")
        typed, key, _ = line.partition("\x03")
        terminal.types(typed)
        if key:
            # What is echoed has been read. The prompt alone does not say so yet, and a signal that comes between the
            # prompt and the reading is noticed only with the next key.
            await terminal.shows(typed)
            await asyncio.sleep(0.2)
            terminal.types(key)
    async with asyncio.timeout(30):
        assert await process.wait() == code
    terminal.close()
    assert server.requests == []


def test_the_loop_loads_only_when_it_is_wanted() -> None:
    script = "import sys, lamina.cli.app; print('lamina.cli.chatting' in sys.modules, 'asyncio' in sys.modules)"
    import subprocess

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
