"""Which state store, store of packs and server store a place names."""

from __future__ import annotations

from os import PathLike
from typing import Any, Final

from lamina.errors import ConfigError, InvalidType
from lamina.ports.pack_store import PackStore
from lamina.ports.server_store import ServerStore
from lamina.ports.state_store import StateStore

__all__ = ["open_pack_store", "open_server_store", "open_state", "open_stores"]

_SQLITE: Final = "sqlite"
_POSTGRES: Final = ("postgresql", "postgres")
_KNOWN: Final = (
    "Give the path of a file, sqlite:///path, :memory: for nothing that stays, or "
    "postgresql://user:password@host:port/database."
)


def open_state(place: str | PathLike[str], **options: Any) -> StateStore:
    """The state store at a place; enter it with `async with`, or call its `initialize` and `close`.

    A path, or `sqlite:///` before one, is a file of SQLite: after the three slashes a relative path
    begins at once, an absolute one with a fourth slash. `:memory:` is kept nowhere. `postgresql://` and
    `postgres://` are a database of PostgreSQL. `options` are those of `SqliteStateStore` or
    `PostgresStateStore`.

    Raises:
        ConfigError: the place is of no kind that is known, or cannot be one.
        MissingExtra: it is PostgreSQL, and `lamina[postgres]` is not installed.
    """
    path = _file_of(place)
    if path is not None:
        from lamina.state.sqlite import SqliteStateStore

        return SqliteStateStore(path, **options)
    from lamina.state.postgres import PostgresStateStore

    return PostgresStateStore(str(place), **options)


def open_server_store(place: str | PathLike[str], **options: Any) -> ServerStore:
    """The server store at a place, which may be that of a state store; the rest is as for `open_state`."""
    path = _file_of(place)
    if path is not None:
        from lamina.state.sqlite import SqliteServerStore

        return SqliteServerStore(path, **options)
    from lamina.state.postgres import PostgresServerStore

    return PostgresServerStore(str(place), **options)


def open_pack_store(place: str | PathLike[str], **options: Any) -> PackStore:
    """The store of packs at a place, which may be that of a state store; the rest is as for `open_state`."""
    path = _file_of(place)
    if path is not None:
        from lamina.state.sqlite import SqlitePackStore

        return SqlitePackStore(path, **options)
    from lamina.state.postgres import PostgresPackStore

    return PostgresPackStore(str(place), **options)


def open_stores(place: str | PathLike[str]) -> tuple[StateStore, PackStore, ServerStore]:
    """All stores at a place, over one file that is opened once, or the same connections; raises as `open_state`."""
    path = _file_of(place)
    if path is not None:
        from lamina.databases.sqlite import SqliteDatabase
        from lamina.state.sqlite import SqlitePackStore, SqliteServerStore, SqliteStateStore

        file = SqliteDatabase(path)
        return SqliteStateStore(database=file), SqlitePackStore(database=file), SqliteServerStore(database=file)
    from lamina.databases.postgres import PostgresDatabase
    from lamina.state.postgres import PostgresPackStore, PostgresServerStore, PostgresStateStore

    database = PostgresDatabase(str(place))
    return (
        PostgresStateStore(database=database),
        PostgresPackStore(database=database),
        PostgresServerStore(database=database),
    )


def _file_of(place: str | PathLike[str]) -> str | PathLike[str] | None:
    """The path of a file of SQLite; None if the place is a database of PostgreSQL."""
    if not isinstance(place, str | PathLike):
        raise InvalidType("state_url", f"must be text or a path, not {type(place).__name__}", _KNOWN)
    if not isinstance(place, str) or "://" not in place:
        return place
    scheme, _, rest = place.partition("://")
    if scheme.lower() == _SQLITE:
        if len(rest) < 2 or not rest.startswith("/"):  # noqa: PLR2004 - a slash, and something
            raise ConfigError("state_url", "names no file after sqlite:///", _KNOWN)
        return rest[1:]
    if scheme in _POSTGRES:
        return None
    raise ConfigError("state_url", f"has the scheme {scheme!r:.50}, which is none of those known", _KNOWN)
