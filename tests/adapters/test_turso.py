import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from real_sqld import SqldServer

from lamina.adapters.turso import TursoAdapter, nearest
from lamina.testing import MemoryAdapterContract
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.round_trip import RoundTripContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import WritingContract


class TestTursoAdapter(MemoryAdapterContract):
    service = "turso"

    @pytest.fixture
    async def adapter(self, turso: SqldServer) -> AsyncIterator[TursoAdapter]:
        table = f"t{secrets.token_hex(6)}"
        adapter = TursoAdapter(turso.url, table=table)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        turso.drop(table)


class TestTursoAdapterOnALocalFile(
    RoundTripContract, VectorContract, TextContract, WritingContract, BatchContract, ConcurrencyContract
):
    """What does not go over HTTP: values on their way, transactions and locks, and the engine's own indexes.

    The statements are the server's, so scopes, filters and refusals are shown there.
    """

    service = "real engine: libSQL, in the libsql package"

    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[TursoAdapter]:
        adapter = TursoAdapter(path=tmp_path / "lamina.db")
        await adapter.initialize()
        yield adapter
        await adapter.close()


class TestTursoAdaptersVectorIndex(VectorContract):
    """What the contract says of vectors, answered from the index; the rest has nothing to do with it."""

    service = "real engine: libSQL, in the libsql package"

    @pytest.fixture
    async def adapter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TursoAdapter]:
        monkeypatch.setattr(nearest, "INDEXED_FROM", 0)
        adapter = TursoAdapter(path=tmp_path / "lamina.db", vector_index=True)
        await adapter.initialize()
        yield adapter
        await adapter.close()
