"""How the demo presents what it does."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.demo.texts import Question
from lamina.domain.context import ComputedContext
from lamina.domain.recall import RecallResult

__all__ = ["bar", "show_answer", "show_context", "show_question", "show_step"]

_BAR_WIDTH = 6
_TOKEN_BAR_WIDTH = 30
_TEXT_CHARS = 150
_ID_CHARS = 24
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


def show_context(console: Console, context: ComputedContext) -> None:
    """What a context's tokens are spent on, what was kept, and what was dropped and why."""
    table = _plain_table("spent on", "tokens", "of the budget")
    for source, tokens in context.tokens_by_source.items():
        if tokens:
            drawn = bar(tokens / context.token_budget, _TOKEN_BAR_WIDTH)
            table.add_row(source.value, str(tokens), Text(drawn, "blue"))
    whole = bar(context.estimated_tokens / context.token_budget, _TOKEN_BAR_WIDTH)
    table.add_row("in all", f"{context.estimated_tokens} of {context.token_budget}", Text(whole, "bold blue"))
    console.print(table)
    console.print()
    table = _plain_table("kept", "from", "text")
    if context.conversation is not None and context.conversation.summary:
        table.add_row("summary", "thread", _short(context.conversation.summary))
    for message in context.conversation.messages if context.conversation is not None else ():
        table.add_row("message", "thread", _short(message.text))
    for key, value in context.user.preferences.items():
        table.add_row("preference", "memories", _short(f"{key}: {value}"))
    for entry in context.memories:
        table.add_row("memory", entry.layer.value, _short(entry.content))
    for chunk in context.documents:
        table.add_row("document", chunk.source, _short(chunk.content))
    console.print(table)
    console.print()
    table = _plain_table("dropped", "from", "tokens", "why")
    for item in context.dropped:
        where = item.source or (item.layer.value if item.layer is not None else "thread")
        why = f"{item.reason.value} of {item.of}" if item.of else item.reason.value
        table.add_row(f"{item.kind.value} {item.id[:_ID_CHARS]}", where, str(item.tokens), why)
    console.print(table)


def _plain_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, no_wrap=name != "text")
    return table


def _short(text: str) -> Text:
    line = " ".join(text.split())
    return Text(line if len(line) <= _TEXT_CHARS else f"{line[: _TEXT_CHARS - 1]}…")


def _component(value: float) -> Text:
    return Text.assemble((bar(value), "blue"), f" {value:.2f}")
