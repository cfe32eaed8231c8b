"""How documents and their chunks are shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lamina.cli.output import WIDE, console, degraded_line, instant, preview, print_facts, printable

if TYPE_CHECKING:
    from lamina.domain.document import Document, RagChunk
    from lamina.domain.recall import Results

__all__ = [
    "chunk_fields",
    "document_fields",
    "hits_document",
    "print_chunks",
    "print_document",
    "print_documents",
    "print_hits",
]

_LINES: Final = 6
"""Of a hit that are shown, without the blank ones."""


def document_fields(head: Document) -> dict[str, Any]:
    """What is known of a document, as JSON can carry it."""
    return {
        "id": head.id,
        "source": head.source,
        "owner": head.owner,
        "chunk_count": head.chunks,
        "ingested_at": instant(head.ingested_at),
        "metadata": head.metadata,
    }


def chunk_fields(chunk: RagChunk) -> dict[str, Any]:
    """A chunk as JSON can carry it."""
    fields = dataclasses.asdict(chunk)
    del fields["score"]
    return fields


def hits_document(hits: Results[RagChunk]) -> dict[str, Any]:
    """What a search found, as JSON can carry it."""
    return {
        "results": [{"score": each.score, **chunk_fields(each)} for each in hits],
        "degraded": [dataclasses.asdict(mark) for mark in hits.degraded],
    }


def print_documents(heads: Sequence[Document]) -> None:
    """A table with a line for each."""
    terminal = console()
    if not heads:
        terminal.print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("source", overflow="fold")
    table.add_column("chunks", justify="right", no_wrap=True)
    table.add_column("owner", overflow="fold")
    for name in ("ingested", "id") if terminal.width >= WIDE else ():
        table.add_column(name, overflow="fold")
    for head in heads:
        more: list[str | Text] = [instant(head.ingested_at)[:16], printable(head.id)] if terminal.width >= WIDE else []
        table.add_row(printable(head.source), str(head.chunks), printable(head.owner or "shared"), *more)
    terminal.print(table)


def print_document(head: Document) -> None:
    """What is known of it."""
    fields = {key: value for key, value in document_fields(head).items() if value not in (None, {})}
    print_facts({"chunks" if key == "chunk_count" else key: value for key, value in fields.items()})


def print_chunks(chunks: Sequence[RagChunk], *, whole: bool) -> None:
    """Each with its number and its place in the text, and its beginning or all of it."""
    terminal = console()
    for chunk in chunks:
        terminal.print(Text(f"\n{chunk.chunk_index} ", style="dim").append_text(_place(chunk)))
        terminal.print(Padding(printable(chunk.text) if whole else preview(chunk.text), (0, 0, 0, 2)))


def print_hits(hits: Results[RagChunk], *, whole: bool) -> None:
    """A table, best first, of the beginning of each hit or all of it; and what was degraded."""
    terminal = console()
    if hits:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("score", justify="right", no_wrap=True)
        table.add_column("chunk", ratio=1, overflow="fold")
        for hit in hits:
            where = Text.assemble(printable(hit.source), " ", _place(hit), style="dim", overflow="fold")
            table.add_row(
                Text(f"{hit.score:.2f}", style="bold"),
                Group(printable(hit.text.strip("\n") if whole else _beginning(hit.text)), where),
            )
        terminal.print(table)
    else:
        terminal.print(Text("Nothing found.", style="dim"))
    for mark in hits.degraded:
        terminal.print(degraded_line(mark))


def _beginning(text: str) -> str:
    """The first lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:_LINES]) + ("\n…" if len(lines) > _LINES else "")


def _place(chunk: RagChunk) -> Text:
    """Where in the document it stands."""
    page = f"page {chunk.metadata['page']}, " if "page" in chunk.metadata else ""
    titles = " > ".join(str(title) for title in chunk.metadata.get("headers", ()))
    return Text(f"{page}characters {chunk.start} to {chunk.end}  ", style="dim").append_text(printable(titles))
