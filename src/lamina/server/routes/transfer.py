"""Memories out and in as streams of lines."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Final

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from lamina.importers.lines import write_line
from lamina.importers.ndjson import BadLines, import_ndjson
from lamina.kernel import Kernel
from lamina.server.caller import Administrator
from lamina.server.problems import Problem
from lamina.server.routes.maintenance import whole_tenant
from lamina.server.wire.maintenance import Imported
from lamina.server.wire.strict import Flag, Name

__all__ = ["router"]

NDJSON: Final = "application/x-ndjson"
_PIECE: Final = 64 * 1024
"""Characters that are sent at once: a piece for each line would take most of the time of an export."""

router = APIRouter(prefix="/v1", tags=["export and import"])


@router.get("/export", summary="All memories as lines of JSON", response_class=StreamingResponse)
async def export_memories(
    caller: Administrator, owner: Name | None = None, embeddings: Flag = False
) -> StreamingResponse:
    """The tenant's memories, or with `owner` those that this owner sees, one a line, in the order of remembering.

    Importing them gives equal memories. With `embeddings` the vectors travel along.
    """
    lines = _lines(caller.kernel, caller.owner(owner), embeddings=embeddings)
    return StreamingResponse(lines, media_type=NDJSON)


@router.post(
    "/import",
    summary="Take in memories as lines of JSON",
    openapi_extra={"requestBody": {"required": True, "content": {NDJSON: {}}}},
)
async def import_memories(
    caller: Administrator,
    request: Request,
    *,
    replace: Annotated[Flag, Query(description="Overwrite memories whose id is there already.")] = False,
    skip_bad_lines: Annotated[Flag, Query(description="Import the others; each bad line is reported.")] = False,
    revive: Annotated[Flag, Query(description="Take what was deleted since, too, or whose owner was erased.")] = False,
) -> Imported:
    """Lines that an export wrote come back exactly; other lines are remembered as new texts.

    All lines are read before anything is written: one bad line means that nothing was, unless they are skipped.
    """
    engine = whole_tenant(caller).kernel.memory_engine
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "import.ndjson"
        await _receive(request, file)
        try:
            report = await import_ndjson(engine, file, replace=replace, skip_bad_lines=skip_bad_lines, revive=revive)
        except BadLines as error:
            fields = tuple({"field": f"line {each.number}", "problem": each.problem} for each in error.lines)
            raise Problem(422, "bad_lines", "Some lines cannot be imported", str(error), fields) from error
    return Imported.of(report)


async def _lines(kernel: Kernel, owner: str | None, *, embeddings: bool) -> AsyncIterator[str]:
    engine = kernel.memory_engine
    fingerprint = (await engine.stats()).fingerprint if embeddings else None
    piece, size = [], 0
    async for entry in engine.scan(include_embeddings=fingerprint is not None, owner=owner):
        line = write_line(entry, fingerprint) + "\n"
        piece.append(line)
        size += len(line)
        if size >= _PIECE:
            yield "".join(piece)
            piece, size = [], 0
    if piece:
        yield "".join(piece)


async def _receive(request: Request, file: Path) -> None:
    """The body into a file: an import may be larger than memory."""
    with file.open("wb") as target:
        async for piece in request.stream():
            await anyio.to_thread.run_sync(target.write, piece)
