"""The codes of partitions that were searched before, kept in memory up to a budget.

What is kept of a partition is right as long as its state in the file is the same: whoever changes its vectors, in
this process or another, gives it another one. The partitions that were searched last stay.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KEPT_BYTES", "Codes", "KeptCodes"]

KEPT_BYTES: Final = 64 * 1024 * 1024
"""160,000 vectors of 384 numbers."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A partition's vectors: those that stand in blocks by their codes, the others scaled to length 1."""

    state: int
    keys: NDArray[np.int64]
    codes: NDArray[np.int8]
    steps: NDArray[np.float32]
    differences: NDArray[np.float32]
    loose_keys: NDArray[np.int64]
    loose: NDArray[np.float32]

    @property
    def size(self) -> int:
        """In bytes."""
        parts = (self.keys, self.codes, self.steps, self.differences, self.loose_keys, self.loose)
        return sum(part.nbytes for part in parts)


class KeptCodes:
    """The codes of the partitions that were searched last, for any number of threads.

    Args:
        budget: How many bytes they may take together; what is too large for it is not kept.
    """

    def __init__(self, budget: int = KEPT_BYTES) -> None:
        self.budget = budget
        self._by_partition: OrderedDict[int, Codes] = OrderedDict()
        self._size = 0
        self._changing = threading.Lock()

    @property
    def size(self) -> int:
        """In bytes."""
        return self._size

    def get(self, partition: int, state: int) -> Codes | None:
        """What is kept of the partition, if that is right for this state."""
        with self._changing:
            codes = self._by_partition.get(partition)
            if codes is None or codes.state != state:
                return None
            self._by_partition.move_to_end(partition)
            return codes

    def put(self, partition: int, codes: Codes) -> None:
        """Keep them in place of what was kept of the partition; what was not used for longest goes."""
        with self._changing:
            former = self._by_partition.pop(partition, None)
            self._size -= 0 if former is None else former.size
            if codes.size > self.budget:
                return
            self._by_partition[partition] = codes
            self._size += codes.size
            while self._size > self.budget:
                _, oldest = self._by_partition.popitem(last=False)
                self._size -= oldest.size

    def clear(self) -> None:
        """Keep nothing."""
        with self._changing:
            self._by_partition.clear()
            self._size = 0
