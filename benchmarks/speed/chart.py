"""The chart of a run: Lamina and the others, each measure on an axis of its own scale."""

from __future__ import annotations

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
GROWTH = ("growth: scoped vector", "growth: scoped text", "growth: scoped hybrid")


def draw(path: Path, records: Sequence[Record]) -> bool:
    """Write the PNG; False where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(15, 13), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(4, 3).flat
    for axis, measure in zip(axes, PANELS, strict=False):
        _bars(axis, measure, records)
    _growth(axes[len(PANELS)], records)
    for axis in list(axes)[len(PANELS) + 1 :]:
        axis.set_axis_off()
    figure.savefig(path, dpi=110)
    return True


def _bars(axis: Any, measure: str, records: Sequence[Record]) -> None:
    own = [record for record in records if record.measure == measure]
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
