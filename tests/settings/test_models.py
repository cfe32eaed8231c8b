from datetime import timedelta
from pathlib import Path

import pytest

from lamina.domain.memory import Layer
from lamina.errors import ConfigError
from lamina.ports.hooks import MemoryHooks
from lamina.settings import (
    CompactionConfig,
    EmbeddingConfig,
    LaminaConfig,
    MemoryConfig,
    ModelConfig,
    define_config,
    define_memory_config,
)


def complaint(**settings):
    with pytest.raises(ConfigError) as caught:
        MemoryConfig(**settings)
    return caught.value


def test_a_seed_config_in_camel_case_pastes_over() -> None:
    config = define_config(
        {
            "name": "my-app",
            "model": {"provider": "openai", "model": "gpt-4o", "apiKey": "k", "baseURL": "https://m.example"},
            "memory": {
                "version": 2,
                "provider": "postgres",
                "url": "postgres://db.example/x",
                "embedding": {"model": "text-embedding-3-small", "dimensions": 1536},
                "scoring": {"similarityWeight": 0.5, "recencyHalfLife": 24},
                "compaction": {"enabled": True, "threshold": 50, "keepRecent": 10},
                "defaultNamespace": "notes",
                "workingMemoryTTL": 60,
                "autoRecall": True,
                "autoSave": True,
                "contextMessages": 10,
            },
        }
    )
    memory = config.memory
    assert (memory.default_namespace, memory.working_memory_ttl, memory.context_messages) == ("notes", 60.0, 10)
    assert memory.scoring.similarity_weight == 0.5
    assert memory.scoring.relevance_weight == 0.15
    assert memory.compaction == CompactionConfig(threshold=50, keep_recent=10)
    assert config.model.base_url == "https://m.example"


def test_the_embedding_provider_defaults_to_that_of_the_model() -> None:
    config = define_config(model="openai:gpt-4o", memory={"embedding": {"model": "small"}})
    assert config.memory.embedding.spec() == "openai:small"


def test_without_an_embedding_block_no_provider_is_taken_over_from_the_model() -> None:
    assert define_config(model="openai:gpt-4o").memory.embedding is None


def test_an_embedding_provider_that_is_given_stays() -> None:
    config = define_config(model="openai:gpt-4o", memory=MemoryConfig(embedding="local:tiny"))
    assert config.memory.embedding.spec() == "local:tiny"


def test_a_spec_without_a_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"embedding\.provider: is not given"):
        EmbeddingConfig(model="small").spec()


def test_keywords_win_over_the_mapping() -> None:
    assert (
        define_memory_config({"defaultNamespace": "a", "tenant": "t"}, default_namespace="b").default_namespace == "b"
    )


def test_an_unknown_key_is_refused_by_name_with_the_nearest_known_one() -> None:
    assert str(complaint(defaultNamespac="x")) == "defaultNamespac: is unknown. Did you mean 'default_namespace'?"


def test_an_unknown_key_deep_inside_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError) as caught:
        define_config(memory={"scoring": {"similarity_weigth": 0.4}})
    assert caught.value.field == "memory.scoring.similarity_weigth"
    assert "similarity_weight" in caught.value.remedy


def test_an_unknown_key_like_no_other_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(provider="x", zzz=1)
    assert "api_key, base_url, model, provider" in caught.value.remedy


def test_one_field_in_two_spellings_is_refused() -> None:
    assert "twice" in complaint(default_namespace="a", defaultNamespace="b").problem


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"version": 3}, "version"),
        ({"default_relevance": 1.2}, "default_relevance"),
        ({"default_relevance": float("nan")}, "default_relevance"),
        ({"default_relevance": True}, "default_relevance"),
        ({"context_messages": 0}, "context_messages"),
        ({"context_messages": False}, "context_messages"),
        ({"tenant": "  "}, "tenant"),
        ({"default_owner": "a\0b"}, "default_owner"),
        ({"table": "a; drop"}, "table"),
        ({"working_storage": "disk"}, "working_storage"),
        ({"working_memory_ttl": 0}, "working_memory_ttl"),
        ({"working_memory_ttl": "soon"}, "working_memory_ttl"),
        ({"layer_ttls": {"session": -1}}, "layer_ttls.session"),
        ({"layer_ttls": {"sesion": 1}}, "layer_ttls.sesion"),
        ({"search_mode": "magic"}, "search_mode"),
        ({"hooks": {"on_before_store": 3}}, "hooks.on_before_store"),
        ({"hooks": {"on_store": print}}, "hooks.on_store"),
        ({"hooks": 3}, "hooks"),
        ({"clock": "now"}, "clock"),
        ({"embed": 3}, "embed"),
        ({"embed": print, "embedding": "openai:small"}, "embedding.provider"),
        ({"embedding": {"dimensions": 0}}, "embedding.dimensions"),
        ({"provider": "sqlite", "adapter": "memory"}, "adapter"),
        ({"adapter": object(), "path": "x.db"}, "path"),
        ({"url": "postgres://x", "path": "x.db"}, "path"),
        ({"url": "https://x.example"}, "provider"),
    ],
)
def test_a_wrong_value_is_a_config_error_that_names_its_field(settings, field) -> None:
    assert complaint(**settings).field == field


def test_validating_a_mapping_complains_in_the_same_way() -> None:
    with pytest.raises(ConfigError):
        LaminaConfig.model_validate({"memory": {"version": 9}})


def test_a_complaint_never_shows_the_secret() -> None:
    with pytest.raises(ConfigError) as caught:
        EmbeddingConfig(api_key=["sk-very-secret"])
    assert "sk-very-secret" not in str(caught.value)
    assert "sk-very-secret" not in str(caught.value.__cause__)


def test_several_wrong_values_are_counted() -> None:
    assert "1 more" in complaint(version=3, context_messages=0).remedy


def test_the_same_name_as_provider_and_adapter_is_no_contradiction() -> None:
    assert MemoryConfig(provider="sqlite", adapter="sqlite").adapter_name() == "sqlite"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, None),
        ({"path": "x.db"}, "sqlite"),
        ({"adapter": "memory"}, "memory"),
        ({"provider": "qdrant", "url": "https://x"}, "qdrant"),
        ({"url": "postgresql://x"}, "postgres"),
        ({"url": "rediss://x"}, "redis"),
        ({"adapter": object()}, None),
    ],
)
def test_the_backend_is_what_is_named_else_what_the_place_tells(settings, name) -> None:
    assert MemoryConfig(**settings).adapter_name() == name


def test_a_layer_lives_as_long_as_configured_else_as_its_default() -> None:
    config = MemoryConfig(layer_ttls={"working": 5, "session": "never", "longterm": timedelta(days=1)})
    assert config.layer_ttl(Layer.WORKING) == timedelta(seconds=5)
    assert config.layer_ttl(Layer.SESSION) is None
    assert config.layer_ttl(Layer.LONGTERM) == timedelta(days=1)
    assert config.layer_ttl(Layer.GLOBAL) is None
    assert MemoryConfig().layer_ttl(Layer.SESSION) == timedelta(hours=1)


def test_hooks_are_taken_as_the_port_s_object_or_as_a_mapping() -> None:
    hooks = MemoryHooks(on_forget=print)
    assert MemoryConfig(hooks=hooks).hooks is hooks
    assert MemoryConfig(hooks={"onForget": print}).hooks.on_forget is print


def test_a_path_may_be_text() -> None:
    assert MemoryConfig(path="x.db").path == Path("x.db")
