from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lamina.errors import ConfigError, MissingExtra
from lamina.providers import local_models
from lamina.providers.callables import CallableEmbedder


class Fake:
    """Stands for a library whose models this machine does not have; encodes by length."""

    made: tuple[Any, ...]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        type(self).made = (arguments, options)

    def encode(self, texts: list[str]) -> Any:
        return np.array([[float(len(text)), 1.0] for text in texts])

    def encode_query(self, texts: list[str]) -> Any:
        return np.array([[float(len(text)), 2.0] for text in texts])

    def passage_embed(self, texts: list[str]) -> Any:
        yield from self.encode(texts)

    def query_embed(self, texts: list[str]) -> Any:
        yield from self.encode_query(texts)


@pytest.mark.parametrize(
    ("module", "attributes", "make", "query"),
    [
        (
            "sentence_transformers",
            {"SentenceTransformer": Fake},
            local_models.sentence_transformers_embedder,
            [2.0, 2.0],
        ),
        ("fastembed", {"TextEmbedding": Fake}, local_models.fastembed_embedder, [2.0, 2.0]),
        (
            "model2vec",
            {"StaticModel": SimpleNamespace(from_pretrained=Fake)},
            local_models.model2vec_embedder,
            [2.0, 1.0],
        ),
    ],
    ids=["sentence_transformers", "fastembed", "model2vec"],
)
async def test_a_loader_asks_its_mocked_library_for_the_model_once_and_for_documents_and_queries(
    monkeypatch: pytest.MonkeyPatch, module: str, attributes: dict[str, Any], make: Any, query: list[float]
) -> None:
    fake = ModuleType(module)
    fake.__spec__ = importlib.util.spec_from_loader(module, loader=None)
    vars(fake).update(attributes)
    monkeypatch.setitem(sys.modules, module, fake)
    embedder: CallableEmbedder = make("some/model")
    assert [list(v) for v in await embedder.embed_documents(["a", "ccc"])] == [[1.0, 1.0], [3.0, 1.0]]
    assert list(await embedder.embed_query("bb")) == query
    arguments, options = Fake.made
    assert arguments == ("some/model",)
    assert not options.get("trust_remote_code")
    assert embedder.model == "some/model"


@pytest.mark.parametrize("name", ["sentence_transformers", "fastembed", "model2vec"])
def test_without_the_library_the_error_names_the_extra_and_without_a_name_the_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = getattr(local_models, f"{name}_embedder")
    extra = name.replace("_", "-")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"lamina\[{extra}\]"):
        make("some/model")
    with pytest.raises(ConfigError, match="model"):
        make(None)
