"""Tables of figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["print_table"]


def print_table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table, a column for each name of its head."""
    from rich.table import Table

    from lamina.cli.output import console, printable

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in head:
        table.add_column(name)
    for row in rows:
        table.add_row(*(printable(str(value)) for value in row))
    console().print(table)
