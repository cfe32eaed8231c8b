"""What every store in an SQLite file has in common: how it is opened and closed, and who does its work."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from os import PathLike
from typing import ClassVar, TypeVar

from lamina.databases.sqlite.components import Component
from lamina.databases.sqlite.database import BUSY_TIMEOUT, READERS, Handle, SqliteDatabase, database_of
from lamina.databases.sqlite.failures import BACKEND
from lamina.databases.sqlite.workers import Work
from lamina.errors import AdapterError

__all__ = ["JoinedStore"]

T = TypeVar("T")


class JoinedStore(ABC):
    """One user of an SQLite database among others, with tables of its own: `_component`."""

    name: ClassVar[str] = BACKEND

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        database: SqliteDatabase | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        readers: int = READERS,
        backup: bool = True,
    ) -> None:
        self._database = database_of(path, database, busy_timeout=busy_timeout, readers=readers, backup=backup)
        self._handle: Handle | None = None
        self._changing = threading.Lock()

    @abstractmethod
    def _component(self) -> Component:
        """Its tables, with the steps that made them."""

    async def initialize(self) -> None:
        with self._changing:
            if self._handle is None or not self._handle.is_open:
                self._handle = self._database.join(self._component())
            handle = self._handle
        await handle.prepare()

    async def close(self) -> None:
        with self._changing:
            handle, self._handle = self._handle, None
        if handle is not None:
            await handle.leave()

    async def scrub(self) -> None:
        """See to it that nothing that was deleted is left in the log beside the file.

        In the file itself it is overwritten at once. Copies that were made of the file are not touched.

        Raises:
            AdapterUnavailable: another process reads on, so that the log could not be emptied; try again.
        """
        await self._opened().empty_log()

    def _opened(self) -> Handle:
        handle = self._handle
        if handle is None or not handle.is_open:
            raise AdapterError(self.name, f"{self._database} is not open", "Call `await store.initialize()` first.")
        return handle

    async def _read(self, work: Work[T]) -> T:
        return await self._opened().read(work)

    async def _write(self, work: Work[T]) -> T:
        return await self._opened().write(work)
