"""A knowledge graph kept as ordinary memories: one for each entity, one for each relation.

What they are stands in their metadata under `knowledge_graph`; their text says it in words, so that every search
finds them. Names, types and observations are compared as they are shown: in Unicode's composed form, white space
made one space.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lamina.domain.filters import Where
from lamina.domain.memory import MemoryEntry
from lamina.domain.text import clean, content_digest
from lamina.errors import Conflict, InvalidInput, MemoryNotFound
from lamina.mcp.bound_memories import BoundMemories

__all__ = ["Entity", "Graph", "GraphStore", "Relation", "Wordings", "plain"]

KEY: Final = "knowledge_graph"
_ATTEMPTS: Final = 20


def plain(text: str) -> str:
    """The text as it is stored and compared."""
    return " ".join(unicodedata.normalize("NFC", clean(text)).split())


@dataclass(slots=True)
class Entity:
    """Something that has a name, and what was observed of it."""

    name: str
    type: str
    observations: list[str]
    id: str = ""
    revision: int = 0

    @property
    def text(self) -> str:
        """In words."""
        return "\n".join([f"{self.name} ({self.type})", *(f"- {each}" for each in self.observations)])

    @property
    def facts(self) -> dict[str, Any]:
        """As metadata."""
        return {KEY: {"is": "entity", "name": self.name, "type": self.type, "observations": self.observations}}


@dataclass(frozen=True, slots=True)
class Relation:
    """One entity's relation to another."""

    source: str
    target: str
    type: str
    id: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.source} {self.type} {self.target}"

    @property
    def facts(self) -> dict[str, Any]:
        """As metadata."""
        return {KEY: {"is": "relation", "from": self.source, "to": self.target, "type": self.type}}


@dataclass(slots=True)
class Graph:
    """Entities by name, in the order of remembering, and relations."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)

    def entity(self, name: str) -> Entity:
        """The entity of this name.

        Raises:
            InvalidInput: there is none.
        """
        found = self.entities.get(plain(name))
        if found is None:
            raise InvalidInput("entityName", f"there is no entity {plain(name)[:100]!r}", "Create it first.")
        return found

    def around(self, names: set[str]) -> Graph:
        """These entities, and the relations of which at least one end is among them."""
        return Graph(
            {name: each for name, each in self.entities.items() if name in names},
            [each for each in self.relations if each.source in names or each.target in names],
        )


class GraphStore:
    """The graph of one binding. Every change goes through revisions: nobody's is lost."""

    def __init__(self, memories: BoundMemories) -> None:
        self._memories = memories

    async def load(self) -> Graph:
        """The whole graph of the owner."""
        graph = Graph()
        async with self._memories.walking(where=Where((KEY, "is")).exists()) as entries:
            async for entry in entries:
                _put(graph, entry, self._memories.binding.owner)
        return graph

    async def found(self, query: str) -> set[str]:
        """The names of the entities that a search by meaning and by words finds."""
        results = await self._memories.search(query, limit=20, where=Where((KEY, "is")).eq("entity"), touch=True)
        facts = [each.entry.metadata.get(KEY) for each in results]
        return {str(each.get("name")) for each in facts if isinstance(each, Mapping)}

    async def add_entity(self, entity: Entity) -> bool:
        """Store a new entity; False if somebody else made one of this name meanwhile."""
        return await self._add(entity.text, entity.facts, ["entity", entity.name])

    async def add_relation(self, relation: Relation) -> None:
        """Store a new relation."""
        await self._add(relation.text, relation.facts, ["relation", relation.source, relation.target, relation.type])

    async def observe(self, entity: Entity, contents: Sequence[str]) -> list[str]:
        """Add observations; those that are new. Raises as `forget_observations`."""
        before, after = await self._edit(entity, lambda known: list(dict.fromkeys([*known, *contents])))
        return after[len(before) :]

    async def forget_observations(self, entity: Entity, contents: Sequence[str]) -> int:
        """Take observations away; how many there were.

        Raises:
            InvalidInput: the entity is gone.
            Conflict: it is changed by others all the time.
        """
        before, after = await self._edit(entity, lambda known: [each for each in known if each not in contents])
        return len(before) - len(after)

    async def delete(self, ids: Sequence[str]) -> int:
        """Forget these; how many were there."""
        gone = 0
        for id in ids:
            try:
                await self._memories.delete(id)
            except MemoryNotFound:
                continue
            gone += 1
        return gone

    async def _edit(self, entity: Entity, edited: Callable[[list[str]], list[str]]) -> tuple[list[str], list[str]]:
        """Change the observations of what the entity is by now, here and in the store; what they were and are."""
        for _ in range(_ATTEMPTS):
            before, after = entity.observations, edited(entity.observations)
            if before == after:
                return before, after
            changed = Entity(entity.name, entity.type, after)
            try:
                stored = await self._memories.update(
                    entity.id, expected_revision=entity.revision, content=changed.text, metadata=changed.facts
                )
            except (Conflict, MemoryNotFound):
                newer = (await self.load()).entity(entity.name)
                entity.id, entity.revision, entity.observations = newer.id, newer.revision, newer.observations
            else:
                entity.revision, entity.observations = stored.revision, after
                return before, after
        raise Conflict(f"The entity {entity.name!r}", "it is being changed by others")

    async def _add(self, text: str, facts: dict[str, Any], key: list[str]) -> bool:
        try:
            return await self._memories.add(text, metadata=facts, id=self._id(key)) is not None
        except Conflict:
            return False

    def _id(self, key: list[str]) -> str:
        """One thing of one owner has one id, so that two who make it at once do not make two."""
        binding = self._memories.binding
        named = json.dumps([binding.owner, binding.namespace, *key])
        return f"kg_{hashlib.sha256(named.encode()).hexdigest()[:40]}"


class Wordings:
    """What the parts of a graph say: a text that two of them shared would be kept as one memory."""

    def __init__(self, graph: Graph) -> None:
        parts: list[Entity | Relation] = [*graph.entities.values(), *graph.relations]
        self._taken = {content_digest(each.text) for each in parts}

    def take(self, text: str) -> None:
        """Note that one more part says this.

        Raises:
            InvalidInput: another one says it already.
        """
        digest = content_digest(text)
        if digest in self._taken:
            raise InvalidInput("name", "something else in the graph reads exactly the same", "Word it differently.")
        self._taken.add(digest)


def _put(graph: Graph, entry: MemoryEntry, owner: str) -> None:
    facts = entry.metadata.get(KEY)
    if not isinstance(facts, Mapping) or entry.owner != owner:
        return
    match facts:
        case {"is": "entity", "name": str(name), "type": str(type), "observations": list(observed)}:
            observations = [str(each) for each in observed]
            graph.entities.setdefault(name, Entity(name, type, observations, entry.id, entry.revision))
        case {"is": "relation", "from": str(source), "to": str(target), "type": str(type)}:
            graph.relations.append(Relation(source, target, type, entry.id))
        case _:
            pass  # an ordinary memory whose metadata happens to have the key
