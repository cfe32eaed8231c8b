"""Conversations, heads of documents and Context Packs in an SQLite file, and what server processes share."""

from __future__ import annotations

from lamina.state.sqlite.pack_store import SqlitePackStore
from lamina.state.sqlite.server_store import SqliteServerStore
from lamina.state.sqlite.store import SqliteStateStore

__all__ = ["SqlitePackStore", "SqliteServerStore", "SqliteStateStore"]
