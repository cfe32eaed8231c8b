"""How threads and their messages are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lamina.cli.output import WIDE, console, instant, print_facts, printable
from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, Role, TextPart
from lamina.domain.message_json import message_to_json
from lamina.domain.thread import Summary, Thread

__all__ = ["message_fields", "print_messages", "print_thread", "print_threads", "summary_fields", "thread_fields"]

_STYLES: Final = {Role.SYSTEM: "magenta", Role.USER: "bold cyan", Role.ASSISTANT: "bold green", Role.TOOL: "yellow"}


def thread_fields(thread: Thread) -> dict[str, Any]:
    """The head of a thread as JSON can carry it."""
    return {
        "id": thread.id,
        "owner": thread.owner,
        "namespace": thread.namespace,
        "status": thread.status.value,
        "total": thread.last_index,
        "folded": thread.folded_through,
        "created_at": instant(thread.created_at),
        "updated_at": instant(thread.updated_at),
        "metadata": thread.metadata,
    }


def message_fields(message: Message) -> dict[str, Any]:
    """A message as JSON can carry it; what is empty is left out."""
    fields = message_to_json(message)
    if message.timestamp is not None:
        fields["timestamp"] = instant(message.timestamp)
    return fields


def summary_fields(summary: Summary) -> dict[str, Any]:
    """A summary as JSON can carry it."""
    return {
        "text": summary.text,
        "from_index": summary.from_index,
        "to_index": summary.to_index,
        "created_at": instant(summary.created_at),
        "source": summary.source.value,
        "topics": summary.topics,
        "facts": summary.facts,
    }


def print_threads(threads: Sequence[Thread]) -> None:
    """A table with a line for each."""
    terminal = console()
    if not threads:
        terminal.print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("thread", overflow="fold")
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("owner", overflow="fold")
    table.add_column("last change", no_wrap=True)
    wide = terminal.width >= WIDE
    for name in ("namespace", "status") if wide else ("status",):
        table.add_column(name)
    for each in threads:
        where = [printable(each.namespace or "")] if wide else []
        owner = printable(each.owner or "shared")
        table.add_row(
            printable(each.id), str(each.last_index), owner, instant(each.updated_at)[:16], *where, each.status.value
        )
    terminal.print(table)


def print_thread(thread: Thread) -> None:
    """What is known of a thread, and its summary."""
    fields = {key: value for key, value in thread_fields(thread).items() if value not in (None, {})}
    print_facts({"messages" if key == "total" else key: value for key, value in fields.items()})
    for summary in thread.summaries:
        terminal = console()
        title = f"Summary of messages {summary.from_index} to {summary.to_index}, by {summary.source.value}"
        terminal.print(Text(f"\n{title}", style="dim"))
        told = [summary.text, *(f"- {fact}" for fact in summary.facts)]
        terminal.print(Padding(printable("\n".join(told)), (0, 0, 0, 2)))


def print_messages(messages: Iterable[Message]) -> None:
    """Each with its number, who speaks, and what is said."""
    terminal = console()
    for message in messages:
        name = f" {message.name}" if message.name else ""
        when = "" if message.timestamp is None else f" {instant(message.timestamp)[:16]}"
        head = Text.assemble(
            (f"\n{message.index} ", "dim"),
            (f"{message.role.value}", _STYLES[message.role]),
            printable(name),
            (when, "dim"),
        )
        terminal.print(head)
        terminal.print(Padding(printable(_words(message)), (0, 0, 0, 2)))


def _words(message: Message) -> str:
    """What is said, with a name for what has no words, and the calls of tools."""
    parts = [TextPart(message.content)] if isinstance(message.content, str) else message.content
    calls = [f"→ {call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(filter(None, [*map(_part, parts), *calls]))


def _part(part: object) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case FilePart():
            return part.text or f"[file {part.name or part.media_type or ''}]"
        case ImagePart():
            return "[picture]"
        case OpaquePart():
            return f"[{part.kind}]"
    return ""
