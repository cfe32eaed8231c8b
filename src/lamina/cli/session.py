"""One run of a command: whose memories, where they are, and how to answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.errors import ConfigError

if TYPE_CHECKING:
    from lamina.memory.engine import MemoryEngine
    from lamina.settings import LoadedConfig, MemoryConfig

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

    @cached_property
    def settings(self) -> LoadedConfig:
        """The settings in force, with the flags of this run on top."""
        from lamina.settings.loading import DATABASE, load_config

        flags: dict[str, Any] = {"memory": {} if self.tenant is None else {"tenant": self.tenant}}
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

    def _check_database(self, path: Path, *, creates: bool) -> None:
        if path.exists():
            return
        if not creates:
            remedy = "`lamina remember` makes one; --db, or `lamina config path`, helps if it should be there."
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
