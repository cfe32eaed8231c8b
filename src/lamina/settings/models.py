"""What can be configured, and what each value may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from lamina.domain.memory import DEFAULT_LAYER_TTL, DEFAULT_NAME, Layer
from lamina.domain.recall import SearchMode
from lamina.domain.secrets import SecretsPolicy
from lamina.domain.text import check_name
from lamina.domain.validation import check_ttl
from lamina.errors import ConfigError, InvalidInput, InvalidType
from lamina.settings.conversation import CompactionConfig
from lamina.settings.reranking import reranker_setting
from lamina.settings.scoring import ScoringConfig
from lamina.settings.shorthand import preset_table, provider_table
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = [
    "EmbeddingConfig",
    "HooksConfig",
    "MemoryConfig",
    "ModelConfig",
    "define_memory_config",
]

_TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_NEVER: Final = "never"


def _name(value: str) -> str:
    try:
        return check_name("value", value)
    except InvalidInput as error:
        raise ConfigError("", error.problem, error.remedy) from error


def _lifetime(value: Any) -> float | None:
    """Seconds, a timedelta, or None or `never` (TOML and the environment have no null)."""
    if isinstance(value, str):
        if value.lower() == _NEVER:
            return None
        try:
            value = float(value)
        except ValueError:
            raise ConfigError("", f"must be seconds, not {value!r}", "Give a number, or `never`.") from None
    try:
        return check_ttl(value)
    except (InvalidInput, InvalidType) as error:
        raise ConfigError("", error.problem, error.remedy) from error


def _callable(value: Any) -> Any:
    if value is not None and not callable(value):
        raise ConfigError("", f"must be a callable, not {type(value).__name__}", "Give a function.")
    return value


def _language_model(value: Any) -> Any:
    """A model, a callable, or a name; a text from the environment is a name."""
    if value is None or callable(value) or hasattr(value, "complete"):
        return value
    if not isinstance(value, str) or not value.strip():
        problem = f"must be a model, a callable or a name, not {type(value).__name__}"
        raise ConfigError("", problem, "Name one, as in openai:gpt-4o.")
    return value


def _version(value: Any) -> Any:
    """The environment holds only text; and True, though equal to 1, is no version."""
    if isinstance(value, bool | float):
        raise ConfigError("", f"must be 1 or 2, not {value!r}", "Correct the value.")
    return int(value) if isinstance(value, str) and value in {"1", "2"} else value


def _path(value: Path) -> Path:
    if "\0" in str(value):
        raise ConfigError("", "holds a NUL, which no file name can", "Remove it.")
    return value


Name = Annotated[str, AfterValidator(_name)]
FilePath = Annotated[Path, AfterValidator(_path)]
Lifetime = Annotated[Any, BeforeValidator(_lifetime)]
AnyCallable = Annotated[Any, AfterValidator(_callable)]


class EmbeddingConfig(StrictModel):
    """Which model makes the vectors. The text `provider:model` stands for those two.

    The provider `none` means that nothing is embedded: recall then searches by words alone.
    `base_url` and `api_key` are for providers reached over the network; none is ever chosen because
    a key lies about.
    """

    provider: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1)
    dimensions: Annotated[WholeNumber, Field(ge=1)] | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None

    def spec(self) -> str:
        """`provider` or `provider:model`, as `lamina.registry.load_embedder` takes it.

        Raises:
            ConfigError: no provider is named, neither here nor (see `LaminaConfig`) for the model.
        """
        if self.provider is None:
            raise ConfigError("embedding.provider", "is not given", "Name one, such as `openai`.")
        return self.provider if self.model is None else f"{self.provider}:{self.model}"


class ModelConfig(StrictModel):
    """Which language model answers. The text `provider:model` stands for those two."""

    provider: str = Field(min_length=1)
    model: str | None = Field(default=None, min_length=1)
    base_url: str | None = None
    api_key: SecretStr | None = None

    def spec(self) -> str:
        """`provider` or `provider:model`, as `lamina.registry.load_language_model` takes it."""
        return self.provider if self.model is None else f"{self.provider}:{self.model}"


class HooksConfig(StrictModel):
    """The three callbacks, if they are given as a mapping; has the attributes of `lamina.ports.hooks.MemoryHooks`."""

    on_before_store: AnyCallable = None
    on_after_recall: AnyCallable = None
    on_forget: AnyCallable = None


def _hooks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return HooksConfig(**value)
    if value is not None and not all(hasattr(value, name) for name in HooksConfig.model_fields):
        raise ConfigError("", f"{type(value).__name__} has not the three hooks", "Use MemoryHooks or a dict.")
    return value


class MemoryConfig(StrictModel):
    """Where memories are kept, what makes their vectors, and how they are stored and found.

    Where: `provider` or `adapter` names a backend (`adapter` may also be an adapter instance), `path` is
    a file, `url` an address; see `adapter_name`. `options` is what else that backend's adapter takes, such as
    `{"api_key": ..., "index_name": ...}`: its page has them. `default_relevance` is 0.5, so that a memory said to
    be important outranks one about which nothing was said; a kernel's is 1 unless it is set.
    `working_storage` is `memory` (entries of the working layer die with the process) or `adapter`.
    `working_memory_ttl` and `layer_ttls` are in seconds (or timedeltas); None or `never` is no end. Under
    `strict_namespace` a recall that names no namespace stays in the default one; under `strict_owner` shared
    layers are bound to their owner too. `min_match` is that of recalls that name none: see `MemoryEngine.recall`.
    `rerank` is what reads the best candidates of a recall again, together with the query: a name such as
    `cross-encoder`, a `Reranker`, or a callable of a query and a list of texts, sync or async, that returns one number
    from 0 to 1 per text.
    `secrets` is what is done about keys, passwords and card numbers in what is to be stored: `off`, `flag`, `mask` or
    `refuse`; a kernel's other blocks follow it unless they say otherwise.
    `embed` and `embed_batch` are callables, sync or async, and take the place of `embedding`.
    `version` 1 scores by similarity and relevance only. `v1_path` is an SQLite file that version 1 wrote, which
    recalls fall back on until `migrate_v1` has copied it.

    What follows is for a `Kernel`; an engine alone does nothing with it. `auto_recall` puts memories into every
    context, `auto_save` stores what users say about themselves. `compaction` and, where it is set,
    `context_messages` say how much of a thread is shown. `llm` (a model, a callable, or a name as in
    `openai:gpt-4o`) writes summaries and finds facts. `debug` logs every event.
    """

    version: Annotated[Literal[1, 2], BeforeValidator(_version)] = 2
    provider: str | None = Field(default=None, min_length=1)
    adapter: Any = None
    url: str | None = Field(default=None, min_length=1, repr=False)  # it may hold a password
    path: FilePath | None = None
    options: dict[str, Any] = Field(default_factory=dict, repr=False)  # they may hold a key
    table: str = "lamina_memories"
    v1_path: FilePath | None = None
    tenant: Name = DEFAULT_NAME
    default_owner: Name = DEFAULT_NAME
    default_namespace: Name = DEFAULT_NAME
    default_relevance: Annotated[Number, Field(ge=0, le=1)] = 0.5
    strict_namespace: bool = False
    strict_owner: bool = False
    working_storage: Literal["memory", "adapter"] = "memory"
    working_memory_ttl: Lifetime = 3600.0
    layer_ttls: dict[Layer, Lifetime] = Field(default_factory=dict)
    search_mode: SearchMode = SearchMode.HYBRID
    rerank: Annotated[Any, AfterValidator(reranker_setting)] = None
    min_match: Annotated[Number, Field(ge=0, le=1)] | Literal["auto"] | None = None
    scoring: Annotated[ScoringConfig, BeforeValidator(preset_table)] = ScoringConfig()
    embedding: Annotated[EmbeddingConfig, BeforeValidator(provider_table)] | None = None
    compaction: CompactionConfig | None = None
    auto_recall: bool = True
    auto_save: bool = False
    context_messages: Annotated[WholeNumber, Field(ge=1)] = 20
    secrets: SecretsPolicy = SecretsPolicy.OFF
    hooks: Annotated[Any, AfterValidator(_hooks)] = None
    clock: AnyCallable = None
    embed: Any = None
    embed_batch: AnyCallable = None
    llm: Annotated[Any, AfterValidator(_language_model)] = None
    debug: bool = False

    def adapter_name(self) -> str | None:
        """The backend's name: the one given, else `sqlite` if there is a path, else what the url's scheme names.

        None if an adapter instance was given, or if nothing says where memories are kept.
        """
        if self.adapter is not None and not isinstance(self.adapter, str):
            return None
        if self.provider or self.adapter:
            return self.provider or self.adapter
        if self.path is not None:
            return "sqlite"
        return _URL_SCHEMES.get(self.url.partition("://")[0].lower()) if self.url else None

    def layer_ttl(self, layer: Layer) -> timedelta | None:
        """How long a memory of this layer lives unless its store call says otherwise; None is for ever."""
        if layer not in self.layer_ttls:
            return DEFAULT_LAYER_TTL[layer]
        seconds = self.layer_ttls[layer]
        return None if seconds is None else timedelta(seconds=seconds)

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if _TABLE.fullmatch(self.table) is None:
            remedy = "Use up to 63 letters, digits and underscores, and no digit first."
            raise ConfigError("table", f"{self.table!r} is no table name", remedy)
        if isinstance(self.adapter, str) and self.provider and self.adapter != self.provider:
            problem = f"{self.adapter!r} contradicts the provider {self.provider!r}"
            raise ConfigError("adapter", problem, "Give one of them, or the same name twice.")
        if self.adapter is not None and not isinstance(self.adapter, str):
            for other in ("provider", "url", "path", "options"):
                if getattr(self, other):
                    problem = "is given beside an adapter that is made already"
                    raise ConfigError(other, problem, "Give either the adapter or what it is to be made from.")
        if self.url is not None and self.path is not None:
            raise ConfigError("path", "is given beside a url", "Say in one of them where memories are kept.")
        if self.url is not None and self.adapter_name() is None:
            raise ConfigError("provider", "is not given, and the url's scheme names none", "Name the backend.")
        return self

    @model_validator(mode="after")
    def _check_embedder(self) -> Self:
        if self.embed is not None and not callable(self.embed) and not hasattr(self.embed, "embed_documents"):
            raise ConfigError(
                "embed", f"must be a callable or an embedder, not {type(self.embed).__name__}", "Mend it."
            )
        if self.embedding is not None and self.embedding.provider is not None and (self.embed or self.embed_batch):
            problem = "is given beside a callable that embeds"
            raise ConfigError("embedding.provider", problem, "Give either of them.")
        return self


_URL_SCHEMES: Final = {
    "postgres": "postgres",
    "postgresql": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "mongodb": "mongodb",
    "mongodb+srv": "mongodb",
    "libsql": "turso",
}


def define_memory_config(config: Mapping[str, Any] | None = None, /, **settings: Any) -> MemoryConfig:
    """The memory block alone; otherwise as `lamina.settings.define_config`."""
    return MemoryConfig(**{**MemoryConfig.field_names(config or {}), **MemoryConfig.field_names(settings)})
