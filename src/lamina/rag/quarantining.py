"""Taking documents of a source out of every search, and putting them back: their chunks stay as they are.

The head says that it is away, under a key of its options, and the next ingestion of the source takes that over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.domain.document import QUARANTINED, Document
from lamina.errors import Conflict
from lamina.ports.state_store import StateStore
from lamina.rag.chunk_rows import chunk_id
from lamina.rag.heads import editions_of

__all__ = ["DocumentQuarantine", "PutAway", "origins_of"]

ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class PutAway:
    """The act by which a document went into quarantine: its id, when it was, and which sources it named."""

    act: str
    at: datetime
    source: str


class DocumentQuarantine:
    """The documents of one tenant that are, or are not, in quarantine."""

    def __init__(self, store: StateStore, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def matching(self, matches: Callable[[str], bool], owner: str | None) -> list[Document]:
        """The documents, with an owner that owner's own, whose source is one of these."""
        return [head for head in await self._own(owner) if matches(head.source)]

    async def put(self, heads: Sequence[Document], act: PutAway) -> list[str]:
        """Take the documents out; the ids of those that were not out before."""
        mark = {"act": act.act, "at": act.at.isoformat(), "source": act.source}

        def marked(head: Document) -> dict[str, Any] | None:
            return None if head.is_quarantined else {**head.options, QUARANTINED: mark}

        return [head.id for head in heads if await self._change(head, marked)]

    async def listed(self, owner: str | None) -> list[tuple[PutAway, str]]:
        """What is in quarantine: the act, and the id of the document."""
        found = ((read_mark(head), head.id) for head in await self._own(owner) if head.is_quarantined)
        return [(act, id) for act, id in found if act is not None]

    async def release(self, act: str, owner: str | None) -> list[str]:
        """Put back what the act took out; the ids of that."""

        def unmarked(head: Document) -> dict[str, Any] | None:
            own = read_mark(head)
            if own is None or own.act != act:
                return None
            return {key: value for key, value in head.options.items() if key != QUARANTINED}

        return [head.id for head in await self._own(owner) if await self._change(head, unmarked)]

    async def _own(self, owner: str | None) -> list[Document]:
        return await self._store.find_documents(self._tenant, owner=owner, include_shared=owner is None)

    async def _change(self, head: Document, options: Callable[[Document], dict[str, Any] | None]) -> bool:
        """Give the document these options, as it is now; False if it has none to be given, or is gone."""
        for _ in range(ATTEMPTS):
            changed = options(head)
            if changed is None:
                return False
            new = head.replace(options=changed, generation=head.generation + 1)
            if await self._store.save_document(new, expected_generation=head.generation):
                return True
            found = await self._store.get_documents(self._tenant, [head.id])
            if not found:
                return False
            head = found[0]
        raise Conflict(f"The document {head.id!r}", f"it changed {ATTEMPTS} times while its quarantine changed")


def read_mark(head: Document) -> PutAway | None:
    """The act that took it out; None if it is not out."""
    mark = head.options.get(QUARANTINED)
    if not isinstance(mark, Mapping):
        return None
    return PutAway(str(mark.get("act")), datetime.fromisoformat(str(mark.get("at"))), str(mark.get("source")))


def origins_of(heads: Sequence[Document]) -> list[str]:
    """What `derived_from` of a memory may name if it was made from one of these: the document, or a chunk."""
    editions = (each for head in heads for each in editions_of(head))
    chunks = (chunk_id(name, index) for name, count in editions for index in range(count))
    return [*(head.id for head in heads), *chunks]
