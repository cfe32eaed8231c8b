"""What was written and need not be visible yet.

Pinecone's index follows its writes after a while. A write says which number in the log of its
namespace it has, and a query up to which number the index has come. Until it has come to a write,
that write is remembered here, and every read takes it from here instead of from the index: so an
adapter sees what it wrote, at once, and never what was there before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from lamina.adapters.pinecone.rows import Record

__all__ = ["RecentWrites"]


class RecentWrites:
    """Records, or None for what was removed, by namespace and id, until the index shows them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes: dict[str, dict[str, tuple[int, Record | None]]] = {}

    def add(self, namespace: str, number: int, records: Iterable[Record], removed: Iterable[str] = ()) -> None:
        """Remember what the write of this number in the log did."""
        written: dict[str, Record | None] = {record.id: record for record in records}
        written.update(dict.fromkeys(removed))
        with self._lock:
            known = self._writes.setdefault(namespace, {})
            for id, record in written.items():
                if id not in known or known[id][0] < number:
                    known[id] = (number, record)

    def forget(self, namespace: str, indexed: int) -> None:
        """Forget what the index shows, since it has come to this number."""
        with self._lock:
            known = self._writes.get(namespace, {})
            left = {id: write for id, write in known.items() if write[0] > indexed}
            if left:
                self._writes[namespace] = left
            else:
                self._writes.pop(namespace, None)

    def of(self, namespace: str) -> Mapping[str, Record | None]:
        """What is remembered of the namespace; the mapping is the caller's."""
        with self._lock:
            return {id: record for id, (_, record) in self._writes.get(namespace, {}).items()}

    def oldest(self) -> str | None:
        """The namespace that is remembered longest."""
        with self._lock:
            return next(iter(self._writes), None)

    def __len__(self) -> int:
        """How many writes are remembered in all."""
        with self._lock:
            return sum(map(len, self._writes.values()))
