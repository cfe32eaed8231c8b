"""State stores, blocking."""

from __future__ import annotations

from lamina.ports.state_store import StateStore as AsyncStateStore
from lamina.sync.forwarding import Resource, blocking_method

__all__ = ["StateStore"]


class StateStore(Resource[AsyncStateStore]):
    """Any state store, blocking: `StateStore(SqliteStateStore("threads.db"))`; use it as a context manager."""

    @property
    def name(self) -> str:
        """What the backend is called in errors."""
        return self.asynchronous.name

    initialize = blocking_method(AsyncStateStore.initialize)
    close = blocking_method(AsyncStateStore.close)
    create_thread = blocking_method(AsyncStateStore.create_thread)
    begin_thread = blocking_method(AsyncStateStore.begin_thread)
    get_thread = blocking_method(AsyncStateStore.get_thread)
    list_threads = blocking_method(AsyncStateStore.list_threads)
    update_thread = blocking_method(AsyncStateStore.update_thread)
    delete_thread = blocking_method(AsyncStateStore.delete_thread)
    append = blocking_method(AsyncStateStore.append)
    events = blocking_method(AsyncStateStore.events)
    find_events = blocking_method(AsyncStateStore.find_events)
    system_events = blocking_method(AsyncStateStore.system_events)
    replace_events = blocking_method(AsyncStateStore.replace_events)
    delete_events = blocking_method(AsyncStateStore.delete_events)
    live = blocking_method(AsyncStateStore.live)
    live_size = blocking_method(AsyncStateStore.live_size)
    fold = blocking_method(AsyncStateStore.fold)
    summaries = blocking_method(AsyncStateStore.summaries)
    unfold = blocking_method(AsyncStateStore.unfold)
    save_document = blocking_method(AsyncStateStore.save_document)
    get_documents = blocking_method(AsyncStateStore.get_documents)
    find_documents = blocking_method(AsyncStateStore.find_documents)
    delete_document = blocking_method(AsyncStateStore.delete_document)
