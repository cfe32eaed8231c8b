"""One figure, and reading many of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MARK = "@@"


@dataclass(frozen=True, slots=True)
class Record:
    """A figure of one system; `ratio` is to the yardstick of the same process, None where there is none."""

    measure: str
    system: str
    memories: int
    value: float
    unit: str
    yardstick: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.yardstick else self.value / self.yardstick


def tell(record: Record) -> None:
    """Hand it to the process that started this one."""
    print(MARK + json.dumps(asdict(record)), flush=True)


def heard(output: str) -> list[Record]:
    lines = [line.removeprefix(MARK) for line in output.splitlines() if line.startswith(MARK)]
    return [Record(**json.loads(line)) for line in lines]


def merged(records: Iterable[Record]) -> list[Record]:
    """One record for each figure: the median of the rounds, in the order in which they first came."""
    rounds: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        rounds.setdefault((record.measure, record.system, record.memories), []).append(record)
    return [_median(each) for each in rounds.values()]


def _median(rounds: Sequence[Record]) -> Record:
    """The round whose ratio is in the middle, whole: value and yardstick of one process belong together."""

    def by(record: Record) -> float:
        return record.value if record.ratio is None else record.ratio

    return sorted(rounds, key=by)[len(rounds) // 2]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1_000


def as_row(record: Record) -> dict[str, Any]:
    return {**asdict(record), "ratio": record.ratio}
