"""onnxruntime has telemetry, on by default since 1.32; it begins with a file `.ses` that holds a device's id."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

EMBED = """
import asyncio
from lamina.registry import load_embedder
vector = asyncio.run(load_embedder("builtin").embed_query("hello"))
print(len(vector))
"""
MAKES_NOTHING = """
import lamina.providers, os
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""


def run(code, folder, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    homes = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), str(folder))
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=folder,
        env={**inherited, **homes, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_embedding_leaves_no_trace_of_telemetry(tmp_path):
    assert run(EMBED, tmp_path) == "896"
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(("given", "kept"), [({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")])
def test_telemetry_is_off_unless_somebody_asked_for_it(given, kept, tmp_path):
    assert run(MAKES_NOTHING, tmp_path, **given) == kept
