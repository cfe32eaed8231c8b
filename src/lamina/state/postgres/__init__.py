"""Conversations, heads of documents and Context Packs in a PostgreSQL database: `pip install 'lamina[postgres]'`."""

from __future__ import annotations

from lamina.state.postgres.pack_store import PostgresPackStore
from lamina.state.postgres.store import PostgresStateStore

__all__ = ["PostgresPackStore", "PostgresStateStore"]
