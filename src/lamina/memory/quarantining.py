"""Taking everything that came from a source out of recall, with all that was made from it, and putting it back.

A memory in quarantine is superseded by nothing: `superseded_by` holds the number of the act in place of an id, which
every backend leaves out of a recall. What it superseded holds again meanwhile. Its metadata says what was before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import QUARANTINE, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import check_name
from lamina.errors import Conflict, InvalidInput, InvalidType, MemoryNotFound
from lamina.memory.inputs import read_instant
from lamina.memory.runtime import Runtime
from lamina.memory.superseding import ATTEMPTS, Link, Superseder, superseded_ids
from lamina.memory.walking import walk
from lamina.ports.memory_adapter import Update

__all__ = ["Quarantine", "QuarantineReceipt", "source_matcher"]

QUARANTINED: Final = "quarantined"
"""In the metadata of a memory in quarantine: the act, and what `superseded_by` was."""

SEPARATORS: Final = ":/#"
"""What a prefix of sources ends with, so that `web:a.example/` is not about `web:a.example.evil`."""


@dataclass(frozen=True, slots=True)
class QuarantineReceipt:
    """What one act took out of recall: the ids of what came from the source, and of what was made from it."""

    id: str
    at: datetime
    source: str
    """The source, or with a `*` behind it the prefix of sources."""
    from_source: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    """Of the source, where a kernel took it out: none of their chunks is found."""

    @property
    def ids(self) -> list[str]:
        """The memories, from the source and derived."""
        return [*self.from_source, *self.derived]


@dataclass(frozen=True, slots=True)
class _Origin:
    source: str | None
    derived_from: Sequence[str]


class Quarantine:
    """The quarantine of one engine."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._superseder = Superseder(runtime)

    async def affected(
        self, scope: Scope, source: str | None, prefix: str | None, others: Collection[str]
    ) -> tuple[list[str], list[str]]:
        """The ids of what came from the source, and of what was made from that, through any number of steps.

        `others` are ids of what is no memory, such as documents, and came from there too.

        Reads everything in the scope, expired memories too.

        Raises:
            InvalidInput: not exactly one of both was given, or the prefix ends with no separator.
        """
        matches = source_matcher(source, prefix)
        origins: dict[str, _Origin] = {}
        async for page in walk(self._runtime, scope, self._everything()):
            origins.update({each.id: _Origin(each.source, tuple(each.derived_from)) for each in page})
        from_source = [id for id, origin in origins.items() if origin.source is not None and matches(origin.source)]
        return from_source, _made_from([*from_source, *others], origins)

    async def put(
        self, scope: Scope, source: str | None, prefix: str | None, others: Collection[str]
    ) -> QuarantineReceipt:
        """Take it out: see `MemoryEngine.quarantine`."""
        named = f"{prefix}*" if source is None else source
        source_matcher(source, prefix)
        receipt = QuarantineReceipt(self._runtime.new_id(), self._runtime.clock(), named)
        while True:
            from_source, derived = await self.affected(scope, source, prefix, others)
            done = set(receipt.ids)
            fresh = dict.fromkeys(from_source, False) | dict.fromkeys(derived, True)
            taken = await self._take(scope, {id: fresh[id] for id in fresh if id not in done}, receipt)
            receipt.from_source.extend(id for id in from_source if id in taken)
            receipt.derived.extend(id for id in derived if id in taken)
            if not taken:  # nothing was stored meanwhile
                return receipt

    async def listed(self, scope: Scope) -> list[QuarantineReceipt]:
        """The acts of which something is in quarantine still, the first first."""
        acts: dict[str, QuarantineReceipt] = {}
        async for page in walk(self._runtime, scope, self._everything()):
            for entry in filter(lambda each: each.is_quarantined, page):
                record = _record(entry)
                empty = QuarantineReceipt(_act(entry), _at(entry), str(record.get("source")))
                act = acts.setdefault(empty.id, empty)
                (act.derived if record.get("derived") else act.from_source).append(entry.id)
        return sorted(acts.values(), key=lambda act: (act.at, act.id))

    async def release(self, scope: Scope, act: str) -> list[str]:
        """Put back what the act took out: see `MemoryEngine.release`."""
        released = [id for each in await self.listed(scope) if each.id == act for id in each.ids]
        if not released:
            raise MemoryNotFound(act)
        back = [id for id in released if await self._change(scope, id, self._put_back)]
        for id in back:
            await self._link_again(scope, id)
        return back

    async def _take(self, scope: Scope, ids: Mapping[str, bool], receipt: QuarantineReceipt) -> set[str]:
        """Those of the ids that are in quarantine now and were not before; with each, whether it is derived."""

        async def mark(entry: MemoryEntry) -> dict[str, Any]:
            if entry.is_quarantined:
                return {}
            record = {
                "at": receipt.at.isoformat(),
                "source": receipt.source,
                "superseded_by": entry.superseded_by,
                "derived": ids[entry.id],
            }
            metadata = {**entry.metadata, QUARANTINED: record}
            return {"superseded_by": f"{QUARANTINE}{receipt.id}", "metadata": metadata}

        found = [each[1] for id in ids if (each := await self._stored(scope, id)) is not None]
        going = [entry for entry in found if not entry.is_quarantined]
        await self._superseder.release(going)  # first, so that what fails in between hides nothing
        return {entry.id for entry in going if await self._change(scope, entry.id, mark)}

    async def _put_back(self, entry: MemoryEntry) -> dict[str, Any]:
        if not entry.is_quarantined:
            return {}
        former = _record(entry).get("superseded_by")
        exists = isinstance(former, str) and await self._stored(Scope(entry.tenant, entry.owner), former) is not None
        metadata = {key: value for key, value in entry.metadata.items() if key != QUARANTINED}
        return {"superseded_by": former if exists else None, "metadata": metadata}

    async def _link_again(self, scope: Scope, id: str) -> None:
        """Let it supersede again what it did, as far as nothing else does by now."""
        found = await self._stored(scope, id)
        if found is None:
            return
        by = found[1]
        for old_id in superseded_ids(by):
            old = await self._stored(scope, old_id)
            if old is None:
                continue
            try:
                await self._superseder.link(Link(old[1], by, by.occurred_at or by.created_at, None))
            except (Conflict, InvalidInput, MemoryNotFound):
                continue  # it is superseded by another one, or trusted by now

    async def _change(self, scope: Scope, id: str, change: Callable[[MemoryEntry], Any]) -> bool:
        """Make the change in the memory as it is; False if there is none to make."""
        for _ in range(ATTEMPTS):
            found = await self._stored(scope, id)
            changes = {} if found is None else await change(found[1])
            if found is None or not changes:
                return False
            update = Update(id, {**changes, "updated_at": self._runtime.clock()}, found[1].revision)
            if (await found[0].update_many(scope, [update]))[0]:
                return True
        raise Conflict(f"The memory {id!r}", f"it changed {ATTEMPTS} times while its quarantine changed")

    async def _stored(self, scope: Scope, id: str) -> tuple[Any, MemoryEntry] | None:
        """The memory and its store, expired or not."""
        for store in self._runtime.stores():
            entry = await store.get(scope, id)
            if entry is not None:
                return store, entry
        return None

    def _everything(self) -> MemoryFilter:
        return MemoryFilter(now=self._runtime.clock(), expiry=Expiry.ANY)


def source_matcher(source: str | None, prefix: str | None) -> Callable[[str], bool]:
    """What tells whether a source is the one that is meant, or begins with the prefix.

    Raises:
        InvalidInput: not exactly one of both was given, or the prefix ends with no separator.
    """
    if (source is None) == (prefix is None):
        raise InvalidInput("source", "must be given, or a prefix, and not both", "Give source='web:a.example/1'.")
    if prefix is None:
        wanted = check_name("source", source)
        return lambda each: each == wanted
    start = check_name("prefix", prefix)
    if start[-1] not in SEPARATORS:
        problem = f"ends with {start[-1]!r}, and would be about other sources too"
        raise InvalidInput("prefix", problem, f"End it with one of {' '.join(SEPARATORS)}, or give the source.")
    return lambda each: each.startswith(start)


def _made_from(ids: Collection[str], origins: Mapping[str, _Origin]) -> list[str]:
    """What was made from these, and from that, and so on."""
    made: dict[str, list[str]] = {}
    for id, origin in origins.items():
        for each in origin.derived_from:
            made.setdefault(each, []).append(id)
    seen, open_ones = set(ids), list(ids)
    found: list[str] = []
    while open_ones:
        for child in made.get(open_ones.pop(), ()):
            if child not in seen:
                seen.add(child)
                found.append(child)
                open_ones.append(child)
    return found


def _act(entry: MemoryEntry) -> str:
    return (entry.superseded_by or "").removeprefix(QUARANTINE)


def _record(entry: MemoryEntry) -> Mapping[str, Any]:
    record = entry.metadata.get(QUARANTINED)
    return record if isinstance(record, Mapping) else {}


def _at(entry: MemoryEntry) -> datetime:
    """When it was put away; if somebody has edited the record of that, when they did."""
    try:
        at = read_instant("at", _record(entry).get("at"))
    except (InvalidInput, InvalidType):
        at = None
    return at or entry.updated_at
