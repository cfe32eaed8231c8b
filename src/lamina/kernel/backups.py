"""Backups of all that a kernel keeps in its SQLite file, and how they are restored."""

from __future__ import annotations

import asyncio
import sqlite3
from os import PathLike
from pathlib import Path
from typing import Final

from lamina.adapters.sqlite.migrations import MIGRATIONS, CollectionTables
from lamina.adapters.sqlite.tables import Tables
from lamina.databases.sqlite.backup import Backup, Restoration, back_up, restore
from lamina.databases.sqlite.components import Component
from lamina.errors import Unsupported
from lamina.kernel.stores import database_file
from lamina.settings import LaminaConfig
from lamina.state.sqlite.pack_tables import PACK_COMPONENT, pack_tables
from lamina.state.sqlite.server_tables import COMPONENT as SERVER_COMPONENT
from lamina.state.sqlite.server_tables import server_tables
from lamina.state.sqlite.tables import COMPONENT as STATE_COMPONENT
from lamina.state.sqlite.tables import state_tables

__all__ = ["Backup", "Restoration", "back_up_store", "restore_store"]

_KNOWN: Final = {
    STATE_COMPONENT: state_tables,
    PACK_COMPONENT: pack_tables,
    SERVER_COMPONENT: server_tables,
}


async def back_up_store(config: LaminaConfig, path: str | PathLike[str], *, force: bool = False) -> Backup:
    """Copy the file of these settings, memories, threads, documents, packs and tokens of all tenants, to `path`.

    Others may read and write meanwhile; what they write after the beginning is not in it. It was restored into a
    temporary folder, looked over and compared before this returns. With `force` a file at `path` is replaced.

    Raises:
        Unsupported: what is kept is in no SQLite file, or not all in one; it says how to back it up.
        ConfigError: there is nothing to copy, or a file at `path`.
        StoreDamaged: the file is damaged; no backup was made.
    """
    source = _file(config, "`lamina backup`")
    return await asyncio.to_thread(back_up, source, Path(path), force=force, check=_check_readable)


async def restore_store(config: LaminaConfig, path: str | PathLike[str], *, force: bool = False) -> Restoration:
    """Put the backup at `path` where these settings keep their file; with `force` in the place of one that is there.

    The former file is kept beside it, under a name that is returned. Nothing may have it open.

    Raises:
        Unsupported: what is kept is in no SQLite file, or not all in one; it says how to restore it.
        ConfigError: there is no such backup, or the file is there and `force` is not set.
        StoreDamaged: the backup is damaged, foreign, or of a newer Lamina; nothing was changed.
        AdapterUnavailable: the file is in use; nothing was changed.
    """
    target = _file(config, "`lamina restore`")
    return await asyncio.to_thread(restore, Path(path), target, force=force, check=_check_readable)


def _file(config: LaminaConfig, what: str) -> Path:
    backend = config.memory.adapter_name() or "sqlite"
    if backend == "postgres":
        remedy = (
            "Use PostgreSQL's own: `pg_dump --format=custom --enable-row-security` as a role with BYPASSRLS, or "
            "without that option as the superuser, and `pg_restore` into an empty database."
        )
        raise Unsupported("The postgres backend", what, remedy)
    path = database_file(config)
    if path is None and backend == "sqlite":
        raise Unsupported("A store in memory", what, "Name a place: data_dir, or memory={'path': ...}.")
    if path is None:
        remedy = "Use the backend's own backups, or `lamina export`; the kernel's own file, if it has one, is SQLite."
        raise Unsupported(f"The {backend} backend", what, remedy)
    if config.state_url is not None:
        remedy = "Back the place of `state_url` up by itself; for the file of memories, leave `state_url` out."
        raise Unsupported("A `state_url`, which keeps threads and packs elsewhere,", what, remedy)
    return path.absolute()


def _check_readable(connection: sqlite3.Connection) -> None:
    """Raise if a component in the file is newer than this code."""
    query = "SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"
    if not connection.execute(query).fetchone():
        return
    for (name,) in connection.execute("SELECT component FROM schema_version").fetchall():
        _component(name).check_readable(connection)


def _component(name: str) -> Component:
    known = _KNOWN.get(name)
    return CollectionTables(Tables(name), MIGRATIONS) if known is None else known()
