"""What tests of an adapter or a state store, and of code that uses Lamina, need.

    from lamina.testing import MemoryAdapterContract

    class TestMyAdapter(MemoryAdapterContract):
        @pytest.fixture
        async def adapter(self):
            adapter = MyAdapter()
            await adapter.initialize()
            yield adapter
            await adapter.close()

`StateStoreContract`, `PackStoreContract` and `ServerStoreContract` are the like for a state store, a store of packs
and a server store. They and `known_gap` need the extra `testing`; the stand-ins need nothing.
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
    from lamina.testing.contract_guard import known_gap
    from lamina.testing.memory_contract.contract import MemoryAdapterContract
    from lamina.testing.pack_contract.contract import PackStoreContract
    from lamina.testing.server_contract.contract import ServerStoreContract
    from lamina.testing.state_contract.contract import StateStoreContract

__all__ = [
    "EchoModel",
    "FrozenClock",
    "HashingEmbedder",
    "MemoryAdapterContract",
    "PackStoreContract",
    "ServerStoreContract",
    "StateStoreContract",
    "counting_ids",
    "known_gap",
]

_NEED_PYTEST = {
    "MemoryAdapterContract": "lamina.testing.memory_contract.contract",
    "PackStoreContract": "lamina.testing.pack_contract.contract",
    "ServerStoreContract": "lamina.testing.server_contract.contract",
    "StateStoreContract": "lamina.testing.state_contract.contract",
    "known_gap": "lamina.testing.contract_guard",
}


def __getattr__(name: str) -> Any:
    if name not in _NEED_PYTEST:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if any(find_spec(needed) is None for needed in ("pytest", "pytest_asyncio", "hypothesis")):
        raise MissingExtra(f"lamina.testing.{name}", "testing")
    return getattr(import_module(_NEED_PYTEST[name]), name)
