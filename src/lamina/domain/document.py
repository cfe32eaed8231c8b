"""What an ingested document is, and a piece of one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

__all__ = ["QUARANTINED", "Document", "RagChunk"]

QUARANTINED: Final = "quarantined"
"""Under this key of a head's options stands by which act the document went into quarantine."""


@dataclass(slots=True)
class Document:
    """The head of an ingested document. Treat it as a value.

    Its chunks are rows of the memory adapter that carry the document's id and a generation; only those
    of the committed `generation` count. `digest` is of the content, `options` are those of the
    chunking: where both are unchanged, ingesting again does nothing.
    """

    id: str
    tenant: str
    source: str
    ingested_at: datetime
    owner: str | None = None
    """None: shared in the tenant."""
    metadata: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    chunks: int = 0
    generation: int = 1

    @property
    def category(self) -> str | None:
        """The metadata's category, if it has one that is text."""
        category = self.metadata.get("category")
        return category if isinstance(category, str) else None

    @property
    def is_quarantined(self) -> bool:
        """Whether its source is in quarantine: then no search gives any of its chunks."""
        return QUARANTINED in self.options

    def replace(self, **changes: Any) -> Document:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(slots=True)
class RagChunk:
    """A retrieved piece of a document; `score` is in [0, 1], higher is better.

    `source_text[start:end] == content` for the text that was ingested. `metadata` is the document's
    with the chunk's own beside it: `headers` (the path of titles above it), `page` where pages are known,
    `table_header` where the chunk begins inside a table.
    """

    id: str
    content: str
    source: str
    score: float
    document_id: str
    chunk_index: int
    start: int
    end: int
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What to show: the content, after the header of the table that it begins inside of."""
        header = self.metadata.get("table_header")
        return f"{header}{self.content}" if isinstance(header, str) else self.content

    def replace(self, **changes: Any) -> RagChunk:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)
