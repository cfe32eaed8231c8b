"""Documents on the wire."""

from __future__ import annotations

import inspect
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from lamina.domain import document as domain
from lamina.domain.recall import Results, SearchMode
from lamina.rag.chunking import MAX_CHUNK_SIZE, ChunkStrategy
from lamina.rag.pipeline import RagPipeline
from lamina.rag.rendering import render_chunks
from lamina.rag.reports import RagStats
from lamina.server.strict_json import MalformedJson, read_json, wrong_values
from lamina.server.wire.memories import Weakness
from lamina.server.wire.strict import BY_VALUE, Flag, JsonObject, Limit, Name, Rerank, StrictBody, Text, Unit

__all__ = [
    "METADATA_PARAMETER",
    "Chunk",
    "Document",
    "DocumentStatistics",
    "NewDocument",
    "Overlap",
    "Retrieve",
    "Retrieved",
    "Size",
    "Strategy",
    "metadata_of_file",
]

Strategy = Annotated[ChunkStrategy, BY_VALUE]
Size = Annotated[int, Field(ge=1, le=MAX_CHUNK_SIZE)]
Overlap = Annotated[int, Field(ge=0, le=MAX_CHUNK_SIZE)]

_TAKEN: Final = frozenset(inspect.signature(RagPipeline.ingest).parameters) - {"metadata"}
_CHUNKING: Final = ("strategy", "size", "overlap", "counter")


def _without_taken(metadata: dict[str, Any]) -> dict[str, Any]:
    for key in metadata:
        if key in _TAKEN:
            raise ValueError(f"{key!r} is a field of the document itself: choose another name")
    return metadata


Metadata = Annotated[JsonObject, AfterValidator(_without_taken)]


MAX_METADATA_CHARS: Final = 4096
"""Of a file: they stand in the URL, which servers and proxies bound."""

METADATA_PARAMETER: Final = {
    "name": "metadata",
    "in": "query",
    "required": False,
    "description": "A JSON object, as in `POST /v1/documents`: found again by `where`. "
    f"At most {MAX_METADATA_CHARS} characters.",
    "content": {"application/json": {"schema": {"type": "object"}, "example": {"category": "kitchen", "year": 2026}}},
}
"""How the description of the server tells of `metadata_of_file`'s parameter."""

_METADATA: Final[TypeAdapter[dict[str, Any]]] = TypeAdapter(Metadata)


def metadata_of_file(
    metadata: Annotated[str | None, Query(max_length=MAX_METADATA_CHARS, include_in_schema=False)] = None,
) -> dict[str, Any]:
    """The metadata that come with a file, as strictly read as those of a text.

    Raises:
        RequestValidationError: they are no JSON object, or hold what cannot be kept.
    """
    if metadata is None:
        return {}
    at = ("query", "metadata")
    try:
        read = read_json(metadata.encode())
    except MalformedJson as error:
        raise RequestValidationError([{"loc": at, "msg": f"is no JSON: {error}"}]) from None
    wrong = [{"loc": ("query", field), "msg": problem} for field, problem, _ in wrong_values("metadata", read)]
    if wrong:
        raise RequestValidationError(wrong)
    try:
        return _METADATA.validate_python(read, strict=True)
    except ValidationError as error:
        raise RequestValidationError(
            [{"loc": (*at, *each["loc"]), "msg": each["msg"]} for each in error.errors()]
        ) from None


class NewDocument(StrictBody):
    """A text to be found in pieces. One of the same source and owner is replaced, unless `replace` is off.

    Without an `owner` every owner shares it. Sizes of chunks are in tokens; what is left out takes the server's
    settings.
    """

    content: Text = Field(examples=["# Tea\n\nGreen tea is brewed at 80 degrees."])
    source: Name = Field(examples=["handbook/tea.md"])
    owner: Name | None = None
    metadata: Metadata = Field(default_factory=dict)
    chunk_strategy: Strategy | None = None
    chunk_size: Size | None = None
    chunk_overlap: Overlap | None = None
    replace: Flag = True

    def options(self) -> dict[str, Any]:
        """How it is taken in, as `RagPipeline.ingest` takes it."""
        return {name: getattr(self, name) for name in ("chunk_strategy", "chunk_size", "chunk_overlap", "replace")}


class Document(BaseModel):
    """The head of a document. `digest` is of its text; `chunking` is how it was cut."""

    id: str
    source: str
    owner: str | None
    ingested_at: datetime
    metadata: dict[str, Any]
    digest: str
    chunks: int
    generation: int
    chunking: dict[str, Any]

    @classmethod
    def of(cls, document: domain.Document) -> Self:
        """The head on the wire."""
        fields = {name: getattr(document, name) for name in cls.model_fields if name != "chunking"}
        chunking: dict[str, Any] = {name: document.options[name] for name in _CHUNKING if name in document.options}
        return cls(**fields, chunking=chunking)


class Chunk(BaseModel):
    """A piece of a document: the characters from `start` to `end` of its text. `score` is in [0, 1]."""

    id: str
    content: str
    source: str
    score: float
    document_id: str
    chunk_index: int
    start: int
    end: int
    metadata: dict[str, Any]

    @classmethod
    def of(cls, chunk: domain.RagChunk) -> Self:
        """The chunk on the wire."""
        return cls(**{name: getattr(chunk, name) for name in cls.model_fields})


class Retrieve(StrictBody):
    """A question to the documents. `where` is a condition on metadata, such as `{"category": "api"}`.

    `neighbors` joins that many chunks before and after each one found. With `render` the chunks come as one text too.
    `rerank` overrides the server's settings: `cross-encoder` has the best chunks read again, together with the
    question; `none` has not.
    """

    query: Text = Field(examples=["How hot is green tea brewed?"])
    top_k: Limit = 5
    owner: Name | None = None
    where: JsonObject | None = None
    min_score: Unit | Literal["auto"] = 0.0
    neighbors: Annotated[int, Field(ge=0, le=100)] = 0
    mode: Annotated[SearchMode, BY_VALUE] | None = None
    rerank: Rerank | None = None
    render: Flag = False

    def arguments(self, owner: str | None) -> dict[str, Any]:
        """As `RagPipeline.retrieve` takes them."""
        own = ("query", "top_k", "min_score", "neighbors", "mode", "rerank")
        return {**{name: getattr(self, name) for name in own}, "filter": self.where, "owner": owner}


class Retrieved(BaseModel):
    """The best chunks, best first. `degraded` is empty where every way of searching answered."""

    data: list[Chunk]
    degraded: list[Weakness]
    text: str | None = None

    @classmethod
    def of(cls, results: Results[domain.RagChunk], *, render: bool) -> Self:
        """The results on the wire."""
        return cls(
            data=[Chunk.of(each) for each in results],
            degraded=[Weakness.of(each) for each in results.degraded],
            text=render_chunks(results) if render else None,
        )


class DocumentStatistics(BaseModel):
    """How many documents there are, and how many chunks they have together."""

    documents: int
    chunks: int

    @classmethod
    def of(cls, stats: RagStats) -> Self:
        """The counts on the wire."""
        return cls(documents=stats.documents, chunks=stats.chunks)
