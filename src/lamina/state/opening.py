"""Which state store a place names."""

from __future__ import annotations

from os import PathLike
from typing import Any, Final

from lamina.errors import ConfigError, InvalidType
from lamina.ports.state_store import StateStore

__all__ = ["open_state"]

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
    if not isinstance(place, str | PathLike):
        raise InvalidType("state_url", f"must be text or a path, not {type(place).__name__}", _KNOWN)
    if not isinstance(place, str) or "://" not in place:
        return _sqlite(place, options)
    scheme, _, rest = place.partition("://")
    if scheme.lower() == _SQLITE:
        if len(rest) < 2 or not rest.startswith("/"):  # noqa: PLR2004 - a slash, and something
            raise ConfigError("state_url", "names no file after sqlite:///", _KNOWN)
        return _sqlite(rest[1:], options)
    if scheme in _POSTGRES:
        from lamina.state.postgres import PostgresStateStore

        return PostgresStateStore(place, **options)
    raise ConfigError("state_url", f"has the scheme {scheme!r:.50}, which is none of those known", _KNOWN)


def _sqlite(path: str | PathLike[str], options: dict[str, Any]) -> StateStore:
    from lamina.state.sqlite import SqliteStateStore

    return SqliteStateStore(path, **options)
