"""Whether the path still leads to the file that was opened."""

from __future__ import annotations

from lamina.databases.sqlite.connection import Location
from lamina.databases.sqlite.failures import BACKEND, translated
from lamina.errors import AdapterError

__all__ = ["OpenedFile"]

_GONE = "Put the file back, or close it and open it again to begin a new file."
_REPLACED = (
    "Put the file back; or close it, remove the -wal and -shm files beside it, which belong to the former "
    "file, and open it again."
)


class OpenedFile:
    """The identity, device and inode, of the file that the connections have open.

    A file that was deleted or replaced stays open, and what is written to it is lost with the last
    connection: SQLite does not notice.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._identity: tuple[int, int] | None = None

    def note(self) -> None:
        """Take what the path leads to now as the file."""
        self._identity = self._look()

    def check(self) -> None:
        """Raise if the path leads to another file, or to none.

        Raises:
            AdapterError: the file is gone or another.
        """
        identity = self._look()
        if identity == self._identity:
            return
        fate, remedy = ("deleted or moved", _GONE) if identity is None else ("replaced by another file", _REPLACED)
        problem = f"{self._location} was {fate} while it was open, so nothing of this call was written"
        raise AdapterError(BACKEND, problem, remedy)

    def _look(self) -> tuple[int, int] | None:
        if self._location.path is None:
            return None
        with translated(str(self._location)):
            try:
                found = self._location.path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return found.st_dev, found.st_ino
