from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.database import Handle
from lamina.databases.postgres.migrations import Component
from lamina.databases.postgres.schema import Schema, Session

NOTES = "CREATE TABLE {schema}.notes (id integer PRIMARY KEY, text text NOT NULL)"


@pytest.fixture
def notes(postgres_schema: str) -> Component:
    """A component of one small table."""
    return Component("notes", Schema(postgres_schema), [NOTES])


@pytest.fixture
async def joined(postgres_url: str, notes: Component) -> AsyncIterator[Callable[..., Awaitable[Handle]]]:
    """Opens databases, the test's component in them, and leaves them at the end."""
    handles = []

    async def join(url: str = postgres_url, component: Component = notes, **limits: Any) -> Handle:
        handle = PostgresDatabase(url, **limits).join(component)
        handles.append(handle)
        await handle.prepare()
        return handle

    yield join
    for handle in handles:
        await handle.leave()


@pytest.fixture
async def handle(joined: Callable[..., Awaitable[Handle]]) -> Handle:
    return await joined()


@pytest.fixture
def add() -> Callable[[int], Callable[[Session], None]]:
    """The work of writing one note."""

    def work(number: int) -> Callable[[Session], None]:
        return lambda session: _insert(session, number)

    return work


def _insert(session: Session, number: int) -> None:
    session.execute("INSERT INTO {schema}.notes (id, text) VALUES (%s, %s)", (number, f"note {number}"))


@pytest.fixture
def count() -> Callable[[Session], int]:
    """The work of counting the notes."""
    return lambda session: session.execute("SELECT count(*) FROM {schema}.notes").fetchone()[0]
