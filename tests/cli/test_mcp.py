from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import httpx2
import pytest

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
SOURCES = {"PYTHONPATH": str(Path(os.environ["PYTHONPATH"]).absolute())} if "PYTHONPATH" in os.environ else {}
"""Where a checkout is tested as it is, and not as it was installed."""

HEADERS = {"Accept": "application/json, text/event-stream"}


def settings(environment, name):
    return Path(environment["HOME"]) / name


def test_install_writes_what_print_shows_with_the_scope_that_was_said(lamina, environment, tmp_path):
    options = ("--owner", "-mira", "-n", "work", "--db", "memory.db", "--profile", "chatgpt", "--read-only")
    shown = lamina("mcp", "install", "--client", "cursor", *options, "--print").document
    assert not settings(environment, ".cursor/mcp.json").exists()
    done = lamina("mcp", "install", "--client", "cursor", *options)
    assert (done.code, done.err) == (0, "")
    assert json.loads(settings(environment, ".cursor/mcp.json").read_text()) == shown
    entry = shown["mcpServers"]["lamina"]
    assert Path(entry["command"]).name.startswith("lamina")
    assert entry["args"] == [
        "mcp",
        "--owner=-mira",
        "--namespace=work",
        f"--db={tmp_path / 'work' / 'memory.db'}",
        "--profile=chatgpt",
        "--read-only",
    ]
    assert "nothing was changed" in lamina("mcp", "install", "--client", "cursor", *options).out


def test_settings_of_a_project_name_no_path_of_this_machine(lamina, folder):
    run = lamina("mcp", "install", "--client", "vscode", "--project", "--json")
    assert run.document == {
        "client": "vscode",
        "file": str(folder / ".vscode" / "mcp.json"),
        "changed": True,
        "dry_run": False,
        "backup": None,
    }
    entry = json.loads((folder / ".vscode/mcp.json").read_text())["servers"]["lamina"]
    assert entry == {"type": "stdio", "command": "lamina", "args": ["mcp"]}
    assert "is changed" in lamina("mcp", "uninstall", "--client", "vscode", "--project").out
    assert json.loads((folder / ".vscode/mcp.json").read_text()) == {"servers": {}}


def test_uvx_and_another_name(lamina):
    shown = lamina("mcp", "install", "--client", "codex", "--uvx", "--name", "notes", "--print").out
    assert shown == '[mcp_servers.notes]\ncommand = "uvx"\nargs = ["--from", "lamina[mcp]", "lamina", "mcp"]\n'


def test_a_dry_run_only_tells(lamina, environment):
    assert "would be changed" in lamina("mcp", "install", "--client", "claude-code", "--dry-run").out
    assert not settings(environment, ".claude.json").exists()


def test_a_file_with_comments_is_refused_in_one_line(lamina, environment):
    file = settings(environment, ".claude.json")
    file.parent.mkdir(parents=True)
    file.write_text('{"a": 1} // mine')
    run = lamina("mcp", "install", "--client", "claude-code")
    assert run.code == 2
    assert re.fullmatch(r"Error: settings: the file is not plain JSON \(line 1\)\. Nothing was changed\. .*\n", run.err)
    assert file.read_text() == '{"a": 1} // mine'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("mcp", "install"), "--client"),
        (("mcp", "install", "--client", "emacs"), "'emacs' is not one of"),
        (("mcp", "install", "--client", "cursor", "--name", "a.b"), "--name"),
        (("mcp", "install", "--client", "cursor", "--profile", "x"), "--profile"),
        (("mcp", "install", "--client", "claude-desktop", "--project"), "no settings of projects"),
        (("mcp", "--owner", "mira", "install", "--client", "cursor"), "--owner: belongs behind `install`"),
        (("mcp", "--json"), "--json"),
        (("mcp", "--profile", "x"), "--profile"),
        (("mcp", "--token-env", "X"), "needs --http"),
        (("mcp", "--http", "8766"), "is no HOST:PORT"),
        (("mcp", "--http", "127.0.0.1:99999"), "is no HOST:PORT"),
        (("mcp", "--http", "0.0.0.0:8766"), "is not of this machine alone"),
        (("mcp", "--http", "example.org:8766"), "is not of this machine alone"),
    ],
)
def test_what_cannot_be_is_refused(lamina, arguments, told):
    run = lamina(*arguments)
    assert (run.code, run.out) == (2, "")
    assert told in run.err.replace("Invalid value for --owner", "--owner")


def test_a_token_that_is_not_there_is_refused(lamina):
    for env in ({}, {"TOKEN": " "}, {"TOKEN": "é"}):
        run = lamina("mcp", "--http", "127.0.0.1:0", "--token-env", "TOKEN", env=env)
        assert run.code == 1
        assert "the variable TOKEN holds no token" in run.err


def test_stdin_at_its_end_is_served_without_a_word(process):
    run = process("mcp", "--owner", "mira", env=SOURCES)
    assert (run.code, run.out, run.err) == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send")
def test_http_asks_for_the_token_of_the_environment_and_ends_when_told(executable, environment, folder):
    process = subprocess.Popen(
        [executable, "mcp", "--http", "127.0.0.1:0", "--token-env", "TOKEN", "--owner", "mira"],
        env={**environment, **SOURCES, "TOKEN": "right"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = process.stderr.readline().split()[-1]
        with httpx2.Client() as http:
            assert http.post(url, json=LIST, headers=HEADERS).status_code == 401
            answer = http.post(url, json=LIST, headers={**HEADERS, "Authorization": "Bearer right"})
            assert len(answer.json()["result"]["tools"]) == 7
            assert http.get(url.replace("/mcp", "/")).status_code == 404
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (out, err) == ("", "")
