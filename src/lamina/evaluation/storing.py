"""A labelled set as memories: what a user would tell the engine of each document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeAlias

from lamina.errors import ProviderError
from lamina.evaluation.dataset import Dataset, Document
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput

__all__ = ["Progress", "memory_input", "store_documents"]

BATCH: Final = 64
"""Few enough for an embedder to answer in time."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told the step, how many are done, and of how many."""


def memory_input(document: Document) -> MemoryInput:
    """The document as a memory: its group as namespace, and of its conversation, speaker and date what is known."""
    return MemoryInput(
        content=document.text,
        namespace=document.group,
        source=document.source,
        metadata=None if document.speaker is None else {"speaker": document.speaker},
        occurred_at=document.occurred_at,
    )


async def store_documents(dataset: Dataset, engine: MemoryEngine, tell: Progress) -> dict[str, list[str]]:
    """Store them in order; which documents each memory stands for, several where they say the same.

    Raises:
        ProviderError: some of them got no vector, even when they were embedded again.
    """
    stored: dict[str, list[str]] = defaultdict(list)
    documents = dataset.documents
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        ids = await engine.store_many(memory_input(each) for each in batch)
        for document, id in zip(batch, ids, strict=True):
            stored[str(id)].append(document.id)
        tell("store", min(start + BATCH, len(documents)), len(documents))
    if engine.embedder is not None and (failed := (await engine.reembed_missing()).failed):
        raise ProviderError("The embedder", f"it gave {failed} documents no vector", "Run it again with --cache.")
    return stored
