"""How pack memories come to relate to and to supersede each other, planned before anything is written.

A memory is superseded by one other at most, so that what is above it is a chain, and a circle is found by
walking that up. Stores load what is kept of the memories concerned, and of all above them, plan, and write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from lamina.domain.pack import SUPERSEDES, PackMemory, Relationship
from lamina.errors import Conflict, InvalidInput

__all__ = [
    "Link",
    "NameHolder",
    "RelatedMemory",
    "concerned",
    "heir",
    "plan_addition",
    "plan_change",
    "plan_supersession",
]

Link: TypeAlias = tuple[str, str]
"""The id of a memory that becomes superseded, and of the one that it is superseded by."""

NameHolder: TypeAlias = tuple[str, str]
"""A pack's id and a name in it."""


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """What relations are judged by; `owner` is the pack's."""

    id: str
    owner: str | None
    superseded_by: str | None
    is_deleted: bool


def concerned(memories: Sequence[PackMemory]) -> list[str]:
    """The ids of all that these name in their relations, themselves among it."""
    ids = [each.id for each in memories]
    ids += [each.superseded_by for each in memories if each.superseded_by is not None]
    ids += [relationship.target_id for each in memories for relationship in each.relationships]
    return list(dict.fromkeys(ids))


def plan_addition(
    memories: Sequence[PackMemory],
    owners: Mapping[str, str | None],
    *,
    kept: Mapping[str, RelatedMemory],
    holders: Mapping[NameHolder, str],
) -> tuple[list[PackMemory], list[Link]]:
    """The new memories with both sides of what they say, and all that becomes superseded, kept ones too.

    Args:
        memories: What is to be added, of ids that are free.
        owners: Of their packs, by the packs' ids.
        kept: The memories that are `concerned`, and those above them, by id.
        holders: The live memories that have a name which one of the new ones is to have.

    Raises:
        Conflict: a memory would be superseded by two.
        InvalidInput: a target is not there or of another owner, or they would supersede each other in a circle.
    """
    new = {each.id: RelatedMemory(each.id, owners[each.pack_id], None, is_deleted=False) for each in memories}
    held = {id: RelatedMemory(id, owners[pack_id], None, is_deleted=False) for (pack_id, _), id in holders.items()}
    plan = _Plan({**held, **kept, **new})
    for memory in memories:
        for relationship in memory.relationships:
            plan.relate(memory.id, relationship)
        if memory.superseded_by is not None:
            plan.check_target("superseded_by", memory.id, memory.superseded_by)
            plan.supersede(memory.id, memory.superseded_by)
    holding = dict(holders)
    for memory in memories:
        if memory.name is None or not plan.is_live(memory.id):
            continue
        former = holding.get((memory.pack_id, memory.name))
        if former is not None and plan.is_live(former):
            plan.supersede(former, memory.id)
        holding[memory.pack_id, memory.name] = memory.id
    return [plan.completed(memory) for memory in memories], plan.links


def plan_change(
    former: PackMemory, memory: PackMemory, owner: str | None, *, kept: Mapping[str, RelatedMemory]
) -> tuple[list[Link], list[str]]:
    """What a change of relationships supersedes, and the ids of what is live again by it.

    Relationships that the memory had before are not judged anew.

    Raises:
        Conflict, InvalidInput: as for `plan_addition`.
    """
    plan = _Plan({**kept, former.id: RelatedMemory(former.id, owner, former.superseded_by, former.is_deleted)})
    for relationship in memory.relationships:
        if relationship not in former.relationships:
            plan.relate(memory.id, relationship)
    revived = [
        each.target_id for each in former.relationships if each.type == SUPERSEDES and each not in memory.relationships
    ]
    return plan.links, revived


def plan_supersession(old_id: str, by: str, *, kept: Mapping[str, RelatedMemory]) -> bool:
    """Whether there is something to do; both are kept.

    Raises:
        Conflict, InvalidInput: as for `plan_addition`.
    """
    plan = _Plan(kept)
    plan.check_target("by", by, old_id)
    plan.supersede(old_id, by)
    return bool(plan.links)


def heir(start: str | None, gone: AbstractSet[str], *, kept: Mapping[str, RelatedMemory]) -> str | None:
    """What is to supersede a memory whose superseder goes: the first that stays, from `start` on upwards."""
    passed: set[str] = set()
    current = start
    while current is not None and current in gone and current not in passed:
        passed.add(current)
        current = kept[current].superseded_by
    return None if current in passed else current


class _Plan:
    def __init__(self, known: Mapping[str, RelatedMemory]) -> None:
        self._known = known
        self._above = {each.id: each.superseded_by for each in known.values()}
        self.links: list[Link] = []

    def is_live(self, id: str) -> bool:
        return self._above.get(id) is None

    def relate(self, source: str, relationship: Relationship) -> None:
        target = relationship.target_id
        self.check_target("relationships", source, target, is_read_only=relationship.type != SUPERSEDES)
        if relationship.type == SUPERSEDES:
            self.supersede(target, source)

    def check_target(self, field: str, source: str, target: str, *, is_read_only: bool = False) -> None:
        """Refuse a target that is not there for the owner of the source; both look alike from outside."""
        if source == target:
            raise InvalidInput(field, "names the memory itself", "Give the id of another memory.")
        found, owner = self._known.get(target), self._known[source].owner
        is_there = found is not None and not found.is_deleted
        if not is_there or (found.owner != owner and not (is_read_only and found.owner is None)):  # type: ignore[union-attr]
            remedy = "Give the id of a memory of the same owner, or of the same batch."
            raise InvalidInput(field, f"no memory here has the id {target!r}", remedy)

    def supersede(self, old: str, by: str) -> None:
        current = self._above[old]
        if current == by:
            return
        if current is not None:
            problem = f"is superseded by {current!r} already"
            raise Conflict(f"The memory {old!r}", problem, "Supersede that one instead.")
        if old in self._chain(by):
            problem = f"{by!r} cannot supersede {old!r}, which supersedes it"
            raise InvalidInput("relationships", problem, "Let the newest one supersede the others.")
        self._above[old] = by
        self.links.append((old, by))

    def completed(self, memory: PackMemory) -> PackMemory:
        """The memory with both sides of what was planned."""
        given = {each.target_id for each in memory.relationships if each.type == SUPERSEDES}
        more = [Relationship(SUPERSEDES, old) for old, by in self.links if by == memory.id and old not in given]
        return memory.replace(relationships=[*memory.relationships, *more], superseded_by=self._above[memory.id])

    def _chain(self, id: str) -> Iterator[str]:
        passed: set[str] = set()
        current: str | None = id
        while current is not None and current not in passed:
            passed.add(current)
            yield current
            current = self._above.get(current)
