"""What tests of an adapter, and of code that uses Lamina, need.

    from lamina.testing import MemoryAdapterContract

    class TestMyAdapter(MemoryAdapterContract):
        @pytest.fixture
        async def adapter(self):
            adapter = MyAdapter()
            await adapter.initialize()
            yield adapter
            await adapter.close()

`MemoryAdapterContract` and `known_gap` need the extra `testing`; the stand-ins need nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lamina.errors import MissingExtra
from lamina.testing.clock import FrozenClock, counting_ids
from lamina.testing.embedder import HashingEmbedder
from lamina.testing.language_model import EchoModel

if TYPE_CHECKING:
    from lamina.testing.memory_contract.contract import MemoryAdapterContract, known_gap

__all__ = ["EchoModel", "FrozenClock", "HashingEmbedder", "MemoryAdapterContract", "counting_ids", "known_gap"]


def __getattr__(name: str) -> Any:
    if name not in {"MemoryAdapterContract", "known_gap"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if any(find_spec(needed) is None for needed in ("pytest", "pytest_asyncio", "hypothesis")):
        raise MissingExtra(f"lamina.testing.{name}", "testing")
    return getattr(import_module("lamina.testing.memory_contract.contract"), name)
