"""SQLite: one file, one writing thread, several readers, any number of users."""

from __future__ import annotations

from lamina.databases.sqlite.database import SqliteDatabase

__all__ = ["SqliteDatabase"]
