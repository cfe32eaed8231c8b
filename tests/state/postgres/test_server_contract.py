from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.domain.idempotency import RequestState
from lamina.ports.clock import utc_now
from lamina.state.postgres import PostgresServerStore
from lamina.testing import ServerStoreContract


class TestPostgresServerStore(ServerStoreContract):
    @pytest.fixture
    async def store(self, postgres_url: str, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(postgres_url, schema=postgres_schema, callers_clocks=True) as store:
            yield store

    @pytest.fixture
    async def second_store(self, postgres_url: str, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(postgres_url, schema=postgres_schema, callers_clocks=True) as store:
            yield store


class TestPostgresServerStoreOnASharedDatabase(ServerStoreContract):
    @pytest.fixture
    async def database(self, postgres_url: str) -> AsyncIterator[PostgresDatabase]:
        async with PostgresDatabase(postgres_url, connections=2) as database:
            yield database

    @pytest.fixture
    async def store(self, database: PostgresDatabase, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(database=database, schema=postgres_schema, callers_clocks=True) as store:
            yield store

    @pytest.fixture
    async def second_store(
        self, database: PostgresDatabase, postgres_schema: str
    ) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(database=database, schema=postgres_schema, callers_clocks=True) as store:
            yield store


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
async def test_a_process_whose_clock_is_off_gets_no_lease_or_request_that_another_one_has(
    postgres_url: str, postgres_schema: str, hours: int
) -> None:
    soon, long = timedelta(seconds=0.2), timedelta(minutes=1)
    request = ("acme", "caller", "key", "f")
    async with (
        PostgresServerStore(postgres_url, schema=postgres_schema) as right,
        PostgresServerStore(postgres_url, schema=postgres_schema) as off,
    ):
        now = utc_now()
        wrong = now + timedelta(hours=hours)
        assert await right.acquire_lease("sweep", "right", now=now, until=now + long)
        assert not await off.acquire_lease("sweep", "off", now=wrong, until=wrong + long)
        assert await right.acquire_lease("sweep", "right", now=now, until=now + soon)
        assert (await off.begin(*request, now=wrong, lease_until=wrong + soon)).state is RequestState.NEW
        assert (await right.begin(*request, now=now, lease_until=now + long)).state is RequestState.IN_PROGRESS
        await asyncio.sleep(0.3)
        assert await off.acquire_lease("sweep", "off", now=wrong, until=wrong + long)
        assert not await right.acquire_lease("sweep", "right", now=now, until=now + long)
        assert (await right.begin(*request, now=now, lease_until=now + long)).state is RequestState.NEW
