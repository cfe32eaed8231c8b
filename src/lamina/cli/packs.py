"""Commands on context packs: packs list, show, create, add, search, fade, scrub, pin, unpin, archive, restore."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Final

import typer

from lamina.cli.command import command, group
from lamina.cli.options import Limit, Lines, Meta, NewTags, NoTouch, Offset, OwnId, Query, Text
from lamina.cli.session import Session
from lamina.cli.values import check_lines, counted, read_duration, read_metadata, read_text
from lamina.domain.pack import MemoryType, PackSource, PackType

__all__ = ["register"]

_MOST_STEPS: Final = 100_000
_FEW_STEPS: Final = 20
_MOST_SHOWN: Final = 1_000
_EXAMPLES: Final = {
    "list": ["lamina packs list", "lamina packs list --type domain --json"],
    "show": ["lamina packs show wafers", "lamina packs show wafers --limit 50 --json"],
    "create": [
        'lamina packs create wafers --type domain --description "How chips are made"',
        "lamina packs create talk --type session -u mira --unit 6h",
    ],
    "add": [
        'lamina packs add wafers "Yield drops above 22 degrees" --kind fact',
        "cat rule.txt | lamina packs add wafers --name cleaning --kind policy",
    ],
    "search": ['lamina packs search "clean room"', "lamina packs search yield --pack wafers --no-touch"],
    "fade": ["lamina packs fade --dry-run", "lamina packs fade --limit 1000"],
}

PackName = Annotated[str, typer.Argument(metavar="PACK", help="The pack's name.", show_default=False)]
MemoryIds = Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of memories of packs.", show_default=False)]
OfType = Annotated[PackType | None, typer.Option("--type", help="Only packs of this type.", show_default=False)]
Kind = Annotated[MemoryType, typer.Option("--kind", help="What kind of knowledge it is.")]
Label = Annotated[
    str | None, typer.Option("--name", help="A label; the memory that has it now is superseded.", show_default=False)
]
LearnedFrom = Annotated[PackSource, typer.Option("--source", help="What it was learned from.")]
Provenance = Annotated[
    str | None, typer.Option("--provenance", help="Where it was learned, in words.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    packs = group("Keep knowledge in named packs, which fade when nobody needs them.")
    for name, function in (
        ("list", list_),
        ("show", show),
        ("create", create),
        ("add", add),
        ("search", search),
        ("pin", pin),
        ("unpin", unpin),
        ("archive", archive),
        ("restore", restore),
    ):
        examples = _EXAMPLES.get(name, [f"lamina packs {name} 4f2c..."])
        command(packs, name, examples=examples, namespaced=False, tells=name == "search")(function)
    command(packs, "fade", examples=_EXAMPLES["fade"], scoped=False)(fade)
    command(packs, "scrub", examples=["lamina packs scrub", "lamina packs scrub --db notes.db"], scoped=False)(scrub)
    app.add_typer(packs, name="packs")


async def list_(
    session: Session,
    *,
    type: OfType = None,
    tag: Annotated[str | None, typer.Option("--tag", "-t", help="Only with this tag.", show_default=False)] = None,
    limit: Limit = 20,
    offset: Offset = 0,
    nl: Lines = False,
) -> None:
    """List packs by name: those that are shared, and with an owner that owner's own too."""
    from lamina.cli import output
    from lamina.cli.packs_shown import print_packs, summary_fields

    check_lines(session.as_json, nl=nl)
    async with session.kernel() as kernel:
        total = await kernel.packs.count(type=type, tag=tag, owner=session.reader)
        found = await kernel.packs.list(type=type, tag=tag, owner=session.reader, limit=limit, offset=offset)
    if nl:
        output.print_lines(map(summary_fields, found))
    elif session.as_json:
        output.print_json({"packs": [summary_fields(each) for each in found], "total": total})
    else:
        print_packs(found)
        if total > offset + len(found):
            output.note(f"{offset + 1} to {offset + len(found)} of {total}; --offset {offset + limit} shows the next.")


async def show(session: Session, pack: PackName, *, limit: Limit = 20, offset: Offset = 0) -> None:
    """Show what a pack is about, what it holds, and its memories as they are left; nothing counts as read."""
    from lamina.cli.output import print_json
    from lamina.cli.packs_shown import memory_fields, metadata_fields, print_memories, print_pack, summary_fields

    async with session.kernel() as kernel:
        summary = await kernel.packs.summary(pack, owner=session.reader)
        metadata = await kernel.packs.metadata(pack, owner=session.reader)
        memories = await kernel.packs.memories(
            pack, touch=False, include_archived=True, limit=min(limit, _MOST_SHOWN), offset=offset, owner=session.reader
        )
    if session.as_json:
        found = {"memories": [memory_fields(each) for each in memories]}
        print_json(summary_fields(summary) | metadata_fields(metadata) | found)
        return
    print_pack(summary, metadata)
    print_memories(memories)


async def create(
    session: Session,
    pack: PackName,
    *,
    type: Annotated[
        PackType, typer.Option("--type", help="How it is used, and so how fast it fades.")
    ] = PackType.PROJECT,
    description: Annotated[str, typer.Option("--description", "-d", help="What it is found by.")] = "",
    tag: NewTags = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Its memories fade after 1, 2, 4, 8 times so long: 12h, 30d.", show_default=False),
    ] = None,
) -> None:
    """Make a pack: an owner's own, or without an owner one that is shared. `user` and `session` packs need one."""
    decay = None
    if unit is not None:
        time = read_duration(unit)
        if time is None:
            raise typer.BadParameter(f"{unit!r} is no duration such as 12h or 30d", param_hint="--unit")
        decay = {"unit": time}
    from lamina.cli.output import print_json
    from lamina.cli.packs_shown import summary_fields

    async with session.kernel(creates=True) as kernel:
        await kernel.packs.create(
            pack, type, description=description, tags=tag or (), decay=decay, owner=session.reader
        )
        made = await kernel.packs.summary(pack, owner=session.reader)
    if session.as_json:
        print_json(summary_fields(made))
    else:
        typer.echo(made.id)


async def add(
    session: Session,
    pack: PackName,
    text: Text = None,
    *,
    kind: Kind = MemoryType.FACT,
    name: Label = None,
    source: LearnedFrom = PackSource.CONVERSATION,
    confidence: Annotated[float, typer.Option("--confidence", help="From 0 to 1.")] = 1.0,
    provenance: Provenance = None,
    tag: NewTags = None,
    meta: Meta = None,
    own_id: OwnId = None,
) -> None:
    """Add a memory to a pack."""
    from lamina.cli.output import print_json
    from lamina.cli.packs_shown import memory_fields

    content = read_text(text, what="text")
    async with session.kernel() as kernel:
        added = await kernel.packs.add(
            pack,
            content,
            kind,
            name=name,
            source=source,
            confidence=confidence,
            provenance=provenance,
            tags=tag or (),
            metadata=read_metadata(meta or ()),
            id=own_id,
            owner=session.reader,
        )
    if session.as_json:
        print_json(memory_fields(added))
    else:
        typer.echo(added.id)


async def search(
    session: Session,
    query: Query = None,
    *,
    pack: Annotated[
        list[str] | None,
        typer.Option("--pack", "-p", help="Only in this pack; may be repeated. Else in those that match best."),
    ] = None,
    packs: Annotated[int, typer.Option("--packs", min=1, max=100, help="In how many of those.")] = 2,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many, of each pack.")] = 5,
    no_touch: NoTouch = False,
    nl: Lines = False,
) -> None:
    """Find memories of packs, best first. What is found counts as read, and is whole again.

    With --no-touch it is shown as it is left, and stays so.
    """
    from lamina.cli import output
    from lamina.cli.packs_shown import hit_fields, hits_document, print_pack_hits

    check_lines(session.as_json, nl=nl)
    asked = read_text(query, what="query")
    async with session.kernel() as kernel:
        if pack:
            hits = await kernel.packs.retrieve(pack, asked, limit=limit, touch=not no_touch, owner=session.reader)
        else:
            hits = await kernel.packs.search(
                asked, packs=packs, per_pack=limit, touch=not no_touch, owner=session.reader
            )
    if nl:
        output.print_lines(map(hit_fields, hits))
        for mark in hits.degraded:
            output.note(output.degraded_line(mark).plain)
    elif session.as_json:
        output.print_json(hits_document(hits))
    else:
        print_pack_hits(hits)


async def fade(
    session: Session,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what fades next, when, and how far.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, max=_MOST_STEPS, help="Look at so many memories at most.", show_default=False),
    ] = None,
) -> None:
    """Let the memories that nobody has read for long fade, in all packs of the tenant.

    Exit code 1 if some could not be reduced; they are as they were, and the next call tries again.
    """
    from lamina.cli.output import print_json

    if dry_run:
        await _preview(session, limit or _FEW_STEPS)
        return
    with_model = session.settings.config.packs.reducer == "model"
    async with session.kernel(with_model=with_model) as kernel:
        report = await kernel.packs.degrade(limit=limit)
    if session.as_json:
        print_json(dataclasses.asdict(report))
    else:
        moved = ", ".join(f"{number} to {tier}" for tier, number in report.moved.items()) or "none"
        rest = "" if report.is_complete else " There are more: call it again."
        typer.echo(f"{counted(report.examined)} due; moved: {moved}; {report.failed} failed.{rest}")
    raise typer.Exit(int(report.failed > 0))


async def scrub(session: Session) -> None:
    """Leave in the file and its log no word of what packs have lost by fading, by edits and by deletion.

    For SQLite alone, in which all tenants share one index; the log is that of the whole file. The originals of
    memories that have faded stay, compressed, until they are deleted for good.
    """
    from lamina.cli.output import print_json

    async with session.kernel() as kernel:
        await kernel.packs.scrub()
    if session.as_json:
        print_json({"scrubbed": True})
    else:
        typer.echo("Scrubbed.")


async def pin(session: Session, ids: MemoryIds) -> None:
    """Never let memories fade."""
    await _each(session, "pin", ids, "pinned")


async def unpin(session: Session, ids: MemoryIds) -> None:
    """Let memories fade again."""
    await _each(session, "unpin", ids, "no longer pinned")


async def archive(session: Session, ids: MemoryIds) -> None:
    """Put memories into cold storage, where nothing finds them."""
    await _each(session, "archive", ids, "archived")


async def restore(session: Session, ids: MemoryIds) -> None:
    """Bring archived memories back, whole."""
    await _each(session, "restore", ids, "restored")


async def _preview(session: Session, limit: int) -> None:
    """Tell what fades next."""
    from lamina.cli.output import print_json
    from lamina.cli.packs_shown import print_steps, step_fields

    async with session.kernel() as kernel:
        steps = await kernel.packs.preview(limit=limit)
    if session.as_json:
        print_json({"steps": [step_fields(each) for each in steps]})
    else:
        print_steps(steps)


async def _each(session: Session, verb: str, ids: list[str], done: str) -> None:
    """Do the same to each memory; none is touched where one is not there."""
    from lamina.cli.output import print_json
    from lamina.cli.packs_shown import memory_fields

    async with session.kernel() as kernel:
        for id in ids:
            await kernel.packs.memory(id, touch=False, owner=session.reader)
        changed = [await getattr(kernel.packs, verb)(id, owner=session.reader) for id in ids]
    if session.as_json:
        print_json({"memories": [memory_fields(each) for each in changed]})
    else:
        typer.echo(f"{counted(len(changed))} {done}.")
