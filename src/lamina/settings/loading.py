"""Settings from all sources, by precedence, and for each value where it came from.

Flags come first, then the environment, the project file, the user file, and the defaults. Values that
describe one thing together are not mixed from two sources: see `lamina.settings.merging`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from lamina.errors import ConfigError
from lamina.settings.agents import AgentsConfig
from lamina.settings.consent import check_project_addresses, trusts_project
from lamina.settings.context import ContextConfig
from lamina.settings.conversation import CompactionConfig, ConversationConfig, SummaryConfig
from lamina.settings.merging import PLACE, merge
from lamina.settings.models import EmbeddingConfig, MemoryConfig, ModelConfig
from lamina.settings.project import DATABASE, LaminaConfig
from lamina.settings.rag import RagConfig
from lamina.settings.scoring import ScoringConfig
from lamina.settings.server import JwtConfig, RateLimit, ServerConfig
from lamina.settings.shorthand import SHORTHAND
from lamina.settings.sources import Source, environment_source, file_source, find_project_file, place_of
from lamina.settings.tiers import ContextThresholds

__all__ = ["DATABASE", "LoadedConfig", "load_config", "user_config_file"]

DEFAULT_ORIGIN: Final = "the default"
COMMAND_LINE: Final = "the command line"


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Settings, the files that were read, and the origin of every value that is not a default."""

    config: LaminaConfig
    origins: Mapping[str, str]
    files: tuple[Path, ...]
    project_file: Path | None
    user_file: Path

    def origin(self, path: str) -> str:
        """Where the value of this dotted path comes from, in words."""
        while path:
            if path in self.origins:
                return self.origins[path]
            path = path.rpartition(".")[0]
        return DEFAULT_ORIGIN

    def is_set(self, path: str) -> bool:
        """Whether anything but the default says the value of this dotted path."""
        return self.origin(path) != DEFAULT_ORIGIN

    def data_dir(self) -> Path:
        """The configured folder, else the platform's folder for the user's data."""
        from platformdirs import user_data_path

        return self.config.data_dir or user_data_path("lamina", appauthor=False)

    def memory(self) -> MemoryConfig:
        """The memory block; if nothing says where memories are kept, then in `lamina.db` in the data folder."""
        memory = self.config.memory
        if any(getattr(memory, name) is not None for name in PLACE):
            if memory.adapter_name() == "sqlite" and memory.path is None and memory.url is None:
                return memory.model_copy(update={"path": self.data_dir() / DATABASE})
            return memory
        return memory.model_copy(update={"provider": "sqlite", "path": self.data_dir() / DATABASE})


def user_config_file() -> Path:
    """The user's own file, which need not exist."""
    from platformdirs import user_config_path

    return user_config_path("lamina", appauthor=False) / "config.toml"


def load_config(
    flags: Mapping[str, Any] | None = None,
    *,
    db: str | None = None,
    flags_from: str = COMMAND_LINE,
    environ: Mapping[str, str] | None = None,
    start: Path | None = None,
    user_file: Path | None = None,
) -> LoadedConfig:
    """The settings in force.

    Args:
        flags: explicit settings, nested as in `LaminaConfig`; they win over everything.
        db: an explicit database, a path or a url; it wins over every other word on where memories are kept.
        flags_from: what messages call the origin of the flags.
        environ: the environment; the process's own by default.
        start: where the search for the project file starts; the working directory by default.
        user_file: the user's file; `user_config_file()` by default.

    Raises:
        ConfigError: a file cannot be parsed, a value or key is wrong, or the project's file names an address that
            the user does not; the message says where it stands.
    """
    environ = os.environ if environ is None else environ
    user_file = user_file or user_config_file()
    project_file = find_project_file((start or Path.cwd()).absolute())
    files = tuple(file for file in (user_file, project_file) if file is not None and file.is_file())
    read = {file: _with_field_names(file_source(file)) for file in files}
    flag_source = Source(flags_from, _flags(flags or {}, db), {})
    sources = [*read.values(), _with_field_names(environment_source(environ)), _with_field_names(flag_source)]

    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        merge(values, source.values, source, origins)
    if project_file is not None and not trusts_project(environ):
        user_values = read[user_file].values if user_file in read else {}
        check_project_addresses(
            values, origins, project=read[project_file], user_values=user_values, user_file=user_file
        )
    try:
        config = LaminaConfig(**values)
    except ConfigError as error:
        origin = LoadedConfig(LaminaConfig(), origins, files, project_file, user_file).origin(error.field)
        raise ConfigError(error.field, f"{error.problem} (from {origin})", error.remedy) from error
    return LoadedConfig(config, origins, files, project_file, user_file)


def _flags(flags: Mapping[str, Any], db: str | None) -> dict[str, Any]:
    if db is None:
        return dict(flags)
    return {**flags, "memory": {**flags.get("memory", {}), **place_of(db, COMMAND_LINE)}}


def _with_field_names(source: Source) -> Source:
    try:
        return replace(source, values=_field_names(LaminaConfig, source.values))
    except ConfigError as error:
        origin = source.origin(error.field)
        raise ConfigError(error.field, f"{error.problem} (from {origin})", error.remedy) from error


_TABLES: Final[Mapping[tuple[type[BaseModel], str], Any]] = {
    (LaminaConfig, "memory"): MemoryConfig,
    (LaminaConfig, "model"): ModelConfig,
    (LaminaConfig, "context"): ContextConfig,
    (LaminaConfig, "conversation"): ConversationConfig,
    (LaminaConfig, "rag"): RagConfig,
    (LaminaConfig, "agents"): AgentsConfig,
    (LaminaConfig, "server"): ServerConfig,
    (ConversationConfig, "compaction"): CompactionConfig,
    (ConversationConfig, "summary"): SummaryConfig,
    (ConversationConfig, "context_engineering"): ContextThresholds,
    (ServerConfig, "jwt"): JwtConfig,
    (ServerConfig, "rate_limit"): RateLimit,
    (MemoryConfig, "compaction"): CompactionConfig,
    (MemoryConfig, "scoring"): ScoringConfig,
    (MemoryConfig, "embedding"): EmbeddingConfig,
}


def _field_names(model: Any, values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """The values with every key, at every depth, as the fields are named, so that sources can be merged."""
    preset = {"preset": values["preset"]} if model is ScoringConfig and "preset" in values else {}
    try:
        named: dict[str, Any] = preset | model.field_names(
            {key: value for key, value in values.items() if key not in preset}
        )
    except ConfigError as error:
        raise ConfigError(path + error.field, error.problem, error.remedy) from error
    for key, value in named.items():
        below = _TABLES.get((model, key))
        if below is not None and isinstance(value, str) and key in SHORTHAND:
            named[key] = SHORTHAND[key](value)
        elif below is not None and isinstance(value, Mapping):
            named[key] = _field_names(below, value, f"{path}{key}.")
        elif below is not None and value is not None:
            # Refused here: a table of a stronger source would take its place, and nobody would hear of it.
            raise ConfigError(f"{path}{key}", f"must be a table, not {type(value).__name__}", "Correct the value.")
    return named
