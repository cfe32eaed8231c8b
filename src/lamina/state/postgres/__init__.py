"""Conversations, heads of documents and Context Packs in a PostgreSQL database, and what server processes share."""

from __future__ import annotations

from lamina.state.postgres.pack_store import PostgresPackStore
from lamina.state.postgres.server_store import PostgresServerStore
from lamina.state.postgres.store import PostgresStateStore

__all__ = ["PostgresPackStore", "PostgresServerStore", "PostgresStateStore"]
