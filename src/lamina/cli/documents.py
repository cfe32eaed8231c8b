"""Commands on documents: ingest, docs list, show, search, remove, clear, stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.command import command, group
from lamina.cli.confirming import confirm_deletion
from lamina.cli.ingesting import ingest
from lamina.cli.options import (
    DocumentRef,
    DocumentRefs,
    DryRun,
    Limit,
    Lines,
    Mode,
    Offset,
    Query,
    Rerank,
    Where,
    Yes,
)
from lamina.cli.session import Session
from lamina.cli.values import check_lines, counted, read_text, read_where
from lamina.errors import DocumentNotFound, InvalidInput

if TYPE_CHECKING:
    from lamina.domain.document import Document
    from lamina.rag.pipeline import RagPipeline

__all__ = ["register"]

_MOST_HITS = 1_000

Hits = Annotated[int, typer.Option("--limit", min=1, max=_MOST_HITS, help="At most so many.")]
MinScore = Annotated[float, typer.Option("--min-score", help="Only chunks with at least this score.")]
Neighbors = Annotated[
    int, typer.Option("--neighbors", min=0, max=100, help="So many chunks before and after each hit with it.")
]
Whole = Annotated[bool, typer.Option("--text", help="Show the whole texts of chunks.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "ingest",
        examples=[
            "lamina ingest README.md docs/",
            "lamina ingest handbook/ --pattern '*.md' --exclude 'drafts/**' --prune",
            "curl -s https://example.org/notes.txt | lamina ingest - --source notes",
        ],
        namespaced=False,
    )(ingest)
    docs = group("Show, search and remove the documents that were ingested.")
    for name, function, examples in (
        ("list", list_, ["lamina docs list", "lamina docs list -u mira --json --nl"]),
        ("show", show, ["lamina docs show README.md", "lamina docs show doc_4f2c... --text"]),
        (
            "search",
            search,
            ['lamina docs search "how is it configured?"', "lamina docs search tokens --limit 3 --json"],
        ),
        ("remove", remove, ["lamina docs remove README.md", "lamina docs remove doc_4f2c... --yes"]),
        ("clear", clear, ["lamina docs clear --dry-run", "lamina docs clear -u mira --yes"]),
        ("stats", stats, ["lamina docs stats", "lamina docs stats -u mira --json"]),
    ):
        command(docs, name, examples=examples, namespaced=False, tells=name == "search")(function)
    app.add_typer(docs, name="docs")


async def list_(session: Session, *, limit: Limit = 20, offset: Offset = 0, nl: Lines = False) -> None:
    """List documents by their source. With an owner: that owner's own, and the shared ones."""
    from lamina.cli import output
    from lamina.cli.documents_shown import document_fields, print_documents

    check_lines(session.as_json, nl=nl)
    async with session.kernel() as kernel:
        total = (await kernel.rag.stats(owner=session.reader)).documents
        heads = await kernel.rag.list_documents(owner=session.reader, limit=limit, offset=offset)
    if nl:
        output.print_lines(map(document_fields, heads))
    elif session.as_json:
        output.print_json({"documents": [document_fields(each) for each in heads], "total": total})
    else:
        print_documents(heads)
        if total > offset + len(heads):
            output.note(f"{offset + 1} to {offset + len(heads)} of {total}; --offset {offset + limit} shows the next.")


async def show(
    session: Session,
    id: DocumentRef,
    *,
    text: Whole = False,
) -> None:
    """Show what is known of a document, and its chunks."""
    from lamina.cli.documents_shown import chunk_fields, document_fields, print_chunks, print_document
    from lamina.cli.output import print_json

    async with session.kernel() as kernel:
        head = await _found(kernel.rag, id, session.reader)
        chunks = await kernel.rag.chunks(head.id, owner=session.reader)
    if session.as_json:
        print_json(document_fields(head) | {"chunks": [chunk_fields(each) for each in chunks]})
        return
    print_document(head)
    print_chunks(chunks, whole=text)


async def search(
    session: Session,
    query: Query = None,
    *,
    where: Where = None,
    mode: Mode = None,
    rerank: Rerank = None,
    min_score: MinScore = 0.0,
    neighbors: Neighbors = 0,
    limit: Hits = 5,
    text: Whole = False,
    nl: Lines = False,
) -> None:
    """Find the pieces of documents that answer a question, best first."""
    from lamina.cli import output
    from lamina.cli.documents_shown import chunk_fields, hits_document, print_hits

    check_lines(session.as_json, nl=nl)
    asked = read_text(query, what="query")
    async with session.kernel() as kernel:
        hits = await kernel.rag.retrieve(
            asked,
            top_k=limit,
            owner=session.reader,
            filter=read_where(where),
            min_score=min_score,
            neighbors=neighbors,
            mode=mode,
            rerank=rerank,
        )
    if nl:
        output.print_lines({"score": each.score, **chunk_fields(each)} for each in hits)
        for mark in hits.degraded:
            output.note(output.degraded_line(mark).plain)
    elif session.as_json:
        output.print_json(hits_document(hits))
    else:
        print_hits(hits, whole=text)


async def remove(session: Session, ids: DocumentRefs, *, yes: Yes = False) -> None:
    """Remove documents with all their chunks. With an owner: only that owner's own.

    Asks first; where nobody can answer, --yes is needed.
    """
    async with session.kernel() as kernel:
        heads = {head.id: head for head in [await _own(kernel.rag, id, session.reader) for id in ids]}
        confirm_deletion(counted(len(heads), "document", "documents"), yes=yes, look="")
        removed = [await kernel.rag.remove(id, owner=session.reader) for id in heads]
    _report(session, sum(removed), dry_run=False)


async def clear(session: Session, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Remove every document of the tenant, or with an owner that owner's own.

    Asks first; where nobody can answer, --yes is needed.
    """
    async with session.kernel() as kernel:
        heads = await kernel.rag.list_documents(owner=session.reader)
        count = sum(session.reader in {None, head.owner} for head in heads)
        if count and not dry_run:
            confirm_deletion(counted(count, "document", "documents"), yes=yes)
            count = await kernel.rag.clear(owner=session.reader)
    _report(session, count, dry_run=dry_run)


async def stats(session: Session) -> None:
    """Count documents and chunks: the tenant's, or those that the owner can see."""
    from lamina.cli.output import print_facts, print_json

    async with session.kernel() as kernel:
        found = await kernel.rag.stats(owner=session.reader)
    facts = {"documents": found.documents, "chunks": found.chunks}
    if session.as_json:
        print_json(facts)
    else:
        print_facts(facts)


async def _own(rag: RagPipeline, reference: str, owner: str | None) -> Document:
    """The document, if the owner may remove it: not one that is merely shared with them."""
    head = await _found(rag, reference, owner)
    if owner is not None and head.owner != owner:
        raise DocumentNotFound(reference)
    return head


async def _found(rag: RagPipeline, reference: str, owner: str | None) -> Document:
    """The document of this id, else the only one of this source.

    Raises:
        DocumentNotFound: there is none that the owner can see.
        InvalidInput: there are several of this source.
    """
    head = await rag.get(reference, owner=owner)
    if head is not None:
        return head
    named = [each for each in await rag.list_documents(owner=owner) if each.source == reference]
    if not named:
        raise DocumentNotFound(reference)
    if len(named) > 1:
        ids = ", ".join(each.id for each in named)
        raise InvalidInput("ID", f"{len(named)} documents have the source {reference!r}", f"Name one of: {ids}.")
    return named[0]


def _report(session: Session, count: int, *, dry_run: bool) -> None:
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"would_remove" if dry_run else "removed": count})
    else:
        typer.echo(f"{counted(count, 'document', 'documents')} {'would be removed' if dry_run else 'removed'}.")
