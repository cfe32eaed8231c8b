"""The whole contract of a server store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lamina.ports.server_store import ServerStore
from lamina.testing.contract_guard import GuardedContract, check_signatures
from lamina.testing.server_contract.concurrency import ConcurrencyContract
from lamina.testing.server_contract.requests import LeaseContract, RequestContract
from lamina.testing.server_contract.tokens import TenantContract, TokenContract, TokenPurgeContract

__all__ = ["ServerStoreContract"]


class ServerStoreContract(
    TokenContract,
    TokenPurgeContract,
    TenantContract,
    RequestContract,
    LeaseContract,
    ConcurrencyContract,
    GuardedContract,
):
    """What every server store promises: subclass it and give it a fixture `store`.

    The fixture yields an initialised store with nothing in it, and closes it. Where two stores can be
    open on one place, `second_store` yields another one on the place of the first; where nothing is
    kept after `close`, set `is_persistent = False`. No test may be overridden but with `known_gap`,
    and none left out.
    """

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[ServerStore]:
        """An initialised, empty store."""
        raise NotImplementedError("Give the contract a fixture `store` that yields an initialised, empty store.")
        yield  # it is a generator, as the ones that take its place are

    @pytest.fixture
    async def second_store(self) -> AsyncIterator[ServerStore]:
        """Another store on the place of the first."""
        pytest.skip("no two stores of this kind share a place")
        yield  # as above

    async def test_the_signatures_are_the_ports(self, store: ServerStore) -> None:
        check_signatures(ServerStore, type(store))

    async def test_the_name_is_declared(self, store: ServerStore) -> None:
        name = type(store).name
        assert isinstance(name, str)
        assert name.strip() == name != ""
