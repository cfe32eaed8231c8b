"""The whole contract of a pack store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lamina.ports.pack_store import PackStore
from lamina.testing.contract_guard import GuardedContract, check_signatures
from lamina.testing.pack_contract.concurrency import ConcurrencyContract
from lamina.testing.pack_contract.fading import FadingContract, ProjectionContract
from lamina.testing.pack_contract.memories import MemoryContract
from lamina.testing.pack_contract.packs import PackContract
from lamina.testing.pack_contract.refusals import RefusalContract
from lamina.testing.pack_contract.superseding import SupersedingContract

__all__ = ["PackStoreContract"]


class PackStoreContract(
    PackContract,
    MemoryContract,
    SupersedingContract,
    FadingContract,
    ProjectionContract,
    RefusalContract,
    ConcurrencyContract,
    GuardedContract,
):
    """What every pack store promises: subclass it and give it a fixture `store`.

    The fixture yields an initialised store with nothing in it, and closes it. Where two stores can be
    open on one place, `second_store` yields another one on the place of the first; where nothing is
    kept after `close`, set `is_persistent = False`. No test may be overridden but with `known_gap`,
    and none left out.
    """

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[PackStore]:
        """An initialised, empty store."""
        raise NotImplementedError("Give the contract a fixture `store` that yields an initialised, empty store.")
        yield  # it is a generator, as the ones that take its place are

    @pytest.fixture
    async def second_store(self) -> AsyncIterator[PackStore]:
        """Another store on the place of the first."""
        pytest.skip("no two stores of this kind share a place")
        yield  # as above

    async def test_the_signatures_are_the_ports(self, store: PackStore) -> None:
        check_signatures(PackStore, type(store))

    async def test_the_name_is_declared(self, store: PackStore) -> None:
        name = type(store).name
        assert isinstance(name, str)
        assert name.strip() == name != ""
