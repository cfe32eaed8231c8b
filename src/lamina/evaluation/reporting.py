"""An evaluation of recall as files: each answer, tables to read, and a chart."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from lamina import __version__
from lamina.errors import InvalidInput, MissingExtra
from lamina.evaluation.retrieval import Figures, Report

__all__ = [
    "ABSTENTION_HEAD",
    "abstention_rows",
    "answer_lines",
    "as_json",
    "can_draw",
    "cut_off",
    "draw",
    "figure_rows",
    "markdown",
    "write_report",
]

ABSTENTION_HEAD: Final = ("way", "without evidence", "rightly empty", "with evidence", "wrongly empty")
_SCORE_DIGITS: Final = 6
_LABEL_CHARS: Final = 14


def can_draw() -> bool:
    """Whether the extra `eval` is installed."""
    return find_spec("matplotlib") is not None


def write_report(folder: Path, reports: Sequence[Report]) -> list[Path]:
    """Write `NAME.jsonl` for each set, `report.md`, and, if the extra is installed, `recall.png`; which were written.

    Raises:
        InvalidInput: the folder cannot be written to, or two sets have one name.
    """
    names = [report.dataset for report in reports]
    if len(set(names)) < len(names):
        problem = f"two of the folders have the same name: {', '.join(sorted(names))}"
        raise InvalidInput("path", problem, "Give each a name of its own, or one at a time.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for report in reports:
            written.append(folder / f"{report.dataset}.jsonl")
            written[-1].write_text(
                "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answer_lines(report)), encoding="utf-8"
            )
        chart = folder / "recall.png" if can_draw() else None
        written.append(folder / "report.md")
        written[-1].write_text(markdown(reports, chart=None if chart is None else chart.name), encoding="utf-8")
        if chart is not None:
            draw(reports, chart)
            written.append(chart)
    except OSError as error:
        raise InvalidInput("out", f"{folder} cannot be written to: {error}", "Name another folder.") from error
    return written


def answer_lines(report: Report) -> Iterator[dict[str, Any]]:
    """Of each answer: where the evidence stands, what it is worth, and what was returned.

    Neither texts nor times are in it: two runs of the same give the same.
    """
    for each in report.answers:
        yield {
            "query": each.query,
            "category": each.category,
            "way": each.way,
            "ranks": dict(each.ranks),
            "recall": {str(depth): value for depth, value in each.recall.items()},
            "ndcg": each.ndcg,
            "recall_in_budget": each.recall_in_budget,
            "tokens": each.tokens,
            "returned": [
                [hit.document, None if hit.score is None else round(hit.score, _SCORE_DIGITS)]
                for hit in each.answer.hits
            ],
        }


def as_json(report: Report) -> dict[str, Any]:
    """The report without its answers."""
    fields = {each.name: getattr(report, each.name) for each in dataclasses.fields(report) if each.name != "answers"}
    return fields | {
        "version": __version__,
        "figures": [dataclasses.asdict(each) for each in report.figures],
        "abstention": [dataclasses.asdict(each) for each in report.abstention],
    }


def figure_rows(report: Report) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of figures, as text."""
    depths = list(report.figures[0].recall) if report.figures else []
    head = ["category", "way", "queries", *(f"recall@{depth}" for depth in depths)]
    head += ["nDCG@10", f"in {report.budget:,} tokens", "tokens", "ms / p95", "with embedding"]
    return head, [_row(each) for each in report.figures]


def cut_off(report: Report) -> str:
    """In words, what abstention was measured with."""
    return "no cut-off" if report.min_match is None else f"a cut-off of {report.min_match}"


def abstention_rows(report: Report) -> list[list[str]]:
    """The rows of the table with `ABSTENTION_HEAD`, as text; none if evidence answers every query."""
    return [
        [
            *(each.way, f"{each.without_evidence:,}", _share(each.empty_rightly, each.without_evidence)),
            *(f"{each.with_evidence:,}", _share(each.empty_wrongly, each.with_evidence)),
        ]
        for each in report.abstention
        if each.without_evidence
    ]


def markdown(reports: Sequence[Report], *, chart: str | None = None) -> str:
    """The reports to read; a summary first, if there are several."""
    parts = ["# Recall", f"Lamina {__version__}. No language model takes part."]
    if chart is not None:
        parts.append(f"![recall@10]({chart})")
    if len(reports) > 1:
        rows = [[report.dataset, *_row(each)[1:]] for report in reports for each in _totals(report)]
        if head := next((figure_rows(report)[0] for report in reports if report.figures), None):
            parts.append(_table(["set", *head[1:]], rows))
    for report in reports:
        parts += [f"## {report.dataset}", _facts(report)]
        if report.figures:
            parts.append(_table(*figure_rows(report)))
        if rows := abstention_rows(report):
            parts.append(f"Queries that nothing answers, with {cut_off(report)}:")
            parts.append(_table(ABSTENTION_HEAD, rows))
    return "\n\n".join(parts) + "\n"


def draw(reports: Sequence[Report], path: Path) -> None:
    """Draw recall at ten, or at the depth that is nearest, as bars: of each set, or of each category of the only one.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if not can_draw():
        raise MissingExtra("The chart", "eval")
    from matplotlib.figure import Figure

    shown: dict[str, dict[str, float]] = {}
    for report in reports:
        for each in report.figures if len(reports) == 1 else _totals(report):
            name = each.category if len(reports) == 1 else report.dataset
            label = f"{textwrap.fill(name, _LABEL_CHARS)}\n({each.queries:,})"
            shown.setdefault(label, {})[each.way] = each.recall[_depth(each)]
    ways = list(dict.fromkeys(way for values in shown.values() for way in values))
    width = 0.8 / max(1, len(ways))
    figure = Figure(figsize=(max(8.0, 1.5 * len(shown)), 5.0), layout="constrained")
    axes = figure.subplots()
    for number, way in enumerate(ways):
        places = [place + (number - (len(ways) - 1) / 2) * width for place in range(len(shown))]
        axes.bar(places, [values.get(way, 0.0) for values in shown.values()], width, label=way)
    axes.set_xticks(range(len(shown)), list(shown))
    axes.set_ylim(0, 1)
    axes.set_ylabel("recall@10")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _totals(report: Report) -> list[Figures]:
    """Over all queries, but those that were to be left out, if any were."""
    return [each for each in report.figures if each.category == report.figures[-1].category]


def _depth(figures: Figures) -> int:
    return min(figures.recall, key=lambda depth: (abs(depth - 10), depth))


def _row(figures: Figures) -> list[str]:
    return [
        *(figures.category, figures.way, f"{figures.queries:,}"),
        *(f"{value:.3f}" for value in figures.recall.values()),
        *(f"{figures.ndcg:.3f}", f"{figures.recall_in_budget:.3f}", f"{figures.tokens:,.0f}"),
        *(_times(figures.milliseconds), _times(figures.with_embedding)),
    ]


def _times(times: tuple[float | None, float | None]) -> str:
    return "" if times[0] is None or times[1] is None else f"{times[0]:.1f} / {times[1]:.1f}"


def _facts(report: Report) -> str:
    said = {
        "documents": f"{report.documents:,} in {report.memories:,} memories",
        "queries": f"{report.queries:,}",
        "labels": report.labels,
        "data (SHA-256)": f"`{report.digest}`",
        "embedder": report.embedder or "none",
        **{key: f"`{json.dumps(value)}`" for key, value in report.configuration.items()},
    }
    return "\n".join(f"* {key}: {value}" for key, value in said.items())


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
