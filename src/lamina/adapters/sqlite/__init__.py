"""SQLite: one file, no server, the standard library alone."""

from __future__ import annotations

from lamina.adapters.sqlite.adapter import SqliteAdapter

__all__ = ["SqliteAdapter"]
