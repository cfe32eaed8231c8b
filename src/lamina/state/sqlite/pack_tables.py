"""The tables of the packs, version by version."""

from __future__ import annotations

import sqlite3
from typing import Final

from lamina.databases.sqlite.components import Component, Step
from lamina.state.sqlite.tables import create_tables

__all__ = ["PACK_COMPONENT", "PACK_STEPS", "pack_tables"]

PACK_COMPONENT: Final = "lamina_packs_state"
_NAMES: Final = (
    "lamina_pack_heads lamina_pack_names_of_owners lamina_pack_names_shared lamina_pack_vectors lamina_pack_memories "
    "lamina_pack_memories_in_order lamina_pack_memories_by_access lamina_pack_memories_names lamina_pack_memories_due "
    "lamina_pack_memories_unprojected lamina_pack_relations lamina_pack_relations_by_target lamina_pack_originals"
).split()


def _create_packs(connection: sqlite3.Connection) -> None:
    create_tables(connection, "packs_001_tables.sql", _NAMES)


PACK_STEPS: Final[tuple[Step, ...]] = (_create_packs,)
"""Step n makes version n out of version n - 1. A step that was released is never changed."""


def pack_tables(steps: tuple[Step, ...] = PACK_STEPS) -> Component:
    """The packs as a user of the file."""
    return Component(PACK_COMPONENT, steps)
