"""The whole contract of a state store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lamina.ports.state_store import StateStore
from lamina.testing.contract_guard import GuardedContract, check_signatures
from lamina.testing.state_contract.concurrency import ConcurrencyContract
from lamina.testing.state_contract.documents import DocumentContract
from lamina.testing.state_contract.folding import FoldingContract
from lamina.testing.state_contract.heads import HeadContract, IsolationContract
from lamina.testing.state_contract.messages import MessageContract, ReplacementContract
from lamina.testing.state_contract.round_trip import RefusalContract, RoundTripContract

__all__ = ["StateStoreContract"]


class StateStoreContract(
    RoundTripContract,
    RefusalContract,
    IsolationContract,
    HeadContract,
    MessageContract,
    ReplacementContract,
    FoldingContract,
    DocumentContract,
    ConcurrencyContract,
    GuardedContract,
):
    """What every state store promises: subclass it and give it a fixture `store`.

    The fixture yields an initialised store with nothing in it, and closes it. Where two stores can be
    open on one place, `second_store` yields another one on the place of the first; where nothing is
    kept after `close`, set `is_persistent = False`. No test may be overridden but with `known_gap`,
    and none left out.
    """

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[StateStore]:
        """An initialised, empty store."""
        raise NotImplementedError("Give the contract a fixture `store` that yields an initialised, empty store.")
        yield  # it is a generator, as the ones that take its place are

    @pytest.fixture
    async def second_store(self) -> AsyncIterator[StateStore]:
        """Another store on the place of the first."""
        pytest.skip("no two stores of this kind share a place")
        yield  # as above

    async def test_the_signatures_are_the_ports(self, store: StateStore) -> None:
        check_signatures(StateStore, type(store))

    async def test_the_name_is_declared(self, store: StateStore) -> None:
        name = type(store).name
        assert isinstance(name, str)
        assert name.strip() == name != ""
