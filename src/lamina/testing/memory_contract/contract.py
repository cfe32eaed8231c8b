"""The whole contract of a memory adapter, and its guard over itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing.contract_guard import GuardedContract, check_signatures
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.filters import FilterContract
from lamina.testing.memory_contract.history import HistoryContract
from lamina.testing.memory_contract.meta import MetaContract
from lamina.testing.memory_contract.reading import ReadingContract
from lamina.testing.memory_contract.refusals import RefusalContract
from lamina.testing.memory_contract.round_trip import RoundTripContract
from lamina.testing.memory_contract.scopes import ScopeContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import DuplicateContract, WritingContract

__all__ = ["MemoryAdapterContract"]


class MemoryAdapterContract(
    RoundTripContract,
    RefusalContract,
    ScopeContract,
    MetaContract,
    FilterContract,
    VectorContract,
    TextContract,
    ReadingContract,
    WritingContract,
    DuplicateContract,
    BatchContract,
    HistoryContract,
    ConcurrencyContract,
    GuardedContract,
):
    """What every memory adapter promises: subclass it and give it a fixture `adapter`.

    The fixture yields an initialised adapter with nothing in it, and closes it. A test of what the
    adapter does not declare is skipped, and that it refuses such calls is tested instead. No test
    may be overridden but with `known_gap`, and none left out.
    """

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def adapter(self) -> AsyncIterator[MemoryAdapter]:
        """An initialised, empty adapter."""
        raise NotImplementedError("Give the contract a fixture `adapter` that yields an initialised, empty adapter.")
        yield  # it is a generator, as the ones that take its place are

    async def test_the_signatures_are_the_ports(self, adapter: MemoryAdapter) -> None:
        check_signatures(MemoryAdapter, type(adapter))

    async def test_the_name_and_the_capabilities_are_declared(self, adapter: MemoryAdapter) -> None:
        declared = type(adapter)
        assert isinstance(declared.name, str)
        assert declared.name.strip() == declared.name != ""
        assert isinstance(declared.capabilities, frozenset)
        assert all(isinstance(each, Capability) for each in declared.capabilities)
        assert adapter.capabilities <= declared.capabilities  # an open one may have met a server that can do less
