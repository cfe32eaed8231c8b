"""The systems that are compared, behind one face: Lamina, what SQLite has for texts, and the peers."""

from __future__ import annotations

import importlib
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from speed.dataset import Item, Query

LAMINA: Final = "lamina"
FTS5: Final = "sqlite fts5"
MODES: Final = ("vector", "text", "hybrid")
BEST: Final = 10


class System(ABC):
    """A store of memories. Answers are the ids or the texts of what was found, best first."""

    modes: tuple[str, ...] = MODES
    scopes: tuple[bool, ...] = (True, False)
    """Whether it searches one owner's (True), and everybody's (False)."""

    fills_at_once: bool = False
    """Whether all that is to be stored goes in by one call, which makes the indexes too."""

    persistent: bool = True
    durability: str = "synced"
    """What is on the disk when an add returns."""

    @abstractmethod
    async def open(self, folder: Path) -> None:
        """Open the store of the folder, which exists."""

    @abstractmethod
    async def fill(self, items: Sequence[Item]) -> None: ...

    @abstractmethod
    async def add(self, item: Item) -> None: ...

    @abstractmethod
    async def search(self, query: Query, mode: str, *, scoped: bool) -> list[str]: ...

    @abstractmethod
    async def close(self) -> None: ...


class GivenVectors:
    """An embedder that looks vectors up, so that the store is measured and not a model.

    A text that was not given gets a vector drawn from a generator that is seeded with it.
    """

    provider = "benchmark"
    model = "given"

    def __init__(self) -> None:
        self._vectors: dict[str, Any] = {}

    def give(self, things: Sequence[Item | Query]) -> None:
        self._vectors.update((thing.text, thing.vector) for thing in things)

    def forget(self) -> None:
        self._vectors.clear()

    async def embed_documents(self, texts: Sequence[str]) -> list[Any]:
        return [self._of(text) for text in texts]

    async def embed_query(self, text: str) -> Any:
        return self._of(text)

    async def close(self) -> None:
        pass

    def _of(self, text: str) -> Any:
        found = self._vectors.get(text)
        if found is None:
            drawn = np.random.default_rng(list(text.encode())).standard_normal(384, dtype=np.float32)
            found = self._vectors[text] = drawn / np.linalg.norm(drawn)
        return found


class Lamina(System):
    """As a user calls it: `engine.store`, `store_many` and `recall`, whose results count as no access."""

    def __init__(self, **settings: Any) -> None:
        self.embedder = GivenVectors()
        self.touch = False
        self._settings = settings
        self.engine: Any = None

    async def open(self, folder: Path) -> None:
        from lamina import create_memory_engine

        self.engine = await create_memory_engine(path=folder / "lamina.db", embed=self.embedder, **self._settings)

    async def fill(self, items: Sequence[Item]) -> None:
        await self.engine.store_many([{"content": item.text, "owner": item.owner} for item in items])

    async def add(self, item: Item) -> None:
        await self.engine.store(item.text, owner=item.owner)

    async def search(self, query: Query, mode: str, *, scoped: bool) -> list[str]:
        owner = {"owner": query.owner} if scoped else {}
        found = await self.engine.recall(query.text, limit=BEST, mode=mode, touch=self.touch, **owner)
        return [result.entry.content for result in found]

    async def close(self) -> None:
        await self.engine.close()


class Fts5(System):
    """What SQLite itself has for texts: an index of words beside a table, joined on the owner; no vectors."""

    modes = ("text",)

    def __init__(self) -> None:
        self._connection: Any = None

    async def open(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "fts5.db", isolation_level=None)
        for statement in (
            "pragma journal_mode = wal",
            "pragma synchronous = full",
            "create table if not exists memory (number integer primary key, id text unique, owner text, content text)",
            "create index if not exists memory_owner on memory (owner)",
            "create virtual table if not exists words using fts5(content, content=memory, content_rowid=number)",
        ):
            self._connection.execute(statement)

    async def fill(self, items: Sequence[Item]) -> None:
        self._connection.execute("begin")
        for item in items:
            row = (item.id, item.owner, item.text)
            made = self._connection.execute("insert into memory (id, owner, content) values (?, ?, ?)", row)
            self._connection.execute("insert into words (rowid, content) values (?, ?)", (made.lastrowid, item.text))
        self._connection.execute("commit")

    async def add(self, item: Item) -> None:
        await self.fill([item])

    async def search(self, query: Query, mode: str, *, scoped: bool) -> list[str]:  # noqa: ARG002
        words = " or ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query.text)))
        words = words.replace(" or ", " OR ")
        join = "select memory.id from words join memory on number = words.rowid where words match ?"
        own = (f"{join} and owner = ? order by bm25(words) limit ?", (words, query.owner, BEST))
        everyone = (f"{join} order by rank limit ?", (words, BEST))
        return [id for (id,) in self._connection.execute(*(own if scoped else everyone))]

    async def close(self) -> None:
        self._connection.close()


def system_named(name: str) -> System:
    if name == LAMINA:
        return Lamina()
    if name == FTS5:
        return Fts5()
    return importlib.import_module("speed.peer").Peer(name)


def with_vectors(system: System, things: Sequence[Item | Query]) -> None:
    """Lamina looks vectors up by text; the others are given them with each call."""
    if isinstance(system, Lamina):
        system.embedder.give(things)
