import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from opening import opening

from lamina.adapters.sqlite import SqliteAdapter

Opener = Callable[..., Awaitable[SqliteAdapter]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lamina.db"


@pytest.fixture
async def opened(file: Path) -> AsyncIterator[Opener]:
    """Opens adapters, on the test's file unless told otherwise, and closes them at the end."""
    async with opening(SqliteAdapter, file) as open_one:
        yield open_one


@pytest.fixture
async def adapter(opened: Opener) -> SqliteAdapter:
    return await opened()


@pytest.fixture
def rows(file: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Runs a statement on the file, past the adapter."""

    def run(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(file)
        try:
            found = connection.execute(statement, parameters).fetchall()
            connection.commit()
        finally:
            connection.close()
        return found

    return run
