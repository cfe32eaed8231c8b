"""What adapters are told: options that mean the same are checked in the same way, and refused in the same words."""

from __future__ import annotations

import re
from typing import Final, TypeVar

from lamina.domain.validation import check_whole_number
from lamina.errors import ConfigError, InvalidInput

__all__ = ["DEFAULT_TABLE", "check_count", "check_seconds", "checked_table", "one_of"]

T = TypeVar("T")

DEFAULT_TABLE: Final = "lamina_memories"

_TABLE: Final = re.compile(r"[A-Za-z0-9_]{1,63}")
_LONGEST: Final = 86_400
"""Seconds: a day."""


def checked_table(table: object, *, shortest: int = 1, letter_first: bool = False, **alias: object) -> str:
    """The collection's name.

    `alias` is the backend's own word for it, with what was given under that; the default of `table` gives way to it.

    Raises:
        ConfigError: it can name no collection, or both are given and differ. The field is the one that was given.
    """
    field = "table"
    for name, other in alias.items():
        if other is not None:
            if table not in (DEFAULT_TABLE, other):
                raise _contradicts(name, field)
            field, table = name, other
    if not isinstance(table, str) or not _is_name(table, shortest, letter_first=letter_first):
        first = ", a letter first" if letter_first else ""
        remedy = f"Use {shortest} to 63 ASCII letters, digits and underscores{first}."
        raise ConfigError(field, f"{table!r:.80} cannot name a collection", remedy)
    return table


def one_of(name: str, value: T | None, **alias: T | None) -> T | None:
    """The value of an option that goes by another name too.

    Raises:
        ConfigError: it is given under both, and they differ.
    """
    for other_name, other in alias.items():
        if value is not None and other is not None and value != other:
            raise _contradicts(other_name, name)
        value = other if value is None else value
    return value


def check_seconds(*, least: float = 0.001, **options: object) -> None:
    """Refuse what is no number of seconds, of a day at most.

    Raises:
        ConfigError: one is not.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _LONGEST:
            problem = f"must be from {least} to {_LONGEST} seconds, not {value!r:.50}"
            raise ConfigError(name, problem, "Give such a number.")


def check_count(name: str, value: object, most: int, *, least: int = 1) -> None:
    """Refuse what is no whole number in that range.

    Raises:
        ConfigError: it is not.
    """
    try:
        check_whole_number(name, value, least, most)
    except InvalidInput as error:
        raise ConfigError(error.field, error.problem, error.remedy) from None


def _is_name(table: str, shortest: int, *, letter_first: bool) -> bool:
    return bool(_TABLE.fullmatch(table)) and len(table) >= shortest and (not letter_first or table[0].isalpha())


def _contradicts(alias: str, name: str) -> ConfigError:
    return ConfigError(alias, f"is another name for {name}, and not what that says", "Give one of them.")
