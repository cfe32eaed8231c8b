"""The tables of the state, version by version."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from lamina.databases.sqlite.components import Component, Step
from lamina.errors import ConfigError

__all__ = ["COMPONENT", "STEPS", "create_tables", "state_tables"]

COMPONENT: Final = "lamina_state"
_NAMES: Final = (
    "lamina_threads lamina_threads_by_activity lamina_threads_by_owner lamina_messages lamina_messages_of_system "
    "lamina_summaries lamina_documents lamina_documents_by_source lamina_documents_by_owner"
).split()


def create_tables(connection: sqlite3.Connection, script: str, names: Sequence[str]) -> None:
    """Make the tables of a script that is beside this module, under names that are free.

    Raises:
        ConfigError: the file has one of the names for something else.
    """
    query = "SELECT name FROM sqlite_master WHERE name COLLATE NOCASE IN (SELECT value FROM json_each(?))"
    taken = connection.execute(query, (json.dumps(list(names)),)).fetchone()
    if taken:
        remedy = "Give the collection of memories that has this name another one, or the state a file of its own."
        raise ConfigError("path", f"the file has {taken[0]} for something else", remedy)
    text = files("lamina.state.sqlite").joinpath(script).read_text("utf-8")
    for statement in text.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _create_state(connection: sqlite3.Connection) -> None:
    create_tables(connection, "001_tables.sql", _NAMES)


STEPS: Final[tuple[Step, ...]] = (_create_state,)
"""Step n makes version n out of version n - 1. A step that was released is never changed."""


def state_tables(steps: tuple[Step, ...] = STEPS) -> Component:
    """The state as a user of the file."""
    return Component(COMPONENT, steps)
