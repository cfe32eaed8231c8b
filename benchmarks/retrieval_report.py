"""The results of `retrieval.py` as files: one of each set, which a later run finds again, and all of them to read."""

from __future__ import annotations

import dataclasses
import json
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lamina import __version__
from lamina.evaluation.reporting import answer_lines, as_json, can_draw, draw, markdown
from lamina.evaluation.retrieval import Abstention, Figures, Report

CHARTED = (
    "hybrid",
    "baseline: FTS5 porter",
    "baseline: RRF of FTS5 porter, vector",
    "peer: mem0-qdrant",
    "peer: langgraph-sqlite",
    "peer: engrava, hybrid",
    "peer: lancedb, hybrid",
)
"""Of the ways those that the chart shows; all are in the tables."""


class Kept:
    """The result of one set in a file of the report's folder."""

    def __init__(self, out: Path, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self._answers, self._path = out / f"{name}.jsonl", out / f"{name}.json"

    def holds(self, key: Mapping[str, Any]) -> bool:
        """Whether there is one, of just this."""
        return self._path.exists() and self._read()["key"] == key

    def keep(self, key: Mapping[str, Any], result: Any, reasons: Mapping[str, str]) -> None:
        """Write it; `reasons` say which peers are not in it, and why."""
        if isinstance(result, Report):
            lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in answer_lines(result)]
            plain: Any = as_json(result)
        else:
            plain = [dataclasses.asdict(each) for each in result]
            lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in plain]
        self._answers.write_text("".join(lines), encoding="utf-8")
        text = json.dumps({"key": key, "left_out": reasons, "result": plain}, ensure_ascii=False, indent=1)
        self._path.write_text(text, encoding="utf-8")  # last: where it is, all is

    @property
    def result(self) -> Any:
        """What was measured, as JSON has it."""
        return self._read()["result"]

    @property
    def left_out(self) -> dict[str, str]:
        """The peers that did not run, and why."""
        return dict(self._read()["left_out"])

    @property
    def report(self) -> Report:
        """The figures of a set that was asked its questions, without the answers."""
        said = {name: value for name, value in self.result.items() if name != "version"}
        figures = [
            Figures(**{**each, "recall": {int(depth): share for depth, share in each["recall"].items()}})
            for each in said.pop("figures")
        ]
        abstention = tuple(Abstention(**each) for each in said.pop("abstention"))
        return Report(**said, figures=tuple(figures), abstention=abstention, answers=())

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        return found


def write(out: Path, results: Sequence[Kept], *, versions: Sequence[str]) -> None:
    """Write `report.md`, and `recall.png` where matplotlib is installed."""
    reports = [each.report for each in results if each.kind == "recall"]
    chart = out / "recall.png" if reports and can_draw() else None
    if chart is not None:
        draw([_charted(report) for report in reports], chart)
    parts = [markdown(reports, chart=None if chart is None else chart.name)]
    for each in results:
        if each.kind == "lifecycle":
            parts.append(_lifecycle(each))
        elif each.kind == "precision":
            parts.append(_precision(each))
    if left_out := {f"{name} ({each.name})": why for each in results for name, why in each.left_out.items()}:
        parts.append(
            "## Peers that did not run, or not to the end\n\n"
            + "\n".join(f"* {name}: {why}" for name, why in left_out.items())
        )
    parts.append(_made_with(versions))
    (out / "report.md").write_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n", encoding="utf-8")


def _charted(report: Report) -> Report:
    return dataclasses.replace(report, figures=tuple(each for each in report.figures if each.way in CHARTED))


def _lifecycle(kept: Kept) -> str:
    depth = "10"
    rows = [
        [each["category"], each["way"], f"{each['required'][depth]:.3f}", f"{each['forbidden'][depth]:.1%}"]
        for each in kept.result
    ]
    head = ["category", "way", f"required@{depth}", f"questions with forbidden@{depth}"]
    return f"## {kept.name}: life cycle\n\n{_table(head, rows)}"


def _precision(kept: Kept) -> str:
    rows = [[each["min_match"] or "none", f"{each['passed']} of {each['cases']}"] for each in kept.result]
    return f"## {kept.name}: precision\n\n{_table(['cut-off', 'cases passed'], rows)}"


def _made_with(versions: Sequence[str]) -> str:
    used = [
        f"Lamina {__version__}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
        *(f"{name} {version(name)}" for name in ("numpy", "onnxruntime")),
        f"{platform.system()} {platform.machine()}",
        *dict.fromkeys(versions),
    ]
    return "## Made with\n\n" + "\n".join(f"* {each}" for each in used)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [head, ["---"] * len(head), *rows])
