"""The figures of a run: CSV for programs, Markdown for people."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from speed import targets
from speed.records import Record, as_row
from speed.systems import LAMINA

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COMPARED = "Beside the others: × is over the yardstick of the same process; otherwise the unit is given."  # noqa: RUF001


def write_csv(path: Path, records: Sequence[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["measure", "system", "memories", "value", "unit", "yardstick", "ratio", "note"])
        writer.writeheader()
        writer.writerows(as_row(record) for record in records)


def read_csv(path: Path) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Record(
                measure=row["measure"],
                system=row["system"],
                memories=int(row["memories"]),
                value=float(row["value"]),
                unit=row["unit"],
                yardstick=float(row["yardstick"]) if row["yardstick"] else None,
                note=row["note"],
            )
            for row in csv.DictReader(file)
        ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def targets_table(records: Sequence[Record]) -> str:
    return table(["target", "measured", "at least", "aim", ""], targets.lines(records))


def compared(records: Sequence[Record]) -> str:
    """A row for each measure that several systems have, a column for each system: ratios, or values without any."""
    shared = [measure for measure in _in_order(record.measure for record in records) if _systems(records, measure) > 1]
    systems = _in_order(record.system for record in records if record.measure in shared)
    systems.sort(key=lambda system: system != LAMINA)
    cells = {(record.measure, record.system): record for record in records}
    rows = [[measure, *(_cell(cells, measure, system) for system in systems)] for measure in shared]
    return table(["measure", *systems], rows)


def _cell(cells: Mapping[tuple[str, str], Record], measure: str, system: str) -> str:
    """What was measured, and at which size where that is another one than Lamina's."""
    record = cells.get((measure, system))
    if record is None:
        return ""
    usual = cells.get((measure, LAMINA), record)
    return told(record) + ("" if record.memories == usual.memories else f" (at {record.memories:,})")


def everything(records: Sequence[Record]) -> str:
    head = ["system", "measure", "memories", "value", "yardstick", "ratio", ""]
    return table(head, (_row(record) for record in records))


def figures(records: Sequence[Record], *, told_first: str) -> str:
    """What goes into the page of the documentation."""
    chart = "![each measure on a scale of its own](performance.png)"
    return "\n\n".join([told_first, targets_table(records), COMPARED, compared(records), chart])


def with_figures(page: str, text: str) -> str:
    """The page with the text between its marks.

    Raises:
        ValueError: it has no such marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def markdown(records: Sequence[Record], *, told_first: str, failures: Sequence[str] = ()) -> str:
    failed = "".join(f"- {failure}\n" for failure in failures)
    parts = [
        told_first,
        targets_table(records),
        COMPARED,
        compared(records),
        f"What could not be measured:\n\n{failed}" if failures else "",
        "Every figure:",
        everything(records),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def told(record: Record) -> str:
    if record.ratio is None:
        return f"{number(record.value)} {record.unit}".strip()
    return f"{number(record.ratio)} ×"  # noqa: RUF001


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _row(record: Record) -> list[str]:
    yardstick = "" if record.yardstick is None else number(record.yardstick)
    ratio = "" if record.ratio is None else number(record.ratio)
    value = f"{number(record.value)} {record.unit}".strip()
    return [record.system, record.measure, f"{record.memories:,}", value, yardstick, ratio, record.note]


def _systems(records: Sequence[Record], measure: str) -> int:
    return len({record.system for record in records if record.measure == measure})


def _in_order(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
