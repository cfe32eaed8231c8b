"""State stores: threads, messages, summaries, heads of documents; and those of packs."""

from __future__ import annotations

from lamina.state.opening import open_pack_store, open_server_store, open_state

__all__ = ["open_pack_store", "open_server_store", "open_state"]
