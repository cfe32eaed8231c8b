"""Documents as a resource."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import APIRouter, Depends, Query, Request, Response, status

from lamina.domain import document as domain
from lamina.errors import DocumentNotFound, InvalidInput, MissingExtra, ScopeError
from lamina.rag.conversion_limit import text_within
from lamina.rag.converters import is_known
from lamina.server.caller import Caller, Reader, Writer
from lamina.server.paging import Page, Paging
from lamina.server.problems import Problem
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.documents import (
    METADATA_PARAMETER,
    Chunk,
    Document,
    DocumentStatistics,
    NewDocument,
    Overlap,
    Retrieve,
    Retrieved,
    Size,
    Strategy,
    metadata_of_file,
)
from lamina.server.wire.strict import Flag, Name

__all__ = ["router"]

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
SUFFIXES: Final = {
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    f"{_OFFICE}wordprocessingml.document": ".docx",
    f"{_OFFICE}presentationml.presentation": ".pptx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx",
}
"""How a body is read, by its content type."""
ANY: Final = "application/octet-stream"
"""Of this type, and of one that is not known, a body is read by how its source ends."""

BYTES: Final = {"type": "string", "format": "binary"}

router = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=SegmentRoute)


@router.post("", status_code=status.HTTP_201_CREATED, summary="Take a text in")
async def ingest_document(caller: Writer, response: Response, body: NewDocument) -> Document:
    """Cut it into chunks that are found by meaning and by words. If nothing is different, nothing is done."""
    owner = caller.owner(body.owner)
    options = {**body.options(), **body.metadata}
    id = await caller.kernel.rag.ingest(body.content, body.source, owner=owner, **options)
    return await _taken_in(caller, response, id, owner)


@router.post(
    "/files",
    status_code=status.HTTP_201_CREATED,
    summary="Take a file in",
    openapi_extra={
        "parameters": [METADATA_PARAMETER],
        "requestBody": {
            "required": True,
            "content": {each: {"schema": {} if "json" in each else BYTES} for each in (*SUFFIXES, ANY)},
        },
    },
)
async def ingest_file(
    caller: Writer,
    request: Request,
    response: Response,
    *,
    source: Annotated[Name, Query(description="What the document is known by, such as `report.pdf`. Nothing is read.")],
    metadata: Annotated[dict[str, Any], Depends(metadata_of_file)],
    owner: Name | None = None,
    chunk_strategy: Strategy | None = None,
    chunk_size: Size | None = None,
    chunk_overlap: Overlap | None = None,
    replace: Flag = True,
) -> Document:
    """The body is the file: text, Markdown, HTML, PDF, DOCX, PPTX, XLSX or EPUB. What it links to is not fetched."""
    rag = caller.kernel.rag
    whose = caller.owner(owner)
    name = _name(request.headers.get("content-type", ""), source)
    text = await _converted(name, await _body(request, rag.config.max_bytes), rag.config.convert_seconds)
    id = await rag.ingest(
        text,
        source,
        owner=whose,
        chunk_strategy=chunk_strategy,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        replace=replace,
        **metadata,
    )
    return await _taken_in(caller, response, id, whose)


@router.get("", summary="List documents")
async def list_documents(caller: Reader, paging: Paging, owner: Name | None = None) -> Page[Document]:
    """By source and then id. With an owner: that owner's own, and those that all share.

    Pages tile, whatever is added or deleted meanwhile.
    """
    rows = await caller.kernel.rag.list_documents(owner=caller.owner(owner), limit=paging.limit + 1, after=paging.name)
    return paging.sorted(rows, Document.of, lambda head: (head.source, head.id))


@router.get("/stats", summary="How many documents there are")
async def document_statistics(caller: Reader, owner: Name | None = None) -> DocumentStatistics:
    """Documents and chunks that the owner, or without one anybody, can see."""
    return DocumentStatistics.of(await caller.kernel.rag.stats(owner=caller.owner(owner)))


@router.post("/retrieve", summary="Find chunks")
async def retrieve_chunks(caller: Reader, body: Retrieve) -> Retrieved:
    """The chunks that answer the query best."""
    found = await caller.kernel.rag.retrieve(**body.arguments(caller.owner(body.owner)))
    return Retrieved.of(found, render=body.render)


@router.get("/{id}", summary="One document")
async def get_document(caller: Reader, id: Name, owner: Name | None = None) -> Document:
    """Its head; the text is in its chunks."""
    return Document.of(await _found(caller, id, caller.owner(owner)))


@router.delete("/{id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a document")
async def delete_document(caller: Writer, id: Name, owner: Name | None = None) -> None:
    """With its chunks. With an owner: only that owner's own, not one that all share."""
    whose = caller.owner(owner)
    found = await _found(caller, id, whose)
    if whose is not None and found.owner != whose:
        raise ScopeError("The document is shared by all owners: only a token without an owner deletes it.")
    if not await caller.kernel.rag.remove(id, owner=whose):
        raise DocumentNotFound(id)


@router.get("/{id}/chunks", summary="The chunks of a document")
async def list_chunks(caller: Reader, paging: Paging, id: Name, owner: Name | None = None) -> Page[Chunk]:
    """All of them in order, with the score 1. A cursor is refused once the document was taken in anew."""
    rows = await caller.kernel.rag.chunks(id, owner=caller.owner(owner))
    place = paging.behind([row.id for row in rows])
    return paging.sorted(rows[place : place + paging.limit + 1], Chunk.of, lambda chunk: (chunk.id,))


async def _found(caller: Caller, id: str, owner: str | None) -> domain.Document:
    found = await caller.kernel.rag.get(id, owner=owner)
    if found is None:
        raise DocumentNotFound(id)
    return found


async def _taken_in(caller: Caller, response: Response, id: str, owner: str | None) -> Document:
    response.headers["Location"] = f"/v1/documents/{id}"
    return Document.of(await _found(caller, id, owner))


def _name(content_type: str, source: str) -> str:
    """A name whose ending says how the body is read."""
    suffix = SUFFIXES.get(content_type.partition(";")[0].strip().lower())
    if suffix is None:
        suffix = PurePosixPath(source).suffix
        if not is_known(f"file{suffix}"):
            raise _unreadable("Send a Content-Type that says what the file is, or a source that ends so.")
    return f"file{suffix}"


async def _body(request: Request, limit: int) -> bytes:
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > limit:
            detail = f"The file is longer than {limit} bytes, which is as much as this server takes of one."
            raise Problem(413, "too_large", "The body is too long", detail)
    return bytes(read)


async def _converted(name: str, data: bytes, seconds: float) -> str:
    try:
        return await anyio.to_thread.run_sync(text_within, name, data, seconds)
    except MissingExtra as error:
        raise _unreadable("This server does not read files of that kind. Send its text.") from error
    except InvalidInput as error:
        raise InvalidInput("body", error.problem, error.remedy) from error


def _unreadable(detail: str) -> Problem:
    return Problem(415, "unsupported_media_type", "The body is of the wrong kind", detail)
