"""One run of a command: whose memories, where they are, and how to answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.errors import ConfigError

if TYPE_CHECKING:
    from lamina.kernel import Kernel
    from lamina.memory.engine import MemoryEngine
    from lamina.ports.server_store import ServerStore
    from lamina.settings import LaminaConfig, LoadedConfig, MemoryConfig

__all__ = ["Session"]


@dataclass(kw_only=True)
class Session:
    """The shared options of a command, and what follows from them."""

    owner: str | None = None
    namespace: str | None = None
    tenant: str | None = None
    db: str | None = None
    data_dir: Path | None = None
    as_json: bool = False
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the command's own options say."""

    @cached_property
    def settings(self) -> LoadedConfig:
        """The settings in force, with the flags of this run on top."""
        from lamina.settings.loading import DATABASE, load_config

        flags: dict[str, Any] = {**self.flags, "memory": {} if self.tenant is None else {"tenant": self.tenant}}
        if self.data_dir is not None:
            flags["data_dir"] = folder = _expanded(self.data_dir)
            flags["memory"] |= {"provider": "sqlite", "path": folder / DATABASE}
        return load_config(flags, db=self.db)

    @property
    def memory(self) -> MemoryConfig:
        """The memory settings; each run is a process, so the working layer is kept in the store."""
        return self.settings.memory().model_copy(update={"working_storage": "adapter"})

    @property
    def reader(self) -> str | None:
        """Whose memories are read: the flag's owner, else one that the settings name, else everybody's."""
        if self.owner is not None:
            return self.owner
        named = self.settings.is_set("memory.default_owner")
        return self.settings.config.memory.default_owner if named else None

    @property
    def writer(self) -> str:
        """Whose what is written is: the flag's owner, else the default one."""
        return self.settings.config.memory.default_owner if self.owner is None else self.owner

    def saying(self, *, model: str | None = None, base_url: str | None = None, budget: int | None = None) -> Session:
        """The same session, with the language model, its address or the budget of a context said by options."""
        from lamina.settings.shorthand import provider_table

        said = {} if model is None else provider_table(model)
        said |= {} if base_url is None else {"base_url": base_url}
        flags: dict[str, Any] = {"model": said} if said else {}
        return replace(self, flags=flags if budget is None else {**flags, "context": {"token_budget": budget}})

    def check_model(self, command: str) -> None:
        """Refuse to go on without a language model.

        Raises:
            ConfigError: none is configured; it says how to.
        """
        if self.settings.config.model is None:
            remedy = "Name one by --model, LAMINA_MODEL or `model` in lamina.toml: ollama:MODEL, openai:MODEL, or "
            raise ConfigError(
                "model", f"`lamina {command}` needs a language model", f"{remedy}http:MODEL and its --base-url."
            )

    @asynccontextmanager
    async def kernel(self, *, creates: bool = False, with_model: bool = False) -> AsyncIterator[Kernel]:
        """An open kernel on the same place; stopped in the end. `creates` as for `engine`.

        Only `with_model` has it the language models of the settings, so that what needs none cannot fail by one.

        Raises:
            ConfigError: there is no database, or no folder for one that was named.
        """
        from lamina.kernel import Kernel

        config = self._placed(creates=creates)
        if not with_model:
            packs = config.packs.model_copy(update={"reducer": "extractive"})
            kept = {"model": None, "memory": config.memory.model_copy(update={"llm": None}), "packs": packs}
            config = config.model_copy(update=kept)
        async with Kernel(config) as kernel:
            yield kernel

    @asynccontextmanager
    async def server_store(self, *, creates: bool = False) -> AsyncIterator[ServerStore]:
        """The open server store of the same place; closed in the end. `creates` as for `engine`.

        Raises:
            ConfigError: there is no database, or no folder for one that was named.
        """
        from lamina.kernel.stores import server_store_of

        async with server_store_of(self._placed(creates=creates)) as store:
            yield store

    def _placed(self, *, creates: bool) -> LaminaConfig:
        """The settings of a kernel on the place of this run, which is there, or may be made."""
        memory = self.memory
        if memory.path is not None and str(memory.path) != ":memory:":
            self._check_database(memory.path, creates=creates)
        kept: dict[str, Any] = {"memory": memory, "data_dir": self.settings.data_dir(), "ephemeral": False}
        return self.settings.config.model_copy(update=kept)

    @asynccontextmanager
    async def engine(self, *, creates: bool = False) -> AsyncIterator[MemoryEngine]:
        """The open engine; closed in the end. Only a command that `creates` makes a database that is not there.

        Raises:
            ConfigError: there is no database, or no folder for one that was named.
        """
        from lamina.memory.factory import create_memory_engine

        memory = self.memory
        if memory.path is not None and str(memory.path) != ":memory:":
            self._check_database(memory.path, creates=creates)
        async with await create_memory_engine(memory) as engine:
            yield engine

    def serving_config(self) -> LaminaConfig:
        """The settings of a server on the place of this run, which is made if it is not there.

        Raises:
            ConfigError: there is no folder for a database that was named.
        """
        return self._placed(creates=True)

    def kept_config(self, *, creates: bool) -> LaminaConfig:
        """The settings of the place of this run, which nothing opens. `creates` as for `engine`.

        Raises:
            ConfigError: there is no database, or no folder for one that was named.
        """
        return self._placed(creates=creates)

    def _check_database(self, path: Path, *, creates: bool) -> None:
        if path.exists():
            return
        if not creates:
            remedy = (
                "`lamina remember` or `ingest` makes one; --db, or `lamina config path`, helps if it should be there."
            )
            raise ConfigError("database", f"there is none at {path}", remedy)
        named = self.data_dir is None and self.settings.config.memory.path is not None
        if named and not path.parent.is_dir():
            raise ConfigError("database", f"there is no folder {path.parent}", "Make it, or correct the path.")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _expanded(folder: Path) -> Path:
    try:
        return folder.expanduser().absolute()
    except RuntimeError as error:  # `~name` of nobody here
        raise ConfigError(
            "--data-dir", f"{str(folder)!r} names no folder: {str(error).rstrip('.')}", "Write it out."
        ) from error
