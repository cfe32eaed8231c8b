"""How results are shown: as JSON for programs, as tables for people."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.demo.show import bar
from lamina.importers.lines import entry_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.domain.memory import MemoryEntry
    from lamina.domain.recall import Degraded, RecallResult, Results

__all__ = [
    "note",
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
COMPONENTS: Final = ("similarity", "recency", "frequency", "relevance")


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
    """A table, best first, with a bar for each component of the score, and what was degraded."""
    console = Console()
    if results:
        console.print(_results_table(results))
    else:
        console.print(Text("Nothing found.", style="dim"))
    for mark in results.degraded:
        console.print(_degraded_line(mark))
    if results.explanation is not None:
        found = ", ".join(f"{leg} {count}" for leg, count in results.explanation.candidates.items())
        console.print(Text(f"Searched for: {' '.join(results.explanation.terms)}"))
        console.print(Text(f"Candidates: {found}; dropped: {len(results.explanation.dropped)}"))


def print_entries(entries: Sequence[MemoryEntry]) -> None:
    """A table of memories."""
    console = Console()
    if not entries:
        console.print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("id", no_wrap=True)  # so that it can be copied
    for name in ("layer", "owner", "relevance"):
        table.add_column(name, overflow="fold")
    table.add_column("memory", ratio=1, overflow="fold")
    for entry in entries:
        table.add_row(
            Text(entry.id, style="dim"),
            entry.layer.value,
            printable(entry.owner),
            f"{entry.relevance:.2f}",
            printable(entry.content),
        )
    console.print(table)


def print_entry(entry: MemoryEntry) -> None:
    """Everything about one memory."""
    fields = {key: value for key, value in entry_fields(entry).items() if value not in (None, [], {})}
    print_facts(fields | {"embedding": "none" if entry.embedding is None else f"{len(entry.embedding)} dimensions"})


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), printable(_in_words(value)))
    Console().print(table)


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
    Console(stderr=True).print(printable(text), style="yellow")


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, if that is a terminal; told how many are done, and of how many."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _results_table(results: Iterable[RecallResult]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("score", justify="right")
    table.add_column("memory", ratio=1, overflow="fold")
    for name in COMPONENTS:
        table.add_column(name, no_wrap=True)
    for result in results:
        entry, parts = result.entry, result.score_breakdown
        memory = printable(entry.content)
        memory.append_text(Text("\n"))
        place = printable(f"{entry.id} · {entry.layer.value} · {entry.owner}/{entry.namespace}")
        place.stylize("dim")
        table.add_row(
            Text(f"{result.score:.2f}", style="bold"),
            memory.append_text(place),
            *(Text(f"{bar(getattr(parts, name))} {getattr(parts, name):.2f}", style="cyan") for name in COMPONENTS),
        )
    return table


def _degraded_line(mark: Degraded) -> Text:
    detail = f" ({mark.detail})" if mark.detail else ""
    line = printable(f"degraded: the {mark.leg} search did not answer in full: {mark.reason}{detail}")
    line.stylize("yellow")
    return line
