"""How results are shown: as JSON for programs, as tables for people."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lamina.demo.show import bar
from lamina.importers.lines import entry_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.domain.memory import MemoryEntry
    from lamina.domain.recall import Degraded, RecallResult, Results

__all__ = [
    "console",
    "degraded_line",
    "instant",
    "note",
    "preview",
    "print_entries",
    "print_entry",
    "print_facts",
    "print_json",
    "print_lines",
    "print_results",
    "printable",
    "progress_bar",
    "result_fields",
    "results_document",
]

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WIDE: Final = 100
"""Columns from which on a score is drawn as well as written."""
NARROW: Final = 60
"""Columns below which only the memory and its score are shown."""
COMPONENTS: Final = ("similarity", "recency", "frequency", "relevance")


def console(*, stderr: bool = False) -> Console:
    """Where people are shown something; under NO_COLOR without any escape sequence, also none for bold or dim."""
    return Console(stderr=stderr, color_system=None if os.environ.get("NO_COLOR") else "auto")


def print_json(document: Any) -> None:
    """One document; indented where a person looks at it."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent) + "\n")


def print_lines(documents: Iterable[Any]) -> None:
    """One document a line."""
    for document in documents:
        sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def result_fields(result: RecallResult) -> dict[str, Any]:
    """A recalled memory as JSON can carry it."""
    fields: dict[str, Any] = {
        "score": result.score,
        "score_breakdown": dataclasses.asdict(result.score_breakdown),
        "source": result.source.value,
        "entry": entry_fields(result.entry),
    }
    if result.explanation is not None:
        fields["explanation"] = dataclasses.asdict(result.explanation)
    return fields


def results_document(results: Results[RecallResult]) -> dict[str, Any]:
    """A whole recall as JSON can carry it."""
    document: dict[str, Any] = {
        "results": [result_fields(result) for result in results],
        "degraded": [dataclasses.asdict(mark) for mark in results.degraded],
    }
    if results.explanation is not None:
        document["explanation"] = dataclasses.asdict(results.explanation)
    return document


def printable(text: str) -> Text:
    """The text as a terminal may show it: a memory must not move the cursor, ring, or turn the line around."""
    return Text(_CONTROL.sub("\ufffd", text.replace("\r\n", "\n")))


def print_results(results: Results[RecallResult]) -> None:
    """A table, best first, with the components of the score, and what was degraded."""
    terminal = console()
    if results:
        terminal.print(_results_table(results, terminal.width))
    else:
        terminal.print(Text("Nothing found.", style="dim"))
    for mark in results.degraded:
        terminal.print(degraded_line(mark))
    if results.explanation is not None:
        found = ", ".join(f"{leg} {count}" for leg, count in results.explanation.candidates.items())
        terminal.print(Text(f"Searched for: {' '.join(results.explanation.terms)}"))
        terminal.print(Text(f"Candidates: {found}; dropped: {len(results.explanation.dropped)}"))
        for period in results.explanation.periods:
            terminal.print(Text(f'Read "{period.text}" as from {period.start} to before {period.end}'))


def print_entries(entries: Sequence[MemoryEntry]) -> None:
    """The beginning of each memory, and below it its id, whole, so that it can be copied."""
    terminal = console()
    if not entries:
        terminal.print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("relevance" if terminal.width >= WIDE else "rel.", justify="right")
    table.add_column("memory", ratio=1)
    for entry in entries:
        table.add_row(f"{entry.relevance:.2f}", Group(preview(entry.content), *_place(entry, terminal.width)))
    terminal.print(table)


def print_entry(entry: MemoryEntry) -> None:
    """Everything about one memory."""
    fields = {key: value for key, value in entry_fields(entry).items() if value not in (None, [], {})}
    print_facts(fields | {"embedding": "none" if entry.embedding is None else f"{len(entry.embedding)} dimensions"})


def instant(moment: datetime) -> str:
    """The moment in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), printable(_in_words(value)))
    console().print(table)


def _in_words(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case [*texts] if all(isinstance(each, str) for each in texts):
            return ", ".join(texts)
        case _:
            return json.dumps(value, ensure_ascii=False)


def note(text: str) -> None:
    """A remark beside the answer, for the person at the terminal."""
    console(stderr=True).print(printable(text), style="yellow")


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, if that is a terminal; told how many are done, and of how many."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _results_table(results: Iterable[RecallResult], width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, overflow="fold")
    components = COMPONENTS if width >= NARROW else ()
    for name in components:
        table.add_column(name if width >= WIDE else f"{name[:3]}.", no_wrap=True)
    for result in results:
        parts = result.score_breakdown
        table.add_row(
            Text(f"{result.score:.2f}", style="bold"),
            Group(printable(result.entry.content), *_place(result.entry, width)),
            *(_component(getattr(parts, name), width) for name in components),
        )
    return table


def _component(value: float, width: int) -> Text:
    drawn = f"{bar(value)} " if width >= WIDE else ""
    return Text(f"{drawn}{value:.2f}", style="cyan")


def preview(content: str) -> Text:
    """The text on one line, cut to the room that there is."""
    text = printable(" ".join(content.split()))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _place(entry: MemoryEntry, width: int) -> list[Text]:
    """Its id and where it belongs; the id alone in its line where there is little room, so that it is not broken."""
    where = f"{entry.layer.value} · {entry.owner}/{entry.namespace}"
    lines = [f"{entry.id} · {where}"] if width >= WIDE else [entry.id, where]
    texts = [printable(line) for line in lines]
    for text in texts:
        text.stylize("dim")
        text.overflow = "fold"
    return texts


def degraded_line(mark: Degraded) -> Text:
    """What a search could not do, in words."""
    detail = f" ({mark.detail})" if mark.detail else ""
    part = "reranker" if mark.leg.value == "rerank" else f"{mark.leg} search"
    line = printable(f"degraded: the {part} did not answer in full: {mark.reason}{detail}")
    line.stylize("yellow")
    return line
