"""What the contracts have in common: a guard over themselves, and how a gap is owned up to."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from lamina.errors import ConfigError

__all__ = ["GuardedContract", "check_signatures", "known_gap"]

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


class GuardedContract:
    """A contract names this beside its parts; what derives from the contract may leave nothing out."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a subclass without the guard, which would find every other hole."""
        super().__init_subclass__(**options)
        if getattr(cls, GUARD, None) is not getattr(GuardedContract, GUARD):
            raise ConfigError(GUARD, f"is replaced in {cls.__name__}", "It stays as it is: it guards the others.")

    async def test_the_contract_is_whole(self) -> None:
        contract = next(each for each in type(self).__mro__ if GuardedContract in each.__bases__)
        for name in (name for name in dir(contract) if name.startswith("test_")):
            own, standard = getattr(type(self), name, None), getattr(contract, name)
            if own is standard:
                continue
            assert own is not None, f"{name} is left out"
            gaps = [mark for mark in getattr(own, "pytestmark", []) if mark.name == "xfail"]
            assert gaps, f"{name} is overridden without @known_gap"
            assert all(gap.kwargs.get("strict") and gap.kwargs.get("raises") for gap in gaps), f"{name}: use @known_gap"


def check_signatures(port: type, backend: type) -> None:
    """Fail unless every method can be called as the port says, by position and by keyword."""
    for name, standard in inspect.getmembers(port, inspect.isfunction):
        if name.startswith("_"):
            continue
        own = getattr(backend, name)
        is_coroutine = inspect.iscoroutinefunction(standard)
        assert inspect.iscoroutinefunction(own) == is_coroutine, (
            f"{name} must be a coroutine function where the port's is one, and only there"
        )
        expected, actual = _parameters(standard), _parameters(own)
        known = [each for each in actual if each.name in {other.name for other in expected}]
        assert [(each.name, each.kind) for each in known] == [(each.name, each.kind) for each in expected], name
        assert [each.default for each in known] == [each.default for each in expected], name
        extra = [each for each in actual if each not in known]
        assert all(each.kind is each.KEYWORD_ONLY for each in extra), name
        assert all(each.default is not each.empty for each in extra), f"{name}: what is added needs a default"


def _parameters(function: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    return parameters[1:]  # without self
