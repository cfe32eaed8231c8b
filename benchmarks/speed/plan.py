"""Which parts a run has, what each may take, and in which order they go.

In a quick run, peers are filled and read from, and that is all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from speed.systems import FTS5, LAMINA

PER_OWNER: Final = {True: 1_000, False: 2_000}
SIZES: Final = {True: (1_000, 10_000, 20_000), False: (1_000, 10_000, 100_000, 1_000_000)}
"""How many memories, for growth; everything else is measured at the last but one."""

MINUTES: Final = {True: 4, False: 40}
"""What a run is planned to take on a quiet machine. After half as much again, it begins nothing more."""

ROUNDS: Final = {True: 1, False: 3}
COLD_ROUNDS: Final = {True: 3, False: 5}
PEERS_FILL: Final = {True: 40, False: 120}
"""Seconds for the writing of a peer."""


@dataclass(frozen=True, slots=True)
class Part:
    """One process. `limit`, in seconds, ends it; what is counted in the budget is `expected`."""

    name: str
    system: str
    memories: int
    seconds: float
    limit: float
    expected: float

    @property
    def title(self) -> str:
        return f"{self.name} {self.system} {self.memories:,}"


@dataclass(frozen=True, slots=True)
class Run:
    """What was asked for. `base` is the size at which systems are compared, `sizes` are those of growth."""

    quick: bool
    sizes: tuple[int, ...]
    base: int
    peers: tuple[str, ...]
    peers_python: Path | None = None

    @property
    def per_owner(self) -> int:
        return PER_OWNER[self.quick]

    @property
    def small(self) -> int:
        """The size for peers that cannot be filled to `base` in their time."""
        return self.sizes[min(1, len(self.sizes) - 1)]


MEASURES: Final = (
    "write",
    "read",
    "cold",
    "memory",
    "import",
    "growth",
    "context",
    "threads",
    "chunking",
    "packs",
    "http",
    "profile",
)


def planned(run: Run, only: tuple[str, ...] = ()) -> list[Part]:
    """The parts in order. Each round of reads has every system once; what needs a store comes after its writing."""
    wanted = set(only or MEASURES)
    systems = (LAMINA, FTS5, *run.peers)
    in_full = systems[:2] if run.quick else systems
    stores = {"read", "cold", "memory", "http", "profile"} & wanted
    parts = [_write(run, system) for system in systems] if stores or "write" in wanted else []
    if "read" in wanted:
        for number in range(ROUNDS[run.quick]):
            parts += [_read(run, system) for system in rotated(systems, number)]
    for _ in range(COLD_ROUNDS[run.quick] if "cold" in wanted else 0):
        parts += [_short(run, "cold", system) for system in in_full]
    for name in ("memory", "import"):
        if name in wanted:
            parts += [_short(run, name, system) for system in in_full]
    if "growth" in wanted:
        parts += _growth(run, has_base=bool(stores or "write" in wanted))
    parts += [_own(run, name) for name in MEASURES[6:] if name in wanted]
    return parts


def rotated(systems: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Another one begins each round."""
    by %= len(systems)
    return systems[by:] + systems[:by]


def _write(run: Run, system: str) -> Part:
    is_peer = system in run.peers
    limit = PEERS_FILL[run.quick] if is_peer else 240
    expected = 2 + run.base / 2_500 if is_peer else 4 + run.base / 4_000
    return Part("write", system, run.base, 0.5 if run.quick else 3, limit, min(limit, expected))


def _read(run: Run, system: str) -> Part:
    seconds = 0.5 if run.quick else 2
    return Part("read", system, run.base, seconds, 90, 2 + (4 if system in run.peers else 7) * seconds)


def _short(run: Run, name: str, system: str) -> Part:
    return Part(name, system, run.base if name != "import" else 0, 2, 60, 2)


def _growth(run: Run, *, has_base: bool) -> list[Part]:
    parts = []
    seconds = 0.7 if run.quick else 3
    for size in run.sizes:
        if size != run.base or not has_base:
            parts.append(Part("grown", LAMINA, size, 0, 60 + size / 1_000, 2 + size / 4_000))
        if size != run.base:
            parts.append(Part("growth", LAMINA, size, seconds, 240, 3 + 8 * seconds + size / 20_000))
    return parts


def _own(run: Run, name: str) -> Part:
    seconds = {"context": 8.0, "threads": 8.0, "http": 5.0}.get(name, 2.0) / (4 if run.quick else 1)
    return Part(name, LAMINA, run.base, seconds, 240, 4 + 3 * seconds)
