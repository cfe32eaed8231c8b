"""Commands on memories: remember, recall, list, get, forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lamina.cli.command import command
from lamina.cli.confirming import confirm_deletion
from lamina.cli.options import (
    AnyTags,
    Confidence,
    DryRun,
    Explain,
    Id,
    Ids,
    IncludeSuperseded,
    Layers,
    Limit,
    Lines,
    Meta,
    MinConfidence,
    MinMatch,
    MinRelevance,
    MinScore,
    Mode,
    NewTags,
    NoTouch,
    OccurredAt,
    Offset,
    OlderThan,
    OwnId,
    Query,
    Relevance,
    Rerank,
    Source,
    StoredLayer,
    Supersedes,
    Tags,
    Text,
    Ttl,
    Untrusted,
    Where,
    Why,
    Yes,
)
from lamina.cli.session import Session
from lamina.cli.values import (
    check_lines,
    counted,
    read_age,
    read_cutoff,
    read_metadata,
    read_text,
    read_ttl,
    read_where,
)
from lamina.domain.memory import Layer, Trust
from lamina.errors import InvalidInput, MemoryNotFound

if TYPE_CHECKING:
    from lamina.domain.recall import RecallResult, Results

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "remember",
        examples=[
            'lamina remember "Mira prefers the window seat" -u mira -t preference',
            'lamina remember "Lunch is at noon" --meta place.city=Izmir --meta guests=4 --ttl 12h',
            'lamina remember "Mira prefers the aisle seat" -u mira --supersedes mem_4f2c... --why "She said so in May"',
            "cat notes.txt | lamina remember --source notes.txt",
        ],
    )(remember)
    command(
        app,
        "recall",
        examples=[
            'lamina recall "which seat?" -u mira',
            'lamina recall "open tasks" --where \'{"status": "open"}\' --json',
        ],
        tells=True,
    )(recall)
    command(app, "list", examples=["lamina list -u mira --limit 50", "lamina list -l session --json --nl"])(list_)
    command(app, "get", examples=["lamina get mem_4f2c...", "lamina get mem_4f2c... --json"])(get)
    command(
        app,
        "forget",
        examples=[
            "lamina forget mem_4f2c...",
            "lamina forget -l session --older-than 90d --dry-run",
            "lamina forget -n temp-data --yes",
        ],
    )(forget)


async def remember(
    session: Session,
    text: Text = None,
    *,
    layer: StoredLayer = Layer.LONGTERM,
    tag: NewTags = None,
    meta: Meta = None,
    ttl: Ttl = None,
    relevance: Relevance = None,
    confidence: Confidence = None,
    source: Source = None,
    untrusted: Untrusted = False,
    occurred_at: OccurredAt = None,
    id: OwnId = None,
    supersedes: Supersedes = None,
    why: Why = None,
) -> None:
    """Remember a text, and print its id.

    A text that is known already is confirmed: it keeps its id and is fresh again. What it supersedes is kept, and no
    longer recalled.
    """
    content = read_text(text, what="text")
    options: dict[str, Any] = {"tags": tag or (), "metadata": read_metadata(meta or ()), "ttl": read_ttl(ttl), "id": id}
    options |= {"relevance": relevance, "confidence": confidence, "source": source, "occurred_at": occurred_at}
    options |= {"supersedes": supersedes or (), "supersede_reason": why}
    async with session.engine(creates=True) as engine:
        stored = await engine.store(
            content,
            layer=layer,
            owner=session.owner,
            namespace=session.namespace,
            trust=Trust.UNTRUSTED if untrusted else None,
            **options,
        )
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"id": stored})
    else:
        typer.echo(stored)


async def recall(
    session: Session,
    query: Query = None,
    *,
    layer: Layers = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    where: Where = None,
    mode: Mode = None,
    min_relevance: MinRelevance = None,
    min_confidence: MinConfidence = None,
    min_score: MinScore = None,
    rerank: Rerank = None,
    min_match: MinMatch = None,
    limit: Limit = 10,
    offset: Offset = 0,
    explain: Explain = False,
    no_touch: NoTouch = False,
    include_superseded: IncludeSuperseded = False,
    nl: Lines = False,
) -> None:
    """Find the memories that answer a question, best first, each with its score broken down."""
    check_lines(session.as_json, nl=nl)
    asked = _asked(query)
    filters = _filters(session, layer=layer, tag=tag, any_tag=any_tag, where=where)
    filters |= {"min_relevance": min_relevance, "min_confidence": min_confidence}
    filters |= {"include_superseded": include_superseded}
    async with session.engine() as engine:
        results = await engine.recall(
            asked,
            mode=mode,
            min_score=min_score,
            rerank=rerank,
            min_match=read_cutoff(min_match),
            limit=limit,
            offset=offset,
            touch=not no_touch,
            explain=explain,
            **filters,
        )
    _print_results(session, results, nl=nl)


async def list_(
    session: Session,
    *,
    layer: Layers = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    where: Where = None,
    min_relevance: MinRelevance = None,
    limit: Limit = 20,
    offset: Offset = 0,
    nl: Lines = False,
) -> None:
    """List memories, most relevant and newest first. Listing counts no access."""
    from lamina.cli import output
    from lamina.importers.lines import entry_fields

    check_lines(session.as_json, nl=nl)
    filters = _filters(session, layer=layer, tag=tag, any_tag=any_tag, where=where) | {"min_relevance": min_relevance}
    async with session.engine() as engine:
        total = await engine.count(**filters)
        entries = await engine.query(limit=limit, offset=offset, **filters)
    if nl:
        output.print_lines(map(entry_fields, entries))
    elif session.as_json:
        output.print_json({"memories": [entry_fields(entry) for entry in entries], "total": total})
    else:
        output.print_entries(entries)
        if total > offset + len(entries):
            output.note(
                f"{offset + 1} to {offset + len(entries)} of {total}; --offset {offset + limit} shows the next."
            )


async def get(
    session: Session,
    id: Id,
    *,
    history: Annotated[bool, typer.Option("--history", help="Also what it was before each edit.")] = False,
) -> None:
    """Show everything about one memory."""
    from lamina.cli import output
    from lamina.importers.lines import entry_fields

    async with session.engine() as engine:
        entry = await engine.get(id, owner=session.reader, namespace=session.namespace)
        if entry is None:
            raise MemoryNotFound(id)
        earlier = await engine.history(id, owner=session.reader) if history else []
    if session.as_json:
        fields = entry_fields(entry)
        output.print_json(fields | ({"history": [entry_fields(each) for each in earlier]} if history else {}))
        return
    for each in [entry, *reversed(earlier)]:
        output.print_entry(each)


async def forget(
    session: Session,
    ids: Ids = None,
    *,
    layer: Layers = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    where: Where = None,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete memories, by their ids or by a filter whose conditions must all hold.

    Asks first; where nobody can answer, --yes is needed.
    """
    conditions: dict[str, Any] = {"layers": layer, "tags": tag or (), "tags_any": any_tag or ()}
    conditions |= {"where": read_where(where), "older_than": read_age(older_than)}
    if ids and any(conditions.values()):
        raise InvalidInput("forget", "takes ids or a filter, not both", "Give one of them.")
    # What binds a deletion is what was said in this call: a default owner of the settings only narrows it.
    conditions |= {"owner": session.owner, "namespace": session.namespace}
    if not ids and not any(conditions.values()):
        raise InvalidInput("forget", "needs ids or a filter", "Add ids, or options such as --layer or --older-than.")
    conditions["owner"] = session.reader
    if ids:
        await _forget_ids(session, ids, dry_run=dry_run, yes=yes)
    else:
        await _forget_where(session, conditions, dry_run=dry_run, yes=yes)


async def _forget_ids(session: Session, ids: list[str], *, dry_run: bool, yes: bool) -> None:
    async with session.engine() as engine:
        for id in ids:
            entry = await engine.get(id, owner=session.reader, namespace=session.namespace)
            if entry is None or (session.reader is not None and entry.owner != session.reader):
                raise MemoryNotFound(id)
        if not dry_run:
            confirm_deletion(counted(len(ids)), yes=yes)
            for id in ids:
                await engine.forget(id, owner=session.reader)
    _report(session, len(ids), dry_run=dry_run)


async def _forget_where(session: Session, conditions: Mapping[str, Any], *, dry_run: bool, yes: bool) -> None:
    async with session.engine() as engine:
        count = await engine.forget_where(dry_run=True, **conditions)
        if count and not dry_run:
            confirm_deletion(counted(count), yes=yes)
            count = await engine.forget_where(**conditions)
    _report(session, count, dry_run=dry_run)


def _report(session: Session, count: int, *, dry_run: bool) -> None:
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"would_forget" if dry_run else "forgotten": count})
    else:
        typer.echo(f"{counted(count)} {'would be forgotten' if dry_run else 'forgotten'}.")


def _asked(query: str | None) -> str:
    asked = read_text(query, what="query")
    if not asked.strip():
        raise typer.BadParameter("is blank: give a text to look for; `lamina list` lists", param_hint="QUERY")
    return asked


def _print_results(session: Session, results: Results[RecallResult], *, nl: bool) -> None:
    from lamina.cli import output

    if nl:
        output.print_lines(map(output.result_fields, results))
        for mark in results.degraded:
            output.note(output.degraded_line(mark).plain)
    elif session.as_json:
        output.print_json(output.results_document(results))
    else:
        output.print_results(results)


def _filters(
    session: Session, *, layer: list[Layer] | None, tag: list[str] | None, any_tag: list[str] | None, where: str | None
) -> dict[str, Any]:
    return {
        "owner": session.reader,
        "namespace": session.namespace,
        "layers": layer or None,
        "tags": tag or (),
        "tags_any": any_tag or (),
        "where": read_where(where),
    }
