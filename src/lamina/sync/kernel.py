"""The kernel, its agents and the short way in, blocking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.agents import AgentRegistry as AsyncAgentRegistry
from lamina.kernel import Kernel as AsyncKernel
from lamina.sync.context import ContextEngine, ContextEngineManager
from lamina.sync.conversation import ConversationManager
from lamina.sync.forwarding import (
    Blocking,
    Resource,
    blocking_iterator,
    blocking_manager,
    blocking_method,
    made_as,
    plain_method,
)
from lamina.sync.memory import MemoryEngine
from lamina.sync.packs import ContextPacks
from lamina.sync.rag import RagPipeline
from lamina.sync.short_term import BaseMemory

if TYPE_CHECKING:
    from lamina.kernel import ModelRouter
    from lamina.settings import LaminaConfig

__all__ = ["AgentRegistry", "Kernel"]


class AgentRegistry(Blocking[AsyncAgentRegistry]):
    """A `lamina.agents.AgentRegistry` that blocks."""

    @made_as(AsyncAgentRegistry)
    def __init__(self, asynchronous: AsyncAgentRegistry) -> None:
        super().__init__(asynchronous)

    register = plain_method(AsyncAgentRegistry.register)
    unregister = plain_method(AsyncAgentRegistry.unregister)
    get = plain_method(AsyncAgentRegistry.get)
    list = plain_method(AsyncAgentRegistry.list)
    named = plain_method(AsyncAgentRegistry.named)
    select = blocking_method(AsyncAgentRegistry.select)


class Kernel(Resource[AsyncKernel]):
    """A `lamina.kernel.Kernel` that blocks, made with the same arguments.

    Its methods have the same names, parameters, documentation and errors, and its parts are blocking ones. Safe
    to call from several threads. Use it as a context manager, or call `start` and `stop`.
    """

    @made_as(AsyncKernel)
    def __init__(self, asynchronous: AsyncKernel) -> None:
        super().__init__(asynchronous)

    @classmethod
    def from_config(cls, config: LaminaConfig | Mapping[str, Any], **options: Any) -> Kernel:
        """The kernel that the settings describe; options are the constructor's."""
        return cls(config, **options)

    @property
    def config(self) -> LaminaConfig:
        """The settings."""
        return self.asynchronous.config

    @property
    def model_router(self) -> ModelRouter:
        """Which model does which task; `stop` closes it."""
        return self.asynchronous.model_router

    @property
    def agent_registry(self) -> AgentRegistry:
        """The agents."""
        return self.part(AgentRegistry, self.asynchronous.agent_registry)

    @property
    def context_engines(self) -> ContextEngineManager:
        """The plug-in context engines."""
        return self.part(ContextEngineManager, self.asynchronous.context_engines)

    @property
    def is_started(self) -> bool:
        """Whether it is open."""
        return self.asynchronous.is_started

    @property
    def ephemeral(self) -> bool:
        """Whether everything is gone with the process."""
        return self.asynchronous.ephemeral

    @property
    def memory_engine(self) -> MemoryEngine:
        """The memories."""
        return self.part(MemoryEngine, self.asynchronous.memory_engine)

    @property
    def conversation(self) -> ConversationManager:
        """The threads."""
        return self.part(ConversationManager, self.asynchronous.conversation)

    def sessions(self, owner: str | None = None) -> BaseMemory:
        """Short-term memory over the kernel's store and model: this owner's sessions, or without one all there are.

        It belongs to the kernel, which closes what is below it.
        """
        return self.part(BaseMemory, self.asynchronous.sessions(owner))

    @property
    def rag(self) -> RagPipeline:
        """The documents."""
        return self.part(RagPipeline, self.asynchronous.rag)

    @property
    def packs(self) -> ContextPacks:
        """The context packs."""
        return self.part(ContextPacks, self.asynchronous.packs)

    @property
    def context_engine(self) -> ContextEngine:
        """What computes contexts."""
        return self.part(ContextEngine, self.asynchronous.context_engine)

    start = blocking_method(AsyncKernel.start)
    stop = blocking_method(AsyncKernel.stop)
    on = plain_method(AsyncKernel.on)
    submit = blocking_method(AsyncKernel.submit)
    execute_intent = blocking_method(AsyncKernel.execute_intent)
    stream = blocking_iterator(AsyncKernel.stream, page=1)
    diagnose = blocking_method(AsyncKernel.diagnose)
    run_maintenance = blocking_method(AsyncKernel.run_maintenance)
    erase = blocking_method(AsyncKernel.erase)
    quarantine = blocking_method(AsyncKernel.quarantine)
    quarantined = blocking_method(AsyncKernel.quarantined)
    release = blocking_method(AsyncKernel.release)
    forget_source = blocking_method(AsyncKernel.forget_source)
    check_integrity = blocking_method(AsyncKernel.check_integrity)
    backup = blocking_method(AsyncKernel.backup)
    restore = blocking_method(AsyncKernel.restore)
    maintenance = blocking_manager(AsyncKernel.maintenance)
