"""What users keep in the file, version by version: numbered steps for each, forward only.

`docs/file-format.md` tells why each table is as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from lamina.databases.sqlite.connection import Location, connect, create_private
from lamina.databases.sqlite.failures import BACKEND, translated
from lamina.errors import StoreDamaged

__all__ = ["Component", "Step"]

Step: TypeAlias = Callable[[sqlite3.Connection], None]

_UPGRADE: Final = "Use the newest Lamina with this file; it was not changed."

_VERSIONS: Final = """
CREATE TABLE IF NOT EXISTS schema_version (
    component TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID
"""


class Component:
    """One user's part of the file: its tables, at a version of their own.

    Args:
        name: What names it in `schema_version`.
        steps: Step n makes version n out of version n - 1. A step that was released is never changed.
    """

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        self.name = name
        self._steps = tuple(steps)

    def check_readable(self, connection: sqlite3.Connection) -> None:
        """Raise if this code is too old for what the file holds; changes nothing.

        Raises:
            StoreDamaged: it was written by a newer Lamina, or a newer SQLite.
        """
        version = self.version(connection)
        if version > len(self._steps):
            problem = f"{self.name} has the version {version}, and this Lamina knows {len(self._steps)}"
            raise StoreDamaged(BACKEND, problem, _UPGRADE)
        if version:
            self._check_present(connection)

    def check_current(self, connection: sqlite3.Connection) -> None:
        """Raise if another process has migrated it since it was opened here: old code must not write."""
        version = self._noted(connection)
        if version != len(self._steps):
            problem = f"{self.name} has the version {version} now, and this Lamina knows {len(self._steps)}"
            raise StoreDamaged(BACKEND, problem, _UPGRADE)

    def migrate(self, connection: sqlite3.Connection, location: Location, *, backup: bool) -> None:
        """Bring it to the newest version, each step in a transaction that decides anew what is to do.

        Before the first step that changes what exists, the file is copied beside itself, unless
        `backup` is off.

        Raises:
            StoreDamaged: it was written by a newer Lamina; nothing was changed.
        """
        is_saved = not backup
        while True:
            self.check_readable(connection)
            version = self.version(connection)
            if self._is_current(connection, version):
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                if self.version(connection) != version or self._is_current(connection, version):
                    continue  # another process was faster
                if version and not is_saved:
                    self._save_copy(location, version)
                is_saved = True  # or it is being made here, and there is nothing to save
                if version < len(self._steps):
                    self._take_step(connection, version)
                else:
                    self._refresh(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def version(self, connection: sqlite3.Connection) -> int:
        """Its version in the file; 0 if it is not there."""
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
            return 0
        return self._noted(connection)

    def _noted(self, connection: sqlite3.Connection) -> int:
        row = connection.execute("SELECT version FROM schema_version WHERE component = ?", (self.name,)).fetchone()
        return row[0] if row else 0

    def _check_present(self, connection: sqlite3.Connection) -> None:
        """What else can be too new, where it is there at all."""

    def _is_fresh(self, connection: sqlite3.Connection) -> bool:  # noqa: ARG002
        """Whether what it derives from its data, at the newest version, is as this code would derive it."""
        return True

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Derive it anew."""

    def _is_current(self, connection: sqlite3.Connection, version: int) -> bool:
        return version == len(self._steps) and self._is_fresh(connection)

    def _take_step(self, connection: sqlite3.Connection, version: int) -> None:
        connection.execute(_VERSIONS)
        self._steps[version](connection)
        row = (self.name, version + 1)
        connection.execute("INSERT OR REPLACE INTO schema_version (component, version) VALUES (?, ?)", row)

    def _save_copy(self, location: Location, version: int) -> None:
        """Copy the file as it is, whole or not at all, while the caller's lock keeps others from writing."""
        if location.path is None:
            return
        copy = Path(f"{location.path}.{self.name}-v{version}.backup")
        unfinished = Path(f"{copy}.part")
        unfinished.unlink(missing_ok=True)
        create_private(unfinished)
        with (
            translated(str(copy)),
            closing(connect(location, writes=False)) as source,
            closing(sqlite3.connect(unfinished)) as target,
        ):
            source.backup(target)
        unfinished.replace(copy)
