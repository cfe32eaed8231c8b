"""The whole contract of a memory adapter, and its guard over itself."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.errors import ConfigError
from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.filters import FilterContract
from lamina.testing.memory_contract.history import HistoryContract
from lamina.testing.memory_contract.reading import ReadingContract
from lamina.testing.memory_contract.refusals import RefusalContract
from lamina.testing.memory_contract.round_trip import RoundTripContract
from lamina.testing.memory_contract.scopes import ScopeContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import DuplicateContract, WritingContract

__all__ = ["MemoryAdapterContract", "known_gap"]

GUARD = "test_the_contract_is_whole"


def known_gap(reason: str, *, raises: type[BaseException] | tuple[type[BaseException], ...]) -> pytest.MarkDecorator:
    """Mark an overridden contract test that this backend cannot pass yet, and say why.

    The test must fail, and with this exception; the day it passes, it is reported until the mark
    goes. The override calls the original:

        @known_gap("the server rounds times to milliseconds", raises=AssertionError)
        async def test_every_field_comes_back(self, adapter):
            await super().test_every_field_comes_back(adapter)
    """
    if not reason.strip():
        raise ConfigError("reason", "is blank", "Say why the backend cannot pass the test.")
    return pytest.mark.xfail(reason=reason, raises=raises, strict=True)


class MemoryAdapterContract(
    RoundTripContract,
    RefusalContract,
    ScopeContract,
    FilterContract,
    VectorContract,
    TextContract,
    ReadingContract,
    WritingContract,
    DuplicateContract,
    BatchContract,
    HistoryContract,
    ConcurrencyContract,
):
    """What every memory adapter promises: subclass it and give it a fixture `adapter`.

    The fixture yields an initialised adapter with nothing in it, and closes it. A test of what the
    adapter does not declare is skipped, and that it refuses such calls is tested instead. No test
    may be overridden but with `known_gap`, and none left out.
    """

    pytestmark = pytest.mark.asyncio

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a subclass without the guard, which would find every other hole."""
        super().__init_subclass__(**options)
        if getattr(cls, GUARD, None) is not getattr(MemoryAdapterContract, GUARD):
            raise ConfigError(GUARD, f"is replaced in {cls.__name__}", "It stays as it is: it guards the others.")

    @pytest.fixture
    async def adapter(self) -> AsyncIterator[MemoryAdapter]:
        """An initialised, empty adapter."""
        raise NotImplementedError("Give the contract a fixture `adapter` that yields an initialised, empty adapter.")
        yield  # it is a generator, as the ones that take its place are

    async def test_the_contract_is_whole(self) -> None:
        for name in (name for name in dir(MemoryAdapterContract) if name.startswith("test_")):
            own, standard = getattr(type(self), name, None), getattr(MemoryAdapterContract, name)
            if own is standard:
                continue
            assert own is not None, f"{name} is left out"
            gaps = [mark for mark in getattr(own, "pytestmark", []) if mark.name == "xfail"]
            assert gaps, f"{name} is overridden without @known_gap"
            assert all(gap.kwargs.get("strict") and gap.kwargs.get("raises") for gap in gaps), f"{name}: use @known_gap"

    async def test_the_signatures_are_the_ports(self, adapter: MemoryAdapter) -> None:
        for name, standard in inspect.getmembers(MemoryAdapter, inspect.isfunction):
            if name.startswith("_"):
                continue
            own = getattr(type(adapter), name)
            assert inspect.iscoroutinefunction(own), f"{name} must be a coroutine function"
            expected, actual = _parameters(standard), _parameters(own)
            known = [each for each in actual if each.name in {other.name for other in expected}]
            assert [(each.name, each.kind) for each in known] == [(each.name, each.kind) for each in expected], name
            assert [each.default for each in known] == [each.default for each in expected], name
            extra = [each for each in actual if each not in known]
            assert all(each.kind is each.KEYWORD_ONLY for each in extra), name
            assert all(each.default is not each.empty for each in extra), f"{name}: what is added needs a default"

    async def test_the_name_and_the_capabilities_are_declared(self, adapter: MemoryAdapter) -> None:
        declared = type(adapter)
        assert isinstance(declared.name, str)
        assert declared.name.strip() == declared.name != ""
        assert isinstance(declared.capabilities, frozenset)
        assert all(isinstance(each, Capability) for each in declared.capabilities)
        assert adapter.capabilities == declared.capabilities


def _parameters(function: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    return parameters[1:]  # without self
