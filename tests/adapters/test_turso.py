import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from real_sqld import SqldServer

from lamina.adapters.turso import TursoAdapter
from lamina.testing import MemoryAdapterContract


class TestTursoAdapter(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, turso: SqldServer) -> AsyncIterator[TursoAdapter]:
        table = f"t{secrets.token_hex(6)}"
        adapter = TursoAdapter(turso.url, table=table)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        turso.drop(table)


class TestTursoAdapterOnALocalFile(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[TursoAdapter]:
        adapter = TursoAdapter(path=tmp_path / "lamina.db")
        await adapter.initialize()
        yield adapter
        await adapter.close()


class TestTursoAdapterOnAReplica(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, turso: SqldServer, turso_follower: None, tmp_path: Path) -> AsyncIterator[TursoAdapter]:
        table = f"t{secrets.token_hex(6)}"
        adapter = TursoAdapter(turso.url, replica_path=tmp_path / "replica.db", table=table)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        turso.drop(table)
