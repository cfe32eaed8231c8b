"""Threads, messages, summaries and heads of documents in PostgreSQL."""

from __future__ import annotations

from lamina.state.postgres.store import PostgresStateStore

__all__ = ["PostgresStateStore"]
