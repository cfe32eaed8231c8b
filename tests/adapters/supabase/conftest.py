"""A collection for each test that asks for one, and adapters that are closed after it."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fake_postgrest import FakePostgrest
from opening import opening

from lamina.adapters.supabase import SupabaseAdapter

Opened = Callable[..., Awaitable[SupabaseAdapter]]


@pytest.fixture
def table(supabase: FakePostgrest) -> Iterator[str]:
    """A name under which nothing is yet. Faults that were not met are taken back."""
    yield f"t_{secrets.token_hex(5)}"
    supabase.faults.clear()
    supabase.requests.clear()


@pytest.fixture
async def opened(supabase: FakePostgrest, table: str) -> AsyncIterator[Opened]:
    """Opens one more adapter on the test's collection, which it makes unless told otherwise."""

    def adapter(**options: Any) -> SupabaseAdapter:
        keys = {} if {"service_key", "anon_key"} & options.keys() else {"service_key": supabase.service_key}
        return SupabaseAdapter(**keys, **options)

    async with opening(adapter, url=supabase.url, table=table, database_url=supabase.database_url) as open_one:
        yield open_one
