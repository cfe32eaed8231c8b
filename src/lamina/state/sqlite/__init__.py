"""Conversations and heads of documents in an SQLite file."""

from __future__ import annotations

from lamina.state.sqlite.store import SqliteStateStore

__all__ = ["SqliteStateStore"]
