"""What every store in a PostgreSQL database has in common: how it is opened and closed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.database import (
    CONNECT_TIMEOUT,
    CONNECTIONS,
    STATEMENT_TIMEOUT,
    Handle,
    database_of,
)
from lamina.databases.postgres.failures import BACKEND
from lamina.databases.postgres.migrations import Component
from lamina.databases.postgres.schema import Schema
from lamina.errors import AdapterError

__all__ = ["JoinedStore"]


class JoinedStore:
    """One user of a PostgreSQL database among others, with tables of its own: `_tables`, made by the files `_steps`."""

    name: ClassVar[str] = BACKEND
    _tables: ClassVar[str]
    _steps: ClassVar[Sequence[str]]
    _fragments: ClassVar[Mapping[str, Any]]

    def __init__(
        self,
        url: str | None = None,
        *,
        database: PostgresDatabase | None = None,
        schema: str = "lamina",
        connections: int = CONNECTIONS,
        connect_timeout: float = CONNECT_TIMEOUT,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self._database = database_of(
            url,
            database,
            connections=connections,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
        )
        steps = [files("lamina.state.postgres").joinpath(name).read_text("utf-8") for name in self._steps]
        self._component = Component(self._tables, Schema(schema, self._fragments), steps)
        self._handle: Handle | None = None
        self._changing = threading.Lock()

    async def initialize(self) -> None:
        with self._changing:
            if self._handle is None or not self._handle.is_open:
                self._handle = self._database.join(self._component)
            handle = self._handle
        await handle.prepare()

    async def close(self) -> None:
        with self._changing:
            handle, self._handle = self._handle, None
        if handle is not None:
            await handle.leave()

    def _opened(self) -> Handle:
        handle = self._handle
        if handle is None or not handle.is_open:
            raise AdapterError(self.name, f"{self._database} is not open", "Call `await store.initialize()` first.")
        return handle
