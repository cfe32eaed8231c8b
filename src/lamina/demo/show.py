"""How the demo presents what it does."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.demo.texts import Question
from lamina.domain.recall import RecallResult

__all__ = ["bar", "show_answer", "show_question", "show_step"]

_BAR_WIDTH = 6
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: float, width: int = _BAR_WIDTH) -> str:
    """A bar of so many characters for a value in [0, 1]."""
    eighths = round(min(max(value, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def show_step(console: Console, title: str, text: str = "") -> None:
    """Begin a part of the demo."""
    console.print()
    console.rule(f"[bold]{title}[/bold]", align="left")
    if text:
        console.print(text, highlight=False)


def show_question(console: Console, number: int, question: Question) -> None:
    """Who asks what."""
    console.print()
    asked = Text.assemble((f"{number}. ", "bold"), (question.question, "bold cyan"))
    console.print(asked, Text(f"(asked as {question.owner}; {question.note})", style="dim"))


def show_answer(console: Console, results: Sequence[RecallResult], question: Question) -> None:
    """The results with their scores, component by component; the expected memory is ticked."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="dim")
    table.add_column("", width=2)
    table.add_column("memory", ratio=1, overflow="fold")
    table.add_column("score", width=5, justify="right")
    for name in ("similarity", "recency", "frequency", "relevance"):
        table.add_column(name, width=_BAR_WIDTH + 5)
    for result in results:
        parts = result.score_breakdown
        mark = {question.expected: Text("✓", "bold green"), question.earlier: Text("↩", "yellow")}
        table.add_row(
            mark.get(result.entry.id, Text("")),
            Text(result.entry.content),
            f"{result.score:.2f}",
            *(_component(value) for value in (parts.similarity, parts.recency, parts.frequency, parts.relevance)),
        )
    console.print(table)


def _component(value: float) -> Text:
    return Text.assemble((bar(value), "blue"), f" {value:.2f}")
