"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from lamina.domain.memory import Layer
from lamina.domain.recall import SearchMode

__all__ = ["AnyTags", "Layers", "Limit", "Lines", "Mode", "Offset", "Tags", "Where", "Yes"]

Layers = Annotated[
    list[Layer] | None, typer.Option("--layer", "-l", help="Only this layer; may be repeated.", show_default=False)
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", help="Must have this tag; may be repeated.", show_default=False)
]
AnyTags = Annotated[
    list[str] | None,
    typer.Option("--any-tag", help="Must have one of the tags given so; may be repeated.", show_default=False),
]
Where = Annotated[
    str | None, typer.Option("--where", help="A filter on metadata, as a JSON object.", show_default=False)
]
Mode = Annotated[
    SearchMode | None, typer.Option("--mode", "-m", help="Search by words, by meaning, or both.", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]
Offset = Annotated[int, typer.Option("--offset", min=0, help="Leave out the first so many.")]
Lines = Annotated[bool, typer.Option("--nl", help="With --json: one document a line, no list around them.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
