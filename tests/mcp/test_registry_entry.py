"""`server.json`, by which the MCP registry knows this server, is in step with what it describes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.main import get_command

from lamina import __version__
from lamina.cli.app import app
from lamina.mcp import PROFILES

ROOT = Path(__file__).parents[2]
ENTRY = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
(PACKAGE,) = ENTRY["packages"]


def test_the_versions_are_that_of_the_package():
    assert (ENTRY["version"], PACKAGE["version"]) == (__version__, __version__)
    assert PACKAGE["runtimeArguments"][0]["value"] == f"lamina[mcp]=={__version__}"


def test_the_readme_proves_whose_the_name_is():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [ENTRY["name"]]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", ENTRY["name"])


def test_the_registry_takes_its_keys_and_sizes():
    assert ENTRY["$schema"].endswith("/2025-12-11/server.schema.json")
    assert 1 <= len(ENTRY["description"]) <= 100
    assert (PACKAGE["registryType"], PACKAGE["runtimeHint"], PACKAGE["transport"]) == ("pypi", "uvx", {"type": "stdio"})
    keys = re.findall(r'"(\w+)":', json.dumps(ENTRY))
    assert [key for key in keys if "_" in key] == []


def test_the_arguments_are_those_of_the_command():
    command = get_command(app).commands["mcp"]
    options = {name for parameter in command.params for name in parameter.opts}
    positional, *named = PACKAGE["packageArguments"]
    assert positional == {"type": "positional", "value": "mcp"}
    assert {each["name"] for each in named} <= options
    assert next(each for each in named if each["name"] == "--profile")["choices"] == list(PROFILES)
