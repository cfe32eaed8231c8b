"""The blocking façade: the same objects, called from code that does not await.

    with create_memory_engine(path="notes.db") as engine:
        engine.store("Wants a dark theme")
        engine.recall("which theme?")

Each class here is the twin of the async class of the same name. Every call is forwarded to the async object, which
is served by one event loop in one background thread that all twins of the process share. So it also works where
a loop is running already, such as in a notebook; it then blocks that loop, as every blocking call does. Hooks and
other callbacks may be plain functions. Those that the loop itself runs must not call a twin.

The thread is a daemon: a program that forgets to close ends all the same, and what is still open is closed at
exit, as far as that takes no longer than a few seconds. After a fork the child needs objects of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lamina.sync.context import ContextEngine, ContextEngineManager
    from lamina.sync.conversation import ConversationManager
    from lamina.sync.kernel import AgentRegistry, Kernel
    from lamina.sync.memory import MemoryEngine, OwnerMemory, create_memory_engine
    from lamina.sync.packs import ContextPacks
    from lamina.sync.rag import RagPipeline
    from lamina.sync.sdk import Lamina, ThreadHandle
    from lamina.sync.short_term import BaseMemory, InMemoryMemory, PostgresMemory, SQLiteMemory
    from lamina.sync.state import StateStore

__all__ = [
    "AgentRegistry",
    "BaseMemory",
    "ContextEngine",
    "ContextEngineManager",
    "ContextPacks",
    "ConversationManager",
    "InMemoryMemory",
    "Kernel",
    "Lamina",
    "MemoryEngine",
    "OwnerMemory",
    "PostgresMemory",
    "RagPipeline",
    "SQLiteMemory",
    "StateStore",
    "ThreadHandle",
    "create_memory_engine",
]

_HOMES: Final = {
    "lamina.sync.context": "ContextEngine ContextEngineManager",
    "lamina.sync.conversation": "ConversationManager",
    "lamina.sync.kernel": "AgentRegistry Kernel",
    "lamina.sync.memory": "MemoryEngine OwnerMemory create_memory_engine",
    "lamina.sync.packs": "ContextPacks",
    "lamina.sync.rag": "RagPipeline",
    "lamina.sync.sdk": "Lamina ThreadHandle",
    "lamina.sync.short_term": "BaseMemory InMemoryMemory PostgresMemory SQLiteMemory",
    "lamina.sync.state": "StateStore",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

# Hidden from type checkers, so that they still report names that do not exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'lamina.sync' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return __all__
