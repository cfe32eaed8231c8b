"""Computed context, blocking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.context.engine import ContextEngine as AsyncContextEngine
from lamina.context.manager import ContextEngineManager as AsyncContextEngineManager
from lamina.context.sources import ConversationSource, DocumentSource, PackSource, ProfileProvider
from lamina.memory.engine import MemoryEngine as AsyncMemoryEngine
from lamina.ports.clock import Clock, utc_now
from lamina.ports.events import Emit
from lamina.ports.token_counter import TokenCounter
from lamina.settings.context import ContextConfig
from lamina.sync.forwarding import Blocking, bare, blocking_method, made_as, plain_method

if TYPE_CHECKING:
    from lamina.sync.conversation import ConversationManager
    from lamina.sync.memory import MemoryEngine
    from lamina.sync.rag import RagPipeline

__all__ = ["ContextEngine", "ContextEngineManager"]


class ContextEngineManager(Blocking[AsyncContextEngineManager]):
    """A `lamina.context.manager.ContextEngineManager` that blocks, made with the same arguments.

    The engines themselves stay as they are: their methods are called by the loop in the background.
    """

    @made_as(AsyncContextEngineManager)
    def __init__(self, asynchronous: AsyncContextEngineManager) -> None:
        super().__init__(asynchronous)

    @property
    def uses_builtin(self) -> bool:
        """Whether the built-in engine is the default."""
        return self.asynchronous.uses_builtin

    list_engines = plain_method(AsyncContextEngineManager.list_engines)
    register = plain_method(AsyncContextEngineManager.register)
    unregister = blocking_method(AsyncContextEngineManager.unregister)
    set_default = plain_method(AsyncContextEngineManager.set_default)
    get = plain_method(AsyncContextEngineManager.get)
    assemble = blocking_method(AsyncContextEngineManager.assemble)
    compact = blocking_method(AsyncContextEngineManager.compact)
    after_turn = blocking_method(AsyncContextEngineManager.after_turn)
    maintain = blocking_method(AsyncContextEngineManager.maintain)
    dispose = blocking_method(AsyncContextEngineManager.dispose)


class ContextEngine(Blocking[AsyncContextEngine]):
    """A `lamina.context.engine.ContextEngine` that blocks. Its sources may be blocking ones or async ones."""

    def __init__(
        self,
        memory: MemoryEngine | AsyncMemoryEngine,
        *,
        conversation: ConversationManager | ConversationSource | None = None,
        rag: RagPipeline | DocumentSource | None = None,
        packs: PackSource | None = None,
        profile_provider: ProfileProvider | None = None,
        engines: ContextEngineManager | AsyncContextEngineManager | None = None,
        config: ContextConfig | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        emit: Emit | None = None,
    ) -> None:
        made = AsyncContextEngine(
            bare(memory),
            conversation=bare(conversation),
            rag=bare(rag),
            packs=packs,
            profile_provider=profile_provider,
            engines=bare(engines),
            config=config,
            counter=counter,
            clock=clock,
            emit=emit,
        )
        super().__init__(made)

    compute = blocking_method(AsyncContextEngine.compute)
