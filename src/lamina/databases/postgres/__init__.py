"""PostgreSQL, 14 or newer: connections that several stores share, and the migrations of their schemas."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import psycopg as _psycopg  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] not in {"psycopg", "psycopg_binary"}:
        raise
    raise MissingExtra("PostgreSQL", "postgres") from error  # or it is there, without the library that it wraps

from lamina.databases.postgres.database import PostgresDatabase

__all__ = ["PostgresDatabase"]
