"""Short-term memory, blocking."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from lamina.conversation.short_term import BaseMemory as AsyncBaseMemory
from lamina.conversation.short_term_stores import InMemoryMemory as AsyncInMemoryMemory
from lamina.conversation.short_term_stores import PostgresMemory as AsyncPostgresMemory
from lamina.conversation.short_term_stores import SQLiteMemory as AsyncSQLiteMemory
from lamina.sync.forwarding import Resource, blocking_method, made_as, plain_method

if TYPE_CHECKING:
    from lamina.ports.token_counter import TokenCounter
    from lamina.settings.tiers import ContextThresholds

__all__ = ["BaseMemory", "InMemoryMemory", "PostgresMemory", "SQLiteMemory"]

_OVERRIDABLE: Final = ("compact_event", "summarize", "store_summary", "clear_summarized_events")


class BaseMemory(Resource[AsyncBaseMemory]):
    """A `lamina.conversation.short_term.BaseMemory` that blocks, made with the same arguments.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. Use it as it is, or derive from it and override `compact_event`, `summarize`, `store_summary` or
    `clear_summarized_events` with plain methods. Those are run in a worker thread; there, `super()` and
    the rest of this object may be called, but nothing that manages the same session.
    """

    @made_as(AsyncBaseMemory)
    def __init__(self, asynchronous: AsyncBaseMemory) -> None:
        self._take(asynchronous)

    @property
    def counter(self) -> TokenCounter:
        """What counts tokens."""
        return self.asynchronous.counter

    @property
    def thresholds(self) -> ContextThresholds:
        """When what is done."""
        return self.asynchronous.thresholds

    def _take(self, asynchronous: AsyncBaseMemory) -> None:
        """Stand before this object, which calls what a subclass of the twin overrides."""
        Resource.__init__(self, asynchronous)
        for name in _OVERRIDABLE:
            if getattr(type(self), name) is not getattr(BaseMemory, name):
                setattr(asynchronous, name, _in_worker(getattr(self, name)))

    close = blocking_method(AsyncBaseMemory.close)
    add = blocking_method(AsyncBaseMemory.add)
    add_list = blocking_method(AsyncBaseMemory.add_list)
    update = blocking_method(AsyncBaseMemory.update)
    delete = blocking_method(AsyncBaseMemory.delete)
    clear = blocking_method(AsyncBaseMemory.clear)
    tier = blocking_method(AsyncBaseMemory.tier)
    manage_context = blocking_method(AsyncBaseMemory.manage_context)
    get_context = blocking_method(AsyncBaseMemory.get_context)
    restore = blocking_method(AsyncBaseMemory.restore)
    compact_event = blocking_method(AsyncBaseMemory.compact_event)
    compact_with = plain_method(AsyncBaseMemory.compact_with)
    summarize = blocking_method(AsyncBaseMemory.summarize)
    store_summary = blocking_method(AsyncBaseMemory.store_summary)
    clear_summarized_events = blocking_method(AsyncBaseMemory.clear_summarized_events)
    list = blocking_method(AsyncBaseMemory.list)
    retrieve = blocking_method(AsyncBaseMemory.retrieve)
    get_count = blocking_method(AsyncBaseMemory.get_count)
    is_empty = blocking_method(AsyncBaseMemory.is_empty)
    get_session_ids = blocking_method(AsyncBaseMemory.get_session_ids)
    list_sessions = blocking_method(AsyncBaseMemory.list_sessions)
    has_session = blocking_method(AsyncBaseMemory.has_session)
    get_summaries = blocking_method(AsyncBaseMemory.get_summaries)
    archived = blocking_method(AsyncBaseMemory.archived)
    expand = blocking_method(AsyncBaseMemory.expand)
    decompress_event = plain_method(AsyncBaseMemory.decompress_event)
    decompress_events = plain_method(AsyncBaseMemory.decompress_events)


class InMemoryMemory(BaseMemory):
    """A `lamina.conversation.short_term_stores.InMemoryMemory` that blocks."""

    @made_as(AsyncInMemoryMemory)
    def __init__(self, asynchronous: AsyncInMemoryMemory) -> None:
        self._take(asynchronous)


class SQLiteMemory(BaseMemory):
    """A `lamina.conversation.short_term_stores.SQLiteMemory` that blocks."""

    @made_as(AsyncSQLiteMemory)
    def __init__(self, asynchronous: AsyncSQLiteMemory) -> None:
        self._take(asynchronous)


class PostgresMemory(BaseMemory):
    """A `lamina.conversation.short_term_stores.PostgresMemory` that blocks."""

    @made_as(AsyncPostgresMemory)
    def __init__(self, asynchronous: AsyncPostgresMemory) -> None:
        self._take(asynchronous)


def _in_worker(override: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The blocking override as the async object calls it: the loop does not wait for it."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        result = await to_thread.run_sync(functools.partial(override, *args, **kwargs), abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return call
