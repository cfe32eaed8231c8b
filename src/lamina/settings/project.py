"""The settings of a whole project: what a kernel is made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lamina.domain.recall import AUTO
from lamina.errors import ConfigError
from lamina.settings.agents import AgentsConfig
from lamina.settings.context import ContextConfig
from lamina.settings.conversation import ConversationConfig
from lamina.settings.models import FilePath, MemoryConfig, ModelConfig, Name
from lamina.settings.packs import PacksConfig
from lamina.settings.rag import RagConfig
from lamina.settings.server import ServerConfig
from lamina.settings.shorthand import provider_table
from lamina.settings.strict_model import StrictModel

__all__ = ["DATABASE", "DEFAULT_DATA_DIR", "LaminaConfig", "define_config"]

DATABASE: Final = "lamina.db"
"""What the file is called in a data folder."""
DEFAULT_DATA_DIR: Final = Path("lamina-data")
"""Where a kernel that keeps its data puts them, if nothing else is said."""

STATE_SCHEMES: Final = frozenset({"postgres", "postgresql", "sqlite"})


class LaminaConfig(StrictModel):
    """A whole project. `embedding.provider` defaults to the model's provider, as soon as `embedding` is given.

    `data_dir` holds the database file `lamina.db`, unless `memory` says another place. `state_url` says where threads,
    the heads of documents and packs are kept: a PostgreSQL url, `sqlite:///` and a path, or `:memory:`; by default with
    the memories, if those are in SQLite or PostgreSQL. `ephemeral` keeps everything in this process's memory: by
    default that is so where neither a place is named nor the `environment` is `production`. `test` is another
    word for `development`. Where `memory` and `conversation` or `context` say the same thing (`compaction`,
    `context_messages`, `auto_recall`), the more special block holds, and `auto_recall` only if both say so.
    """

    name: Name = "lamina"
    model: Annotated[ModelConfig, BeforeValidator(provider_table)] | None = None
    memory: MemoryConfig = MemoryConfig()
    context: ContextConfig = ContextConfig()
    conversation: ConversationConfig = ConversationConfig()
    rag: RagConfig = RagConfig()
    packs: PacksConfig = PacksConfig()
    agents: AgentsConfig = AgentsConfig()
    server: ServerConfig = ServerConfig()
    data_dir: FilePath | None = None
    state_url: str | None = Field(default=None, repr=False)  # it may hold a password
    environment: Literal["development", "production", "test"] = "development"
    ephemeral: bool | None = None

    @property
    def is_ephemeral(self) -> bool:
        """Whether everything is gone with the process."""
        if self.ephemeral is not None:
            return self.ephemeral
        return self.environment != "production" and not self._named_places() and self.data_dir is None

    def _named_places(self) -> list[str]:
        """The settings that name a place where something is to be kept."""
        memory = self.memory
        named = [
            f"memory.{name}" for name in ("path", "url", "adapter", "provider") if getattr(memory, name) is not None
        ]
        if memory.adapter_name() == "memory":
            named = []
        return named + (["state_url"] if self.state_url is not None and self.state_url != ":memory:" else [])

    @model_validator(mode="after")
    def _check_state_url(self) -> Self:
        url = self.state_url
        scheme, _, rest = (url or "").partition("://")
        if url is not None and url != ":memory:" and (scheme.lower() not in STATE_SCHEMES or not rest):
            remedy = "Give postgresql://…, sqlite:/// and a path, or :memory:."
            raise ConfigError("state_url", "names no state store", remedy)
        return self

    @model_validator(mode="after")
    def _check_ephemeral(self) -> Self:
        if self.ephemeral and self._named_places():
            problem = f"contradicts {self._named_places()[0]}, which names a place to keep things"
            raise ConfigError("ephemeral", problem, "Leave out one of the two.")
        return self

    @model_validator(mode="after")
    def _embed_with_the_models_provider(self) -> Self:
        embedding = self.memory.embedding
        if self.model is not None and embedding is not None and embedding.provider is None:
            filled = embedding.model_copy(update={"provider": self.model.provider})
            # The model is frozen for its users; this is still part of making it.
            self.__dict__["memory"] = self.memory.model_copy(update={"embedding": filled})
        return self

    def effective_conversation(self, *, token_budget: int | None = None) -> ConversationConfig:
        """The conversation block, completed by what the memory block says about threads.

        With `token_budget`, threads under the token tiers keep to half of it unless their block says a size.
        """
        memory, own = self.memory, self.conversation
        updates: dict[str, Any] = {}
        if own.compaction is None and memory.compaction is not None:
            updates["compaction"] = memory.compaction
        if own.context_messages is None and "context_messages" in memory.model_fields_set:
            updates["context_messages"] = memory.context_messages
        tiers = own.context_engineering
        if tiers is not None and token_budget is not None and "pre_rot_threshold" not in tiers.model_fields_set:
            size = max(1, min(tiers.pre_rot_threshold, token_budget // 2))
            updates["context_engineering"] = tiers.model_copy(update={"pre_rot_threshold": size})
        return own.model_copy(update=updates)

    def effective_context(self, *, context_window: int | None = None) -> ContextConfig:
        """The context block, completed by what other blocks say, and by the size of the model's window."""
        own, said = self.context, self.context.model_fields_set
        updates: dict[str, Any] = {"auto_recall": own.auto_recall and self.memory.auto_recall}
        if "token_budget" not in said and context_window is not None:
            updates["token_budget"] = max(1, context_window // 2)
        if "document_limit" not in said:
            updates["document_limit"] = self.rag.top_k
        if "document_min_score" not in said:
            updates["document_min_score"] = AUTO if self.rag.min_score is None else self.rag.min_score
        if own.context_messages is None:
            updates["context_messages"] = self.effective_conversation().shown
        if "pack_min_score" not in said:
            updates["pack_min_score"] = AUTO
        return own.model_copy(update=updates)


def define_config(config: Mapping[str, Any] | None = None, /, **settings: Any) -> LaminaConfig:
    """A project's settings from keywords, a mapping, or both (keywords win); camelCase keys are taken.

    Raises:
        ConfigError: a key is unknown, or a value is wrong or contradicts another.
    """
    return LaminaConfig(**{**LaminaConfig.field_names(config or {}), **LaminaConfig.field_names(settings)})
