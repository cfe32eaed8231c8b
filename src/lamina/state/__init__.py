"""State stores: threads, messages, summaries, heads of documents."""

from __future__ import annotations

from lamina.state.opening import open_server_store, open_state

__all__ = ["open_server_store", "open_state"]
