"""Quarantine over all that a kernel keeps: documents of a source, memories from it, and what was made from either."""

from __future__ import annotations

from dataclasses import replace

from lamina.domain.text import check_name
from lamina.errors import MemoryNotFound
from lamina.kernel.parts import Parts
from lamina.memory.quarantining import QuarantineReceipt, source_matcher
from lamina.rag.quarantining import DocumentQuarantine, PutAway, origins_of

__all__ = ["forget_source", "list_quarantined", "quarantine", "release"]


async def quarantine(parts: Parts, source: str | None, prefix: str | None, owner: str | None) -> QuarantineReceipt:
    """See `Kernel.quarantine`. Done again it takes what a failure left."""
    matches = source_matcher(source, prefix)
    heads = await _documents(parts).matching(matches, owner)
    receipt = await parts.memory.quarantine(source=source, prefix=prefix, owner=owner, origins=origins_of(heads))
    put = PutAway(receipt.id, receipt.at, receipt.source)
    return replace(receipt, documents=await _documents(parts).put(heads, put))


async def list_quarantined(parts: Parts, owner: str | None) -> list[QuarantineReceipt]:
    """See `Kernel.quarantined`."""
    acts = {each.id: each for each in await parts.memory.quarantined(owner=owner)}
    for put, document in await _documents(parts).listed(owner):
        acts.setdefault(put.act, QuarantineReceipt(put.act, put.at, put.source)).documents.append(document)
    return sorted(acts.values(), key=lambda act: (act.at, act.id))


async def release(parts: Parts, act: str, owner: str | None) -> list[str]:
    """See `Kernel.release`."""
    documents = await _documents(parts).release(check_name("id", act), owner)
    try:
        memories = await parts.memory.release(act, owner=owner)
    except MemoryNotFound:
        if not documents:
            raise
        memories = []
    return [*memories, *documents]


async def forget_source(
    parts: Parts, source: str | None, prefix: str | None, owner: str | None, *, dry_run: bool
) -> int:
    """See `Kernel.forget_source`. Memories go first: what they were made from is found by the documents."""
    heads = await _documents(parts).matching(source_matcher(source, prefix), owner)
    origins = origins_of(heads)
    memories = await parts.memory.forget_source(
        source=source, prefix=prefix, owner=owner, dry_run=dry_run, origins=origins
    )
    if dry_run:
        return memories + len(heads)
    return memories + sum([await parts.rag.remove(head.id, owner=owner) for head in heads])


def _documents(parts: Parts) -> DocumentQuarantine:
    return DocumentQuarantine(parts.state, parts.memory.tenant)
