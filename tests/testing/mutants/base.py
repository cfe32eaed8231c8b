"""What the mutants are made of."""

from typing import ClassVar

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.ports.memory_adapter import Capability


class Mutant(InMemoryAdapter):
    """An adapter with a bug; `caught_by` names tests of the contract that fail on it, one a word."""

    caught_by: ClassVar[str]


class Spoils(Mutant):
    """Keeps something else than it is given."""

    def spoil(self, entry: MemoryEntry) -> MemoryEntry:
        raise NotImplementedError

    def _write(self, old, entry, *, is_history=True):
        super()._write(old, self.spoil(entry), is_history=is_history)


class Misreads(Mutant):
    """Lets other entries pass than the scope and the filter do."""

    def admits(self, scope, filter: MemoryFilter, entry: MemoryEntry) -> bool:
        raise NotImplementedError

    def _admitted(self, scope, filter, *, after=0):
        rows = self._tenant(scope).rows.values()
        return (row for row in rows if row.entry.seq > after and self.admits(scope, filter, row.entry))


def without(*capabilities: Capability) -> frozenset[Capability]:
    return InMemoryAdapter.capabilities - frozenset(capabilities)
