"""The chart of a run: Lamina and the others, each measure on an axis of its own scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speed.records import Record
from speed.systems import LAMINA
from speed.targets import TARGETS

PANELS = (
    "scoped vector",
    "scoped hybrid",
    "unscoped vector",
    "unscoped hybrid",
    "durable add",
    "batch add",
    "open to first answer",
    "resident, all scopes, per 100,000",
    "disk over raw",
)
COLUMNS = 3
GROWTH = ("growth: scoped vector", "growth: scoped text", "growth: scoped hybrid")


def draw(path: Path, records: Sequence[Record]) -> bool:
    """Write the PNG; False where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    measured = {record.measure for record in records}
    panels = [measure for measure in PANELS if measure in measured]
    has_growth = not measured.isdisjoint(GROWTH)
    rows = max(1, math.ceil((len(panels) + has_growth) / COLUMNS))
    figure = Figure(figsize=(5 * COLUMNS, 3.2 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("dashed: what Lamina is to reach at least (red), and its aim (green)")
    axes = list(figure.subplots(rows, COLUMNS).flat)
    for axis, measure in zip(axes, panels, strict=False):
        _bars(axis, measure, records)
    if has_growth:
        _growth(axes[len(panels)], records)
    for axis in axes[len(panels) + has_growth :]:
        axis.set_axis_off()
    figure.savefig(path, dpi=110)
    return True


def _bars(axis: Any, measure: str, records: Sequence[Record]) -> None:
    own = [record for record in records if record.measure == measure and _figure(record) > 0]
    own.sort(key=_figure)
    axis.set_title(measure, fontsize=10)
    axis.barh(
        [record.system for record in own],
        [_figure(record) for record in own],
        color=["tab:orange" if record.system == LAMINA else "tab:gray" for record in own],
    )
    axis.set_xscale("log")
    axis.set_xlabel("over the yardstick" if own and own[0].ratio is not None else own[0].unit if own else "")
    for target in TARGETS:
        if target.measure == measure:
            axis.axvline(target.least, color="tab:red", linestyle="--", linewidth=1)
            axis.axvline(target.aim, color="tab:green", linestyle="--", linewidth=1)


def _growth(axis: Any, records: Sequence[Record]) -> None:
    axis.set_title("growth: scoped recall, over the size compared at", fontsize=10)
    for measure in GROWTH:
        own = sorted((record.memories, record.ratio or 1.0) for record in records if record.measure == measure)
        axis.plot([memories for memories, _ in own], [ratio for _, ratio in own], marker="o", label=measure[8:])
    axis.set_xscale("log")
    axis.set_xlabel("memories")
    axis.legend()


def _figure(record: Record) -> float:
    return record.value if record.ratio is None else record.ratio
