from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from opening import opening

from lamina.adapters.postgres import PostgresAdapter


@pytest.fixture
def plain_url(postgres) -> Iterator[str]:
    """A database of this test's own, and a role that owns it and is no superuser. It has no pgvector."""
    name = f"test_{secrets.token_hex(6)}"
    yield postgres.make_database(name, owner="lamina_app")
    postgres.drop_database(name)


@pytest.fixture
def url(postgres, plain_url: str) -> str:
    """The same with pgvector, which only a superuser may install."""
    postgres.run("CREATE EXTENSION vector", url=as_superuser(plain_url))
    return plain_url


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Awaitable[PostgresAdapter]]]:
    """Opens adapters, and closes them at the end."""
    async with opening(PostgresAdapter) as open_one:
        yield open_one


@pytest.fixture
async def adapter(opened: Callable[..., Awaitable[PostgresAdapter]], url: str) -> PostgresAdapter:
    return await opened(url)


@pytest.fixture
def aside(postgres, plain_url: str) -> Callable[..., list[tuple[Any, ...]]]:
    """Runs statements in that database as a superuser."""
    return lambda statement, *parameters: postgres.run(statement, *parameters, url=as_superuser(plain_url))


def as_superuser(url: str) -> str:
    return url.replace("lamina_app@", "postgres@")
