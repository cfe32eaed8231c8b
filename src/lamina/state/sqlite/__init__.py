"""Conversations and heads of documents in an SQLite file, and what server processes share."""

from __future__ import annotations

from lamina.state.sqlite.server_store import SqliteServerStore
from lamina.state.sqlite.store import SqliteStateStore

__all__ = ["SqliteServerStore", "SqliteStateStore"]
