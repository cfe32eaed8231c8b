"""Threads, blocking."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lamina.conversation.manager import ConversationManager as AsyncConversationManager
from lamina.conversation.messages import new_message_id
from lamina.conversation.summarizer import CustomSummarizer
from lamina.conversation.window import WindowPolicy
from lamina.domain.memory import DEFAULT_NAME
from lamina.memory.engine import MemoryEngine as AsyncMemoryEngine
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.events import Emit
from lamina.ports.language_model import LanguageModel
from lamina.ports.state_store import StateStore as AsyncStateStore
from lamina.ports.token_counter import TokenCounter
from lamina.settings.conversation import SummaryConfig
from lamina.settings.tiers import ContextThresholds
from lamina.sync.forwarding import Blocking, bare, blocking_function, blocking_method

if TYPE_CHECKING:
    from lamina.sync.memory import MemoryEngine
    from lamina.sync.state import StateStore

__all__ = ["ConversationManager"]


class ConversationManager(Blocking[AsyncConversationManager]):
    """A `lamina.conversation.manager.ConversationManager` that blocks.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. The store and the memory may be blocking ones or async ones, and stay the caller's to close.
    """

    def __init__(
        self,
        store: StateStore | AsyncStateStore,
        *,
        tenant: str = DEFAULT_NAME,
        llm: LanguageModel | None = None,
        memory: MemoryEngine | AsyncMemoryEngine | None = None,
        policy: WindowPolicy | None = None,
        summarizer: CustomSummarizer | None = None,
        summary: SummaryConfig | None = None,
        context_engineering: ContextThresholds | None = None,
        store_facts: bool = True,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        new_id: IdFactory = new_message_id,
        emit: Emit | None = None,
        secrets: SecretScreen | str = "off",
    ) -> None:
        made = AsyncConversationManager(
            bare(store),
            tenant=tenant,
            llm=llm,
            memory=bare(memory),
            policy=policy,
            summarizer=summarizer,
            summary=summary,
            context_engineering=context_engineering,
            store_facts=store_facts,
            counter=counter,
            clock=clock,
            new_id=new_id,
            emit=emit,
            secrets=secrets,
        )
        super().__init__(made)

    @property
    def tenant(self) -> str:
        """Whose threads these are."""
        return self.asynchronous.tenant

    create = blocking_method(AsyncConversationManager.create)
    add_message_to_thread = blocking_method(AsyncConversationManager.add_message_to_thread)
    add_messages = blocking_method(AsyncConversationManager.add_messages)
    get_thread_context = blocking_method(AsyncConversationManager.get_thread_context)
    list_threads = blocking_method(AsyncConversationManager.list_threads)
    archive = blocking_method(AsyncConversationManager.archive)
    unarchive = blocking_method(AsyncConversationManager.unarchive)
    retrieve = blocking_method(AsyncConversationManager.retrieve)
    history = blocking_method(AsyncConversationManager.history)
    expand = blocking_method(AsyncConversationManager.expand)
    delete = blocking_method(AsyncConversationManager.delete)
    compact = blocking_method(AsyncConversationManager.compact)
    extract_memories = blocking_method(AsyncConversationManager.extract_memories)

    def expand_tool(self, thread_id: str, *, owner: str | None = None) -> Callable[[str, int], str]:
        """A tool for an agent that gives the originals of compacted messages of this one thread; a plain function."""
        return blocking_function(self, self.asynchronous.expand_tool(thread_id, owner=owner))
