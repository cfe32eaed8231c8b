"""The command that takes documents in: files, folders, stdin."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from lamina.cli.options import Meta
from lamina.cli.session import Session
from lamina.cli.values import counted, read_metadata, read_text
from lamina.errors import Conflict, InvalidInput, InvalidType, MissingExtra

if TYPE_CHECKING:
    from lamina.rag.pipeline import RagPipeline
    from lamina.rag.reports import IngestReport

__all__ = ["ingest"]

STDIN = "-"

Strategy: TypeAlias = Literal["recursive", "paragraph", "sentence", "fixed"]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATHS", help="Files and folders; `-`, or left out in a pipe: stdin.", show_default=False),
]
SourceName = Annotated[
    str | None,
    typer.Option("--source", help="What it is called, in place of its path; needed for stdin.", show_default=False),
]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help="Of a folder: only files like this glob; may be repeated.", show_default=False),
]
Excluded = Annotated[
    list[str] | None,
    typer.Option("--exclude", help="Of a folder: no files like this glob; may be repeated.", show_default=False),
]
Prune = Annotated[bool, typer.Option("--prune", help="Remove documents of a folder whose file is gone.")]
Keep = Annotated[bool, typer.Option("--keep", help="Add beside what has the same source, in place of replacing it.")]
Chunking = Annotated[
    Strategy | None, typer.Option("--strategy", help="What a chunk keeps together.", show_default=False)
]
Size = Annotated[int | None, typer.Option("--chunk-size", help="Tokens of a chunk, at most.", show_default=False)]
Overlap = Annotated[
    int | None, typer.Option("--chunk-overlap", help="Tokens that a chunk repeats.", show_default=False)
]


async def ingest(
    session: Session,
    paths: Paths = None,
    *,
    source: SourceName = None,
    pattern: Patterns = None,
    exclude: Excluded = None,
    prune: Prune = False,
    keep: Keep = False,
    meta: Meta = None,
    strategy: Chunking = None,
    chunk_size: Size = None,
    chunk_overlap: Overlap = None,
) -> None:
    """Take documents in, so that `docs search`, `ask` and `chat` find them.

    Text and Markdown by itself; HTML, PDF, DOCX and others with the extra `documents`. A document of the same
    source is replaced; what has not changed is left as it is. Without an owner a document is shared in the tenant.
    A file that cannot be taken does not stop the others; then the exit code is 1.
    """
    named = paths or [STDIN]
    folders = _checked(named, source, in_folder=bool(pattern or exclude or prune), keep=keep)
    content = read_text(None if paths is None else STDIN, what="paths") if STDIN in named else ""
    options: dict[str, Any] = {"owner": session.reader, **_metadata(meta or ())}
    options |= {"chunk_strategy": strategy, "chunk_size": chunk_size, "chunk_overlap": chunk_overlap}
    of_folder: dict[str, Any] = {"pattern": pattern or None, "exclude": exclude or (), "prune": prune, "prefix": source}
    from lamina.cli.output import progress_bar
    from lamina.rag.reports import IngestReport

    report = IngestReport()
    async with session.kernel(creates=True) as kernel:
        with progress_bar("Ingesting") as progress:
            for done, path in enumerate(named, start=1):
                if path in folders:
                    found = await kernel.rag.ingest_directory(path, progress=progress, **of_folder, **options)
                    _add(report, found)
                else:
                    taken = _Taken(kernel.rag, path, source, content)
                    await taken.into(report, options | {"replace": not keep})
                    progress(done, len(named))
    _print(session, report)
    if report.failed:
        raise typer.Exit(1)


@dataclasses.dataclass(frozen=True, slots=True)
class _Taken:
    """One file, or stdin's content."""

    rag: RagPipeline
    path: str
    source: str | None
    content: str

    async def into(self, report: IngestReport, options: dict[str, Any]) -> None:
        """Ingest it, and note what came of it."""
        from lamina.ports.clock import utc_now
        from lamina.rag.reports import IngestFailure

        source = self.source or Path(self.path).as_posix()
        begun = utc_now()
        try:
            if self.path == STDIN:
                id = await self.rag.ingest(self.content, source, **options)
            else:
                id = await self.rag.ingest_file(self.path, source=source, **options)
        except (InvalidInput, InvalidType, MissingExtra, Conflict) as error:
            report.failed.append(IngestFailure(source, str(error)))
            return
        head = await self.rag.get(id)
        is_new = head is None or head.ingested_at >= begun
        (report.ingested if is_new else report.unchanged).append(source)


def _checked(paths: list[str], source: str | None, *, in_folder: bool, keep: bool) -> list[str]:
    """Those of the paths that are folders; what cannot be is refused before anything is taken in."""
    if STDIN in paths and source is None:
        raise typer.BadParameter("is needed for stdin: say what the text is called", param_hint="--source")
    if source is not None and len(paths) > 1:
        raise typer.BadParameter("names one document or folder, and several are given", param_hint="--source")
    for path in paths:
        if path != STDIN and ("\0" in path or not Path(path).exists()):
            raise typer.BadParameter(f"there is no {path!r}", param_hint="PATHS")
    folders = [path for path in paths if path != STDIN and Path(path).is_dir()]
    if in_folder and not folders:
        raise typer.BadParameter("is about folders, and none is given", param_hint="--pattern, --exclude, --prune")
    if keep and folders:
        raise typer.BadParameter("is about single documents, and a folder is given", param_hint="--keep")
    return folders


def _metadata(pairs: list[str] | tuple[()]) -> dict[str, Any]:
    """The metadata, whose keys must not be those of the pipeline's own arguments."""
    from lamina.rag.pipeline import RagPipeline

    calls: tuple[Callable[..., Any], ...] = (RagPipeline.ingest, RagPipeline.ingest_file, RagPipeline.ingest_directory)
    metadata = read_metadata(pairs)
    for key in metadata:
        if any(key in inspect.signature(call).parameters for call in calls):
            raise typer.BadParameter(f"{key!r} is taken: choose another key", param_hint="--meta")
    return metadata


def _add(report: IngestReport, found: IngestReport) -> None:
    for name in ("ingested", "unchanged", "failed", "removed"):
        getattr(report, name).extend(getattr(found, name))


def _print(session: Session, report: IngestReport) -> None:
    from lamina.cli.output import note, print_json

    if session.as_json:
        print_json(dataclasses.asdict(report))
        return
    taken = counted(len(report.ingested), "document", "documents")
    removed = f", {len(report.removed)} removed" if report.removed else ""
    failed = f", {len(report.failed)} failed" if report.failed else ""
    typer.echo(f"{taken} ingested, {len(report.unchanged)} unchanged{removed}{failed}.")
    for failure in report.failed:
        note(f"{failure.source}: {failure.reason}")
