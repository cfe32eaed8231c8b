"""The tables of the server's state, version by version."""

from __future__ import annotations

import json
import sqlite3
from importlib.resources import files
from typing import Final

from lamina.databases.sqlite.components import Component, Step
from lamina.errors import ConfigError

__all__ = ["COMPONENT", "STEPS", "server_tables"]

COMPONENT: Final = "lamina_server"
_NAMES: Final = (
    "lamina_server_tokens lamina_server_tokens_by_age lamina_server_tokens_by_tenant lamina_server_requests "
    "lamina_server_requests_by_age lamina_server_leases lamina_server_tenants"
).split()


def _create_tables(connection: sqlite3.Connection) -> None:
    query = "SELECT name FROM sqlite_master WHERE name COLLATE NOCASE IN (SELECT value FROM json_each(?))"
    taken = connection.execute(query, (json.dumps(_NAMES),)).fetchone()
    if taken:
        remedy = "Give the collection of memories that has this name another one, or the state a file of its own."
        raise ConfigError("path", f"the file has {taken[0]} for something else", remedy)
    text = files("lamina.state.sqlite").joinpath("001_server_tables.sql").read_text("utf-8")
    for statement in text.split(";\n"):
        if statement.strip():
            connection.execute(statement)


STEPS: Final[tuple[Step, ...]] = (_create_tables,)
"""Step n makes version n out of version n - 1. A step that was released is never changed."""


def server_tables(steps: tuple[Step, ...] = STEPS) -> Component:
    """The server's state as a user of the file."""
    return Component(COMPONENT, steps)
