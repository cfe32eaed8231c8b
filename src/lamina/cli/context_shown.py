"""How a computed context is shown: what its tokens are spent on, what is in it, what was dropped and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from lamina.cli.output import WIDE, console, preview, printable
from lamina.demo.show import bar
from lamina.domain.context_block import NOTES

if TYPE_CHECKING:
    from rich.console import Console

    from lamina.domain.context import ComputedContext, DroppedItem

__all__ = ["context_document", "print_context", "spent_document"]

_BAR: Final = 20
_SHORT_BAR: Final = 10


def context_document(context: ComputedContext) -> dict[str, Any]:
    """The whole context as JSON can carry it; `messages` is what would be sent, in OpenAI's shape."""
    return {
        "goal": context.goal,
        "owner": context.user.user_id,
        "thread_id": context.thread_id,
        **spent_document(context),
        "kept": [dataclasses.asdict(item) for item in _kept(context)],
        "dropped": [_dropped_fields(item) for item in context.dropped],
        "warnings": [str(warning) for warning in context.warnings],
        "messages": context.to_openai(),
    }


def spent_document(context: ComputedContext) -> dict[str, Any]:
    """How many tokens it has, and what for."""
    return {
        "tokens": context.estimated_tokens,
        "token_budget": context.token_budget,
        "counter": context.counter,
        "over_budget": context.over_budget,
        "tokens_by_source": {source.value: tokens for source, tokens in context.tokens_by_source.items() if tokens},
    }


def print_context(context: ComputedContext) -> None:
    """Tables: the tokens with bars, what was kept, what was dropped; then the warnings."""
    terminal = console()
    terminal.print(_spent_line(context))
    terminal.print(_spent_table(context, terminal))
    kept = list(_kept(context))
    if kept:
        terminal.print(_kept_table(kept))
    if context.dropped:
        terminal.print(_dropped_table(context.dropped, terminal))
    else:
        terminal.print(Text("Nothing was dropped.", style="dim"))
    for warning in context.warnings:
        told = printable(str(warning))
        told.stylize("yellow")
        terminal.print(told)


def _spent_line(context: ComputedContext) -> Text:
    """The tokens of the budget that are spent, in words and as a bar."""
    share = context.estimated_tokens / context.token_budget
    style = "bold red" if context.over_budget else "bold"
    over = ", over budget" if context.over_budget else ""
    words = f"{context.estimated_tokens:,} of {context.token_budget:,} tokens ({context.counter}){over} "
    return Text.assemble((words, style), (bar(share, _BAR), "red" if context.over_budget else "cyan"), f" {share:.0%}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """One item of the context; `detail` is a memory's layer, a message's role, a preference's key, a pack's name."""

    kind: str
    detail: str
    id: str
    content: str
    source: str | None = None


def _kept(context: ComputedContext) -> Iterator[_Kept]:
    """What is in it, in the order in which it counts."""
    yield from _preferences(context)
    noted = context.user.preferences.get(NOTES, [])
    for memory in context.memories:
        if memory.content not in noted:  # else it is sent as a preference
            yield _Kept("memory", memory.layer.value, memory.id, memory.content, memory.source)
    for hit in context.packs:
        yield _Kept("pack memory", hit.pack, hit.id, hit.content, hit.source)
    for chunk in context.documents:
        yield _Kept("chunk", "", chunk.id, chunk.text, chunk.source)
    yield from _talk(context)


def _preferences(context: ComputedContext) -> Iterator[_Kept]:
    for key, value in context.user.preferences.items():
        if key != NOTES:
            yield _Kept("preference", key, "", str(value))
    for note in context.user.preferences.get(NOTES, []):
        yield _Kept("preference", "", "", str(note))


def _talk(context: ComputedContext) -> Iterator[_Kept]:
    if context.engine is not None:
        for text in context.engine.retrieved:
            yield _Kept("engine", context.engine.engine_id, "", text)
    if context.conversation is not None:
        if context.conversation.summary:
            yield _Kept("summary", "", "", context.conversation.summary)
        for message in context.conversation.messages:
            yield _Kept("message", message.role.value, message.id, message.text, message.name)


def _spent_table(context: ComputedContext, terminal: Console) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("spent on")
    table.add_column("tokens", justify="right")
    table.add_column("share")
    width = _BAR if terminal.width >= WIDE else _SHORT_BAR
    whole = max(context.estimated_tokens, 1)
    for source, tokens in context.tokens_by_source.items():
        if tokens:
            drawn = Text(f"{bar(tokens / whole, width)} {tokens / whole:4.0%}", style="cyan")
            table.add_row(source.value, f"{tokens:,}", drawn)
    return table


def _kept_table(kept: list[_Kept]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("kept", no_wrap=True)
    table.add_column("text", ratio=1)
    for item in kept:
        text = preview(f"{item.content} · {item.source}" if item.source else item.content)
        table.add_row(printable(f"{item.kind}, {item.detail}" if item.detail else item.kind), text)
    return table


def _dropped_table(dropped: list[DroppedItem], terminal: Console) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("dropped", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("why", no_wrap=True)
    table.add_column("id", overflow="fold")
    if terminal.width >= WIDE:
        table.add_column("from", overflow="fold")
    for item in dropped:
        kind = item.kind.value if item.layer is None else f"{item.kind.value}, {item.layer.value}"
        why = item.reason.value.replace("_", " ") + (f" of {item.of}" if item.of else "")
        cells: list[str | Text] = [kind, f"{item.tokens:,}", printable(why), printable(item.id)]
        table.add_row(*cells, *([printable(item.source or "")] if terminal.width >= WIDE else []))
    return table


def _dropped_fields(item: DroppedItem) -> dict[str, Any]:
    layer = None if item.layer is None else item.layer.value
    return {**dataclasses.asdict(item), "kind": item.kind.value, "reason": item.reason.value, "layer": layer}
