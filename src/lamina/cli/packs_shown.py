"""How packs and their memories are shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from lamina.cli.output import console, degraded_line, instant, preview, print_facts, printable

if TYPE_CHECKING:
    from lamina.domain.pack import PackHit, PackMemory, PackMetadata, PackSummary
    from lamina.domain.recall import Results
    from lamina.packs.fading import FadingStep

__all__ = [
    "hit_fields",
    "hits_document",
    "memory_fields",
    "metadata_fields",
    "print_memories",
    "print_pack",
    "print_pack_hits",
    "print_packs",
    "print_steps",
    "step_fields",
    "summary_fields",
]

_TIMES = ("created_at", "updated_at", "last_accessed", "tier_since", "pinned_at", "expires_at")


def summary_fields(pack: PackSummary) -> dict[str, Any]:
    """What a pack is about, as JSON can carry it."""
    fields = dataclasses.asdict(pack)
    return fields | {name: instant(fields[name]) for name in ("created_at", "updated_at")}


def metadata_fields(metadata: PackMetadata) -> dict[str, Any]:
    """What a pack holds, as JSON can carry it."""
    fields = dataclasses.asdict(metadata)
    last = metadata.access.last_accessed
    fields["access"]["last_accessed"] = None if last is None else instant(last)
    return fields


def memory_fields(memory: PackMemory) -> dict[str, Any]:
    """A memory as JSON can carry it, without its vector."""
    fields = {field.name: getattr(memory, field.name) for field in dataclasses.fields(memory)}
    del fields["embedding"]
    fields["relationships"] = [dataclasses.asdict(each) for each in memory.relationships]
    return fields | {name: None if fields[name] is None else instant(fields[name]) for name in _TIMES}


def hit_fields(hit: PackHit) -> dict[str, Any]:
    """What was found, as JSON can carry it."""
    return {"score": hit.score, "found_in": hit.found_in.value, **memory_fields(hit.memory)}


def hits_document(hits: Results[PackHit]) -> dict[str, Any]:
    """All that was found, as JSON can carry it."""
    return {
        "results": [hit_fields(each) for each in hits],
        "degraded": [dataclasses.asdict(mark) for mark in hits.degraded],
    }


def step_fields(step: FadingStep) -> dict[str, Any]:
    """What fades next, as JSON can carry it."""
    return dataclasses.asdict(step) | {"at": instant(step.at)}


def print_packs(packs: Sequence[PackSummary]) -> None:
    """A table with a line for each."""
    rows = [
        (printable(each.name), each.type.value, printable(each.owner or "shared"), preview(each.description))
        for each in packs
    ]
    _print_table(("pack", "type", "owner", "description"), rows)


def print_pack(pack: PackSummary, metadata: PackMetadata) -> None:
    """What it is about, and what it holds."""
    tiers = {tier.value: number for tier, number in metadata.tier_distribution.items()}
    facts = summary_fields(pack) | {"memories": metadata.memory_count, "tiers": tiers}
    print_facts({key: value for key, value in facts.items() if value not in (None, {}, [], "")})


def print_memories(memories: Sequence[PackMemory]) -> None:
    """A table with a line for each: as much as its tier has left."""
    rows = [(printable(each.id), each.memory_type.value, _tier(each), preview(each.content)) for each in memories]
    _print_table(("id", "kind", "tier", "text"), rows)


def print_pack_hits(hits: Results[PackHit]) -> None:
    """A table, best first; and what was degraded."""
    rows = [
        (
            Text("" if each.score is None else f"{each.score:.2f}", style="bold"),
            Group(printable(each.memory.content), Text(f"{each.memory.id}  found in {each.found_in}", style="dim")),
        )
        for each in hits
    ]
    _print_table(("score", "memory"), rows)
    for mark in hits.degraded:
        console().print(degraded_line(mark))


def print_steps(steps: Sequence[FadingStep]) -> None:
    """A table with a line for each, the first first."""
    rows = [
        (
            instant(each.at)[:16],
            f"{each.tier} > {each.next_tier}",
            printable(each.pack),
            printable(each.name or each.id),
        )
        for each in steps
    ]
    _print_table(("when", "step", "pack", "memory"), rows)


def _tier(memory: PackMemory) -> str:
    return f"{memory.tier}, pinned" if memory.pinned_at is not None else memory.tier.value


def _print_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if not rows:
        console().print(Text("Nothing found.", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)
