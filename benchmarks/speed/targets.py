"""What Lamina is meant to reach: each line of the table, and whether the figures of a run reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from speed.records import Record
from speed.systems import LAMINA


class Reached(Enum):
    AIM = "aim reached"
    LEAST = "at least reached"
    NO = "NOT REACHED"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """`least` must be met, `aim` is the goal; both bound the record's ratio, or its value where there is a unit.

    `memories` is the size that it is meant for.
    """

    line: str
    measure: str
    least: float
    aim: float
    unit: str = ""
    is_rate: bool = False
    memories: int = 100_000

    def figure(self, record: Record) -> float | None:
        return record.value if self.unit else record.ratio

    def meets(self, figure: float, bound: float) -> bool:
        return figure >= bound if self.is_rate else figure <= bound

    def reached(self, record: Record | None) -> Reached:
        figure = None if record is None else self.figure(record)
        if figure is None:
            return Reached.UNMEASURED
        if self.meets(figure, self.aim):
            return Reached.AIM
        return Reached.LEAST if self.meets(figure, self.least) else Reached.NO

    def told(self, figure: float) -> str:
        """The figure with its unit: a ratio has a times sign."""
        digits = f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
        return f"{digits} {'' if self.unit == 'x' else self.unit}".strip() if self.unit else f"{digits} ×"  # noqa: RUF001


MILLION: Final = 1_000_000
CONTEXT: Final = 10_000
LONG: Final = 5_000
TARGETS: Final = (
    Target("scoped recall, vector, over numpy", "scoped vector", 2.5, 1.2),
    Target("scoped hybrid recall, over numpy", "scoped hybrid", 8, 4),
    Target("unscoped vector recall, over numpy", "unscoped vector", 0.5, 0.3),
    Target("its recall@10", "recall@10 of unscoped vector", 0.999, 1.0, unit="x", is_rate=True),
    Target("recall@10 of scoped vector recall", "recall@10 of scoped vector", 1.0, 1.0, unit="x", is_rate=True),
    Target("unscoped hybrid recall, over numpy", "unscoped hybrid", 2, 0.5),
    Target("1,000,000 over 100,000, scoped vector", "growth: scoped vector", 1.1, 1.1, memories=MILLION),
    Target("1,000,000 over 100,000, scoped hybrid", "growth: scoped hybrid", 4, 1.4, memories=MILLION),
    Target("1,000,000, unscoped vector, over numpy", "growth: unscoped vector", 0.3, 0.2, memories=MILLION),
    Target("1,000,000, unscoped hybrid", "growth: unscoped hybrid", 250, 40, unit="ms", memories=MILLION),
    Target("durable add, over a commit", "durable add", 2, 1.4),
    Target("16 adders at once, each over a commit", "16 adders, per add", 0.4, 0.2),
    Target("batch add, of plain SQLite's rows", "batch add", 0.35, 0.5, is_rate=True),
    Target("open to first scoped answer, evicted", "open to first answer", 30, 15, unit="ms"),
    Target("import lamina beyond numpy", "import beyond numpy", 60, 30, unit="ms", memories=0),
    Target("resident per 100,000, all scopes", "resident, all scopes, per 100,000", 70, 50, unit="MiB"),
    Target("resident per 100,000, one scope", "resident, one scope, per 100,000", 10, 5, unit="MiB"),
    Target("disk over raw", "disk over raw", 1.8, 1.5, unit="x"),
    Target("compute a full context, thread of 5,000", "context, thread of 5,000", 12, 6, unit="ms", memories=CONTEXT),
    Target("add to a thread of 5,000 under tiers", "add to a thread of 5,000", 2, 1, unit="ms", memories=LONG),
    Target("recall over HTTP, two workers", "recall over HTTP, 2 workers", 800, 1_500, unit="requests/s", is_rate=True),
    Target("its p99", "recall over HTTP, 2 workers, p99", 25, 25, unit="ms"),
    Target("recall over HTTP beyond the call", "recall over HTTP beyond the call", 3, 3, unit="ms"),
)


def record_for(target: Target, records: Sequence[Record]) -> Record | None:
    """Lamina's record of the target's measure, of the largest size that was measured."""
    own = [record for record in records if record.system == LAMINA and record.measure == target.measure]
    return max(own, key=lambda record: record.memories, default=None)


def lines(records: Sequence[Record]) -> list[list[str]]:
    """The table: line, measured, at least, aim, and whether it is reached; at another size than meant, at which."""
    return [_line(target, record_for(target, records)) for target in TARGETS]


def _line(target: Target, record: Record | None) -> list[str]:
    figure = None if record is None else target.figure(record)
    sign = "≥" if target.is_rate else "≤"
    measured = "" if figure is None else target.told(figure)
    said = target.reached(record).value
    if record is not None and figure is not None and record.memories != target.memories:
        said = f"at {record.memories:,} only: {said}"
    return [target.line, measured, f"{sign} {target.told(target.least)}", f"{sign} {target.told(target.aim)}", said]
