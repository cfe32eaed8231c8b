"""The contract, over HTTP and through the functions in the database."""

from collections.abc import AsyncIterator

import pytest
from fake_postgrest import FakePostgrest

from lamina.adapters.supabase import SupabaseAdapter
from lamina.testing import MemoryAdapterContract

TABLE = "contract"


class TestSupabaseAdapterAgainstAPostgrestFakeOverARealPostgres(MemoryAdapterContract):
    service = "supabase"

    @pytest.fixture
    async def adapter(self, supabase: FakePostgrest) -> AsyncIterator[SupabaseAdapter]:
        adapter = SupabaseAdapter(
            supabase.url, service_key=supabase.service_key, database_url=supabase.database_url, table=TABLE
        )
        await adapter.initialize()
        supabase.run(f'TRUNCATE "{TABLE}" CASCADE; TRUNCATE {TABLE}__controls')
        yield adapter
        await adapter.close()
