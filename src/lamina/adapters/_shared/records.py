"""What passes between the write logic that backends share and a backend's own reads and commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina.domain.memory import MemoryEntry

__all__ = ["Change", "Commit", "Control", "ControlChange", "Stale", "Stored", "TooLarge"]


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it was read, with its embedding, and a mark that is another one after every write of it."""

    entry: MemoryEntry
    version: Any


@dataclass(frozen=True, slots=True)
class Control:
    """A small text kept beside the memories of a tenant, with a mark that is another one after every write."""

    value: str
    version: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one entry, if it is still what it was worked out from."""

    id: str
    old: Stored | None
    """What was read; None for nothing."""
    new: MemoryEntry | None
    """What is to be there; None for nothing. Its `seq` and `revision` are final."""
    past: tuple[MemoryEntry, ...] = ()
    """Former versions to add to its history, oldest first, without embeddings."""
    forgets: bool = False
    """Whether the history that is stored goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChange:
    """What becomes of a control, if it is still what was read."""

    key: str
    old: Control | None
    value: str | None
    """None: it stays, and only must not have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Changes of one tenant that belong together."""

    tenant: str
    changes: tuple[Change, ...]
    controls: tuple[ControlChange, ...] = ()


class Stale(Exception):
    """Something that the commit was worked out from is no longer what is stored; nothing was written."""


class TooLarge(Exception):
    """The commit is more than the backend takes at once; nothing was written, and its parts may fit."""
