"""What was read of partitions that were searched before, codes and words, kept in memory up to a budget.

What is kept of a partition is right as long as its state in the file is the same: whoever changes its vectors or
texts, in this process or another, gives it another one. The partitions that were searched last stay.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KEPT_BYTES", "Codes", "Kept", "Key"]

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


class Part(Protocol):
    """What is kept of a partition."""

    @property
    def state(self) -> int:
        """Of the partition, when it was read."""
        ...

    @property
    def size(self) -> int:
        """In bytes."""
        ...


Key: TypeAlias = tuple[Literal["codes", "words"], int]
"""Of what, of which partition."""


class Kept:
    """What was read of the partitions that were searched last, for any number of threads.

    Args:
        budget: How many bytes they may take together; what is too large for it is not kept.
    """

    def __init__(self, budget: int = KEPT_BYTES) -> None:
        self.budget = budget
        self._parts: OrderedDict[Key, Part] = OrderedDict()
        self._size = 0
        self._changing = threading.Lock()

    @property
    def size(self) -> int:
        """In bytes."""
        return self._size

    def get(self, key: Key, state: int) -> Part | None:
        """What is kept, if that is right for this state of the partition."""
        with self._changing:
            part = self._parts.get(key)
            if part is None or part.state != state:
                return None
            self._parts.move_to_end(key)
            return part

    def put(self, key: Key, part: Part) -> None:
        """Keep it in place of what was kept there; what was not used for longest goes."""
        with self._changing:
            former = self._parts.pop(key, None)
            self._size -= 0 if former is None else former.size
            if part.size > self.budget:
                return
            self._parts[key] = part
            self._size += part.size
            while self._size > self.budget:
                _, oldest = self._parts.popitem(last=False)
                self._size -= oldest.size

    def clear(self) -> None:
        """Keep nothing."""
        with self._changing:
            self._parts.clear()
            self._size = 0
