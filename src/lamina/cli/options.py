"""Arguments and options of the commands, by what they mean."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from lamina.domain.memory import Layer
from lamina.domain.recall import SearchMode

__all__ = [
    "AnyTags",
    "BaseUrl",
    "Budget",
    "Confidence",
    "DocumentRef",
    "DocumentRefs",
    "DryRun",
    "Explain",
    "Id",
    "Ids",
    "IncludeSuperseded",
    "Layers",
    "Limit",
    "Lines",
    "Meta",
    "MinConfidence",
    "MinMatch",
    "MinRelevance",
    "MinScore",
    "Mode",
    "Model",
    "NewTags",
    "NoTouch",
    "OccurredAt",
    "Offset",
    "OlderThan",
    "OwnId",
    "Query",
    "Question",
    "Relevance",
    "Rerank",
    "Source",
    "StoredLayer",
    "Supersedes",
    "Tags",
    "Text",
    "ThreadId",
    "ThreadIds",
    "ThreadName",
    "Ttl",
    "Untrusted",
    "Where",
    "Why",
    "Yes",
]

MOST: Final = 1_000_000_000

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
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank", help="Who reads the best ones again: cross-encoder, or none.", metavar="NAME", show_default=False
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=MOST, help="At most so many.")]
Offset = Annotated[int, typer.Option("--offset", min=0, max=MOST, help="Leave out the first so many.")]
Lines = Annotated[bool, typer.Option("--nl", help="With --json: one document a line, no list around them.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
StoredLayer = Annotated[Layer, typer.Option("--layer", "-l", help="Where it belongs.")]
NewTags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag; may be repeated.", show_default=False)]
Meta = Annotated[
    list[str] | None,
    typer.Option("--meta", help="key=value; the value may be JSON; may be repeated.", show_default=False),
]
Ttl = Annotated[str | None, typer.Option("--ttl", help="How long: 90s, 12h, 30d, never.", show_default=False)]
Relevance = Annotated[float | None, typer.Option("--relevance", help="From 0 to 1.", show_default=False)]
Confidence = Annotated[float | None, typer.Option("--confidence", help="From 0 to 1.", show_default=False)]
Source = Annotated[str | None, typer.Option("--source", help="Where it comes from.", show_default=False)]
Untrusted = Annotated[bool, typer.Option("--untrusted", help="The text is not its owner's own word.")]
OccurredAt = Annotated[
    str | None, typer.Option("--occurred-at", help="When it happened, in ISO 8601.", show_default=False)
]
OwnId = Annotated[
    str | None, typer.Option("--id", help="An id of your own, so that repeating is harmless.", show_default=False)
]
Supersedes = Annotated[
    list[str] | None,
    typer.Option("--supersedes", help="Id of a memory that no longer holds; may be repeated.", show_default=False),
]
Why = Annotated[str | None, typer.Option("--why", help="Why it no longer holds.", show_default=False)]
IncludeSuperseded = Annotated[
    bool, typer.Option("--include-superseded", help="Also what is superseded or no longer valid.")
]
Query = Annotated[
    str | None, typer.Argument(help="What to look for; `-`, or left out in a pipe: stdin.", show_default=False)
]
MinRelevance = Annotated[
    float | None, typer.Option("--min-relevance", help="Only memories at least so relevant.", show_default=False)
]
MinConfidence = Annotated[
    float | None, typer.Option("--min-confidence", help="Only memories at least so sure.", show_default=False)
]
MinScore = Annotated[
    float | None, typer.Option("--min-score", help="Only results with at least this score.", show_default=False)
]
MinMatch = Annotated[
    str | None,
    typer.Option("--min-match", help="Only what matches so far: 0 to 1, or auto.", show_default=False),
]
Explain = Annotated[bool, typer.Option("--explain", help="Tell how the results came about.")]
NoTouch = Annotated[bool, typer.Option("--no-touch", help="Do not count this as an access.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Ids of memories.", show_default=False)]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", help="Made longer ago: 90d, or before a date: 2026-01-31.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell how many would go.")]
Text = Annotated[str | None, typer.Argument(help="The text; `-`, or left out in a pipe: stdin.", show_default=False)]
Id = Annotated[str, typer.Argument(help="The memory's id.", show_default=False)]
Question = Annotated[
    str | None, typer.Argument(help="What is wanted; `-`, or left out in a pipe: stdin.", show_default=False)
]
Model = Annotated[
    str | None,
    typer.Option("--model", help="The language model, as provider:model; else the settings'.", show_default=False),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Where the model's server is.", show_default=False)]
Budget = Annotated[
    int | None,
    typer.Option("--budget", min=1, max=100_000_000, help="The most tokens of the context.", show_default=False),
]
ThreadName = Annotated[
    str | None, typer.Option("--thread", "-t", help="The thread that it belongs to.", show_default=False)
]
ThreadId = Annotated[str, typer.Argument(metavar="ID", help="The thread's id.", show_default=False)]
ThreadIds = Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of threads.", show_default=False)]
DocumentRef = Annotated[str, typer.Argument(metavar="ID", help="The document's id, or its source.", show_default=False)]
DocumentRefs = Annotated[
    list[str], typer.Argument(metavar="IDS", help="Ids of documents, or their sources.", show_default=False)
]
