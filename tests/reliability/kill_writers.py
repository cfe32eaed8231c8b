"""What a program does until it is killed: six ways of writing, each with everything that it tells of it.

Each way is made anew in each process, and writes what nobody wrote before: names and texts hold the process's name.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import kill_places

from lamina import Kernel
from lamina.domain.message import Message, Role
from lamina.testing import FrozenClock

OWNER = "mira"
SOURCES = ("lamp.md", "harbour.md", "tide.md")
THREADS = ("north", "south")
SECTIONS = 24
FILLING = "The harbour lamp is lit at dusk and put out when the tide has turned. "
SHORT_LIVED = 3600.0
OLD_ROWS = 60


class Tell(Protocol):
    """Told of a change before it is tried, and has it done: it returns once that was acknowledged."""

    def __call__(
        self, values: Mapping[str, str | None], work: Callable[[], Awaitable[Any]], *, is_whole: bool = True
    ) -> Any: ...


class Writer:
    """One way of writing; `turn` is a handful of calls."""

    def __init__(self, place: kill_places.Place, name: str, clock: FrozenClock, tell: Tell) -> None:
        self.place = place
        self.name = name
        self.clock = clock
        self.tell = tell
        self.chance = random.Random(name)
        self.count = 0

    async def prepare(self, kernel: Kernel) -> None:
        """What has to be there, or to be known, before the first turn."""

    async def turn(self, kernel: Kernel) -> None:
        raise NotImplementedError

    def word(self) -> str:
        """One that no other text has."""
        self.count += 1
        return f"{self.name}w{self.count}w"

    def text(self, word: str) -> str:
        return f"{word} {' '.join(self.chance.sample(FILLING.split(), 6))}"

    async def store(self, kernel: Kernel, number: int = 1, **options: Any) -> None:
        words = [self.word() for _ in range(number)]
        items = [{"id": word, "content": self.text(word), "owner": OWNER, **options} for word in words]
        values = {f"memory:{item['id']}": item["content"] for item in items}
        await self.tell(values, lambda: kernel.memory_engine.store_many(items))


class Storing(Writer):
    async def turn(self, kernel: Kernel) -> None:
        await asyncio.gather(*(self.store(kernel) for _ in range(3)))
        await self.store(kernel, 4)


class Editing(Writer):
    async def prepare(self, kernel: Kernel) -> None:
        self.ids = [entry.id async for entry in kernel.memory_engine.scan(owner=OWNER)]

    async def turn(self, kernel: Kernel) -> None:
        while len(self.ids) < 40:
            begun = self.count
            await self.store(kernel, 10)
            self.ids += [f"{self.name}w{number}w" for number in range(begun + 1, self.count + 1)]
        chosen = self.chance.sample(self.ids, 4)
        await asyncio.gather(*(self.update(kernel, id) for id in chosen[1:]), self.forget(kernel, chosen[0]))

    async def update(self, kernel: Kernel, id: str) -> None:
        content = self.text(self.word())
        await self.tell({f"memory:{id}": content}, lambda: kernel.memory_engine.update(id, content=content))

    async def forget(self, kernel: Kernel, id: str) -> None:
        self.ids.remove(id)
        await self.tell({f"memory:{id}": None}, lambda: kernel.memory_engine.forget(id))


class Ingesting(Writer):
    async def turn(self, kernel: Kernel) -> None:
        source = self.chance.choice(SOURCES)
        await self.ingest(kernel, source)
        if self.chance.random() < 0.2:
            (document,) = [each for each in await kernel.rag.list_documents() if each.source == source]
            await self.tell({f"document:{source}": None}, lambda: kernel.rag.remove(document.id))

    async def ingest(self, kernel: Kernel, source: str) -> None:
        version = self.word()
        parts = "\n\n".join(f"# Part {number} of {version}\n\n{FILLING * 6}" for number in range(SECTIONS))
        text = f"{parts}\n\nThe end of {version}."
        await self.tell({f"document:{source}": version}, lambda: kernel.rag.ingest(text, source))


class Compacting(Writer):
    async def turn(self, kernel: Kernel) -> None:
        thread = self.chance.choice(THREADS)
        for _ in range(5):
            await self.talk(kernel, thread)
        await self.tell({}, lambda: kernel.conversation.compact(thread))

    async def talk(self, kernel: Kernel, thread: str) -> None:
        word = self.word()
        pair = [Message(role, self.text(word), id=f"{word}-{role.value}") for role in (Role.USER, Role.ASSISTANT)]
        values = {f"message:{thread}:{each.id}": each.text for each in pair}
        await self.tell(values, lambda: kernel.conversation.add_messages(thread, pair))


class Sweeping(Writer):
    """Memories of packs fade, memories with a lifetime expire, and relevance fades, as the clock goes on."""

    async def prepare(self, kernel: Kernel) -> None:
        await kernel.packs.create(f"pack-{self.name}", "session", owner=OWNER)
        self.short_lived = [each.id async for each in kernel.memory_engine.scan() if each.expires_at is not None]

    async def turn(self, kernel: Kernel) -> None:
        for _ in range(3):
            word = self.word()
            content = f"{self.text(word)}. {FILLING * 5}"
            added = partial(kernel.packs.add, f"pack-{self.name}", content, id=word, owner=OWNER)
            await self.tell({f"pack:{word}": content}, added)
        begun = self.count
        await self.store(kernel, 2, ttl=SHORT_LIVED)
        self.short_lived += [f"{self.name}w{number}w" for number in range(begun + 1, self.count + 1)]
        await self.store(kernel)
        expired = {f"memory:{id}": None for id in self.short_lived}
        self.short_lived = []
        await self.tell(expired, lambda: self.sweep(kernel), is_whole=False)

    async def sweep(self, kernel: Kernel) -> None:
        self.clock.advance(timedelta(hours=13))
        report = await kernel.run_maintenance(decay=True)
        if report.failures:
            raise RuntimeError(report.failures)


class Migrating(Writer):
    """Copies the files of version 1 that lie about, and makes more of them; the kernel's own file is of an old layout.

    A file is there until all of it has been copied: what one process left half done, the next one finishes.
    """

    async def turn(self, kernel: Kernel) -> None:
        self.place.write_earlier(self.word(), OLD_ROWS)
        await self.store(kernel)
        await self.copy(kernel)

    async def prepare(self, kernel: Kernel) -> None:
        await self.copy(kernel)

    async def copy(self, kernel: Kernel) -> None:
        for file, rows in self.place.earlier_files():
            values = {f"memory:{id}": content for id, content in rows.items()}
            await self.tell(values, partial(self.migrate, kernel, file), is_whole=False)
            file.unlink()

    async def migrate(self, kernel: Kernel, file: Path) -> None:
        report = await kernel.memory_engine.migrate_v1(file)
        if report.written + report.skipped != OLD_ROWS:
            raise RuntimeError(report)
        await kernel.memory_engine.reembed_missing()


WAYS: dict[str, type[Writer]] = {
    "storing": Storing,
    "editing": Editing,
    "ingesting": Ingesting,
    "compacting": Compacting,
    "sweeping": Sweeping,
    "migrating": Migrating,
}

WORD = re.compile(r"\w+?w\d+w\b")
"""What `Writer.word` makes."""


def words_of(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in WORD.findall(text)}
