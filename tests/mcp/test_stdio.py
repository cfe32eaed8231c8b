"""The server as clients start it: a process of its own, spoken to over its standard streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

COMMAND = [sys.executable, "-c", "from lamina.cli import main; main()", "mcp"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def environment(tmp_path):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    if "PYTHONPATH" in os.environ:
        kept["PYTHONPATH"] = str(Path(os.environ["PYTHONPATH"]).absolute())
    home = str(tmp_path / "home")
    return kept | {
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "XDG_DATA_HOME": home,
        "LAMINA_DATA_DIR": str(tmp_path / "data"),
        "LAMINA_EMBEDDER": "none",
    }


@pytest.fixture
def started(environment, tmp_path):
    processes = []

    def start(*options, **pipes):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
        process = subprocess.Popen([*COMMAND, *options], env=environment, cwd=tmp_path, **pipes)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def connected(environment, tmp_path):
    @asynccontextmanager
    async def connect(*options):
        parameters = StdioServerParameters(
            command=COMMAND[0], args=[*COMMAND[1:], *options], env=environment, cwd=tmp_path
        )
        async with Client(stdio_client(parameters)) as client:
            yield client

    return connect


def say(process, *messages):
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def hear(process):
    return json.loads(process.stdout.readline())


def remember(number, text):
    call = {"name": "add_memory", "arguments": {"text": text}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}


async def test_a_client_remembers_in_one_process_and_recalls_in_the_next(connected):
    async with connected("--owner", "ann") as client:
        added = await client.call_tool("add_memory", {"text": "Ann drinks té 👩‍👩‍👧‍👦"})
        assert not added.is_error
    async with connected("--owner", "ann", "--read-only") as client:
        found = (await client.call_tool("search_memories", {"query": "Ann drinks"})).structured_content
        assert [hit["memory"]["text"] for hit in found["results"]] == ["Ann drinks té 👩‍👩‍👧‍👦"]
        assert "add_memory" not in {tool.name for tool in (await client.list_tools()).tools}
    async with connected("--owner", "bob", "--profile", "chatgpt") as client:
        assert (await client.call_tool("search", {"query": "Ann drinks"})).structured_content == {"results": []}


def test_the_output_holds_the_protocol_alone_and_the_end_of_the_input_ends_it(started):
    process = started("--owner", "ann")
    say(process, HELLO)
    assert hear(process)["result"]["serverInfo"]["name"] == "lamina"
    say(process, READY, remember(2, "Ann drinks tea"))
    assert hear(process)["result"]["structuredContent"]["stored"] is True
    rest, complaints = process.communicate(timeout=30)
    assert (process.returncode, rest, complaints) == (0, b"", b"")


def test_a_line_that_is_no_message_does_not_end_it(started):
    process = started()
    process.stdin.write(b"nonsense\n\xff\xfe\n{}\n\n[]\n")
    say(process, HELLO)
    answers = [hear(process)]
    while "result" not in answers[-1]:
        answers.append(hear(process))
    assert answers[-1]["id"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_what_was_acknowledged_is_kept(started, number):
    process = started("--owner", "ann")
    say(process, HELLO)
    hear(process)
    say(process, READY, remember(2, "Ann drinks tea"))
    assert hear(process)["result"]["structuredContent"]["stored"] is True
    process.send_signal(number)
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == b""
    again = started("--owner", "ann", "--read-only")
    say(again, HELLO)
    hear(again)
    say(again, READY, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_memories"}})
    (memory,) = hear(again)["result"]["structuredContent"]["memories"]
    assert memory["text"] == "Ann drinks tea"


def test_a_reader_that_is_gone_ends_it_without_a_screenful(started):
    process = started()
    say(process, HELLO)
    hear(process)
    process.stdout.close()
    say(process, READY, *({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(2, 30)))
    assert process.wait(timeout=30) == 0
    assert b"Traceback" not in process.stderr.read()
    process.stdout = None


def test_an_input_that_ends_while_a_call_runs_ends_it_as_well(started, tmp_path):
    script = tmp_path / "script"
    messages = [HELLO, READY, *(remember(number, f"Fact number {number}") for number in range(2, 9))]
    script.write_text("\n".join(map(json.dumps, messages)), encoding="utf-8")
    with script.open("rb") as lines:
        process = started(stdin=lines)
        out, err = process.communicate(timeout=30)
    assert [json.loads(line)["jsonrpc"] for line in out.splitlines()][:1] == ["2.0"]
    assert (process.returncode, err) == (0, b"")
