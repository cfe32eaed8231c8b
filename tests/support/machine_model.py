"""What was asked for and acknowledged, as a careful person would write it down: plain dictionaries, no code of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass
class Row:
    owner: str
    content: str
    expires_at: datetime | None = None
    ttl: timedelta | None = None
    superseded_by: str | None = None
    former: list[str] | None = field(default_factory=list)
    """What it said before each change of that, oldest first; None if that is not known."""


@dataclass
class Talk:
    owner: str
    said: list[str] = field(default_factory=list)
    is_archived: bool = False


@dataclass
class Model:
    """By id or name. What was deleted is not there."""

    memories: dict[str, Row] = field(default_factory=dict)
    threads: dict[str, Talk] = field(default_factory=dict)
    documents: dict[tuple[str, str], str] = field(default_factory=dict)
    packs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By owner: the texts of the owner's one pack, by their ids."""

    def forget(self, id: str) -> None:
        """What it superseded goes to whatever superseded it, or holds again."""
        gone = self.memories.pop(id)
        for row in self.memories.values():
            if row.superseded_by == id:
                row.superseded_by = gone.superseded_by

    def expire(self, now: datetime) -> int:
        """Forget what has expired; how much there was."""
        expired = [id for id, row in self.memories.items() if row.expires_at is not None and row.expires_at <= now]
        for id in expired:
            self.forget(id)
        return len(expired)

    def of(self, owner: str) -> dict[str, Row]:
        return {id: row for id, row in self.memories.items() if row.owner == owner}

    def current(self, owner: str) -> dict[str, Row]:
        return {id: row for id, row in self.of(owner).items() if row.superseded_by is None}
