"""Memories in PostgreSQL, with pgvector where it is installed."""

from __future__ import annotations

import lamina.databases.postgres  # noqa: F401 - says which extra is missing, before anything else here needs it
from lamina.adapters.postgres.adapter import PostgresAdapter

__all__ = ["PostgresAdapter"]
