"""Whatever is asked of a kernel, in whatever order, and whatever happens in between: it is what was acknowledged.

What happens in between: a restart, the end of the process without one, a jump of the clock, a sweep, a backup and the
way back to it, and a move of all memories through another backend.
"""

from __future__ import annotations

import asyncio
import copy
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count, groupby
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from faults_injected import SteadyModel
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from machine_model import Model, Row, Talk
from services import IN_CI

from lamina.errors import MemoryNotFound, ScopeError, ThreadArchivedError
from lamina.importers.ndjson import export_ndjson, import_ndjson
from lamina.kernel import Kernel, ModelRouter
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine
from lamina.testing import FrozenClock, HashingEmbedder

SOAK: Final = bool(os.environ.get("LAMINA_SOAK"))
THOROUGHNESS: Final = settings(
    max_examples=500 if SOAK else 20,
    stateful_step_count=50 if SOAK else 30,
    derandomize=IN_CI and not SOAK,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
SETTINGS: Final[dict[str, Any]] = {"conversation": {"compaction": {"threshold": 8, "keep_recent": 3}}}
OWNERS: Final = ("mira", "tomas", "mira%")
owners = st.sampled_from(OWNERS)
TTLS: Final = (None, None, timedelta(hours=3), timedelta(days=2))
DST: Final = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
"""Half an hour before the clocks of Europe are put back, and show the same hour again."""


def spelt(number: int) -> str:
    """A word of its own for each number, which is no other's beginning."""
    return "zu" + "".join("bdfgklmnprst"[int(digit)] + "aeiou"[int(digit) % 5] for digit in f"{number:04d}") + "x"


class Living(RuleBasedStateMachine):
    """A kernel on a file beside the model; each run has a folder of its own."""

    folder: ClassVar[Path]
    wait: ClassVar[Callable[..., Any]]
    elsewhere: ClassVar[tuple[str, ...]]
    runs: ClassVar = count()

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.clock = FrozenClock(DST - timedelta(days=40))
        self.numbers = count(1)
        self.home = self._new_folder()
        self.kernel = self._opened()
        self.saved: tuple[Path, Model] | None = None

    def teardown(self) -> None:
        self.find_everything()
        self.wait(self.kernel.stop())

    def _new_folder(self) -> Path:
        home = self.folder / str(next(self.runs))
        home.mkdir()
        return home

    def _opened(self) -> Kernel:
        router = ModelRouter(complete=SteadyModel(), embed=HashingEmbedder(64))
        kernel = Kernel({**SETTINGS, "data_dir": self.home}, model_router=router, clock=self.clock)
        self.wait(kernel.start())
        return kernel

    @property
    def engine(self) -> MemoryEngine:
        return self.kernel.memory_engine

    def _new(self) -> tuple[str, str]:
        number = next(self.numbers)
        return f"m{number}", f"The {spelt(number)} {spelt(number + 5000)} stands there"

    def _some(self, data: Any, found: Any) -> Any:
        return data.draw(st.sampled_from(sorted(found)))

    # Memories

    @rule(owner=owners, ttls=st.lists(st.sampled_from(TTLS), min_size=1, max_size=4))
    def store(self, owner, ttls):
        rows = {}
        for ttl in ttls:
            id, content = self._new()
            rows[id] = Row(owner, content, None if ttl is None else self.clock() + ttl, ttl)
        given = [{"content": row.content, "owner": owner, "id": id, "ttl": row.ttl} for id, row in rows.items()]
        stored = self.wait(self.engine.store_many(given) if len(given) > 1 else self.engine.store(given[0]))
        assert stored == (list(rows) if len(rows) > 1 else next(iter(rows)))
        self.model.memories |= rows

    @precondition(lambda self: self.model.memories)
    @rule(data=st.data())
    def say_again(self, data):
        """Which confirms it, and renews how long it is kept; what was superseded holds again."""
        id = self._some(data, self.model.memories)
        row = self.model.memories[id]
        assert self.wait(self.engine.store(row.content, owner=row.owner)) == id
        row.expires_at = None if row.ttl is None else self.clock() + row.ttl
        row.superseded_by = None

    @precondition(lambda self: self.model.memories)
    @rule(data=st.data(), owner=owners)
    def update(self, data, owner):
        id = self._some(data, self.model.memories)
        row, (_, content) = self.model.memories[id], self._new()
        if owner != row.owner:
            with pytest.raises(MemoryNotFound):
                self.wait(self.engine.update(id, owner=owner, content=content))
            return
        self.wait(self.engine.update(id, owner=owner, content=content))
        if row.former is not None:
            row.former.append(row.content)
        row.content = content

    @precondition(lambda self: self.model.memories)
    @rule(data=st.data(), owner=owners)
    def forget(self, data, owner):
        id = self._some(data, self.model.memories)
        is_own = self.model.memories[id].owner == owner
        assert self.wait(self.engine.forget(id, owner=owner)) is is_own
        if is_own:
            self.model.forget(id)

    @rule(data=st.data(), owner=owners)
    def supersede(self, data, owner):
        lasting = [id for id, row in self.model.current(owner).items() if row.ttl is None]
        if len(lasting) < 2:
            return
        old, new = data.draw(st.permutations(sorted(lasting)))[:2]
        self.wait(self.engine.supersede(old, by=new, owner=owner))
        self.model.memories[old].superseded_by = new

    @precondition(lambda self: self.model.memories)
    @rule(data=st.data())
    def restore_what_is_there(self, data):
        """Which changes nothing."""
        id = self._some(data, self.model.memories)
        entry = self.wait(self.engine.get(id, owner=self.model.memories[id].owner))
        report = self.wait(self.engine.restore([entry.replace(content="something else")]))
        assert (report.written, report.skipped) == (0, 1)

    # Threads

    @rule(owner=owners, number=st.integers(0, 2), lines=st.integers(1, 5))
    def say(self, owner, number, lines):
        name = f"thread-{number}"
        talk = self.model.threads.get(name, Talk(owner))
        said = [f"Line {next(self.numbers)}" for _ in range(lines)]
        adding = self.kernel.conversation.add_messages(
            name, [{"role": "user", "content": s} for s in said], owner=owner
        )
        if talk.owner != owner or talk.is_archived:
            with pytest.raises(ScopeError if talk.owner != owner else ThreadArchivedError):
                self.wait(adding)
            return
        self.wait(adding)
        self.model.threads.setdefault(name, talk).said += said

    @precondition(lambda self: self.model.threads)
    @rule(data=st.data(), deed=st.sampled_from(("compact", "archive", "unarchive", "delete")))
    def change_a_thread(self, data, deed):
        name = self._some(data, self.model.threads)
        talk = self.model.threads[name]
        self.wait(getattr(self.kernel.conversation, deed)(name, owner=talk.owner))
        if deed == "delete":
            del self.model.threads[name]
        elif deed != "compact":
            talk.is_archived = deed == "archive"

    # Documents

    @rule(owner=owners, number=st.integers(0, 1), parts=st.integers(1, 3))
    def ingest(self, owner, number, parts):
        text = "\n\n".join(f"The {spelt(next(self.numbers))} is inspected every spring." for _ in range(parts))
        self.wait(self.kernel.rag.ingest(text, f"doc-{number}", owner=owner, chunk_size=20, chunk_overlap=0))
        self.model.documents[owner, f"doc-{number}"] = text

    @precondition(lambda self: self.model.documents)
    @rule(data=st.data())
    def remove_a_document(self, data):
        owner, source = self._some(data, self.model.documents)
        (head,) = [each for each in self.wait(self.kernel.rag.list_documents(owner=owner)) if each.source == source]
        assert self.wait(self.kernel.rag.remove(head.id, owner=owner))
        del self.model.documents[owner, source]

    # Packs

    @rule(owner=owners)
    def add_to_a_pack(self, owner):
        if owner not in self.model.packs:
            self.wait(self.kernel.packs.create("port", "user", description=f"cranes for {owner}", owner=owner))
        id, content = self._new()
        self.wait(self.kernel.packs.add("port", content, owner=owner, id=f"p-{id}"))
        self.model.packs.setdefault(owner, {})[f"p-{id}"] = content

    @precondition(lambda self: any(self.model.packs.values()))
    @rule(data=st.data(), deletes=st.booleans())
    def change_a_memory_of_a_pack(self, data, deletes):
        owner, id = self._some(data, [(owner, id) for owner, own in self.model.packs.items() for id in own])
        if deletes:
            assert self.wait(self.kernel.packs.delete_memory(id, owner=owner))
            del self.model.packs[owner][id]
            return
        _, content = self._new()
        self.wait(self.kernel.packs.update_memory(id, content=content, owner=owner))
        self.model.packs[owner][id] = content

    # What happens in between

    @rule()
    def restart(self):
        self.wait(self.kernel.stop())
        self.kernel = self._opened()
        self.find_everything()

    @rule()
    def end_without_closing(self):
        """The files as they lie there, of a process that ended at this moment."""
        before, self.home = self.home, self._new_folder()
        for file in before.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, self.home / file.name)
        self.wait(self.kernel.stop())
        self.kernel = self._opened()
        self.find_everything()

    @rule(by=st.sampled_from((*(timedelta(hours=hours) for hours in (-24, -1, 1, 4, 24)), "to the fold")))
    def put_the_clock(self, by):
        self.clock.now = DST if by == "to the fold" else self.clock.now + by
        self._purge()

    def _purge(self) -> None:
        """So that nothing that has expired comes back, should the clock be put back."""
        before = set(self.model.memories)
        self.model.expire(self.clock())
        assert self.wait(self.engine.purge_expired()) <= len(before - set(self.model.memories))

    @rule()
    def sweep(self):
        self.clock.advance(timedelta(days=1))
        self.model.expire(self.clock())
        assert self.wait(self.kernel.run_maintenance(decay=True)).failures == {}

    @rule()
    def back_up(self):
        copy_of = self._new_folder()
        with (
            closing(sqlite3.connect(self.home / "lamina.db")) as source,
            closing(sqlite3.connect(copy_of / "lamina.db")) as target,
        ):
            source.backup(target)
        self.saved = copy_of, copy.deepcopy(self.model)

    @precondition(lambda self: self.saved)
    @rule()
    def go_back_to_the_backup(self):
        assert self.saved is not None
        self.wait(self.kernel.stop())
        saved, model = self.saved
        self.home, self.model = self._new_folder(), copy.deepcopy(model)
        shutil.copy(saved / "lamina.db", self.home / "lamina.db")
        self.kernel = self._opened()
        self._purge()
        self.find_everything()

    @rule(data=st.data())
    def move_all_memories_through_another_backend(self, data):
        name = data.draw(st.sampled_from(self.elsewhere))
        self.wait(self._moved(name))
        for row in self.model.memories.values():
            row.former = None  # which does not travel
        self.find_everything()

    async def _moved(self, name: str) -> None:
        options: dict[str, Any] = {"embed": HashingEmbedder(64), "clock": self.clock}
        if name == "memory":
            options["provider"] = "memory"
        elif name == "sqlite":
            options["path"] = self._new_folder() / "moved.db"
        else:
            options |= {"url": name, "tenant": f"run-{next(self.runs)}"}
        async with await create_memory_engine(**options) as there:
            first = await self._handed_over(self.engine, there)
            await self.engine.clear(confirm=True)
            assert await self._handed_over(there, self.engine) == first, "it came back as it went"
            await there.clear(confirm=True)

    async def _handed_over(self, source: MemoryEngine, target: MemoryEngine) -> str:
        lines = StringIO()
        written = await export_ndjson(source, lines, with_embeddings=True)
        text = lines.getvalue()
        assert written == len(self.model.memories)
        assert (await import_ndjson(target, text.splitlines())).written == written
        assert (await import_ndjson(target, text.splitlines())).written == 0, "a second time changes nothing"
        for owner in OWNERS:
            assert await target.count(owner=owner) == len(self.model.of(owner))
        return text

    # What must hold

    @invariant()
    def all_that_was_acknowledged_is_there_and_nothing_else(self):
        self.wait(self._compare())

    async def _compare(self) -> None:
        self.model.expire(self.clock())
        for owner in OWNERS:
            entries = [each async for each in self.engine.scan(owner=owner)]
            rows = self.model.of(owner)
            assert {each.id: (each.content, each.superseded_by, each.expires_at) for each in entries} == {
                id: (row.content, row.superseded_by, row.expires_at) for id, row in rows.items()
            }
            current = self.model.current(owner)
            assert await self.engine.count(owner=owner, include_superseded=False) == len(current)
            for id in list(current)[-2:]:
                await self._find(owner, id)
            await self._compare_threads(owner)

    async def _compare_threads(self, owner: str) -> None:
        heads = await self.kernel.conversation.list_threads("all", owner=owner)
        own = {name: talk for name, talk in self.model.threads.items() if talk.owner == owner}
        assert {each.id: each.status == "archived" for each in heads} == {n: t.is_archived for n, t in own.items()}
        for name, talk in own.items():
            assert [each.text for each in await self.kernel.conversation.history(name, owner=owner)] == talk.said

    async def _find(self, owner: str, id: str) -> None:
        """By its own text: the owner does, and nobody else does."""
        row = self.model.memories[id]
        for who in OWNERS:
            found = [each.entry for each in await self.engine.recall(row.content, owner=who, limit=5, touch=False)]
            assert {each.owner for each in found} <= {who}
            assert {each.id for each in found} <= set(self.model.current(who))
            assert (id in {each.id for each in found}) is (who == owner), (who, id)

    def find_everything(self) -> None:
        self.wait(self._find_everything())

    async def _find_everything(self) -> None:
        kernel = self.kernel
        self.model.expire(self.clock())
        for owner in OWNERS:
            for id, row in self.model.current(owner).items():
                await self._find(owner, id)
                if row.former is not None:
                    said = [each.content for each in await self.engine.history(id, owner=owner)] + [row.content]
                    assert [text for text, _ in groupby(said)] == [*row.former, row.content]
            sources = {head.source for head in await kernel.rag.list_documents(owner=owner)}
            assert sources == {source for who, source in self.model.documents if who == owner}
            await self._compare_pack(owner)
            await self._compute(owner)
        for (owner, source), text in self.model.documents.items():
            for part in text.split("\n\n"):
                found = await kernel.rag.retrieve(part, owner=owner, top_k=1)
                assert part in found[0].content
                assert found[0].source == source
        adapter = self.engine.adapter
        assert await adapter.check() == []
        assert await kernel.packs.check() == []

    async def _compare_pack(self, owner: str) -> None:
        packs, own = self.kernel.packs, self.model.packs.get(owner)
        found = await packs.discover(f"cranes for {owner}", owner=owner)
        assert [each.pack.name for each in found] == ([] if own is None else ["port"])
        if own is not None:
            kept = await packs.memories("port", owner=owner, touch=False, include_archived=True, limit=1000)
            assert {each.id for each in kept} == set(own)
            assert all(each.content == own[each.id] for each in kept if each.tier == "full")

    async def _compute(self, owner: str) -> None:
        """A context holds the owner's own, and nothing of others."""
        goal = next(iter(self.model.current(owner).values())).content if self.model.current(owner) else "anything"
        context = await self.kernel.context_engine.compute(
            intent_id="i", goal=goal, owner_id=owner, token_budget=4000, touch=False
        )
        assert {each.owner for each in (*context.memories, *context.knowledge)} <= {owner}
        assert {each.id for each in context.memories} <= set(self.model.current(owner))
        if goal != "anything":
            assert goal in {each.content for each in context.memories}


def tell(folder: Path, elsewhere: tuple[str, ...], thoroughness: settings, machine: type[Living] = Living) -> None:
    with asyncio.Runner() as runner:
        made = {"folder": folder, "elsewhere": elsewhere, "wait": staticmethod(runner.run)}
        run_state_machine_as_test(type("Told", (machine,), made), settings=thoroughness)


def test_whatever_happens_a_kernel_has_what_was_acknowledged_and_nothing_else(tmp_path, postgres_database):
    tell(tmp_path, ("memory", "sqlite", postgres_database), THOROUGHNESS)


class Forgetful(Living):
    """A planted fault: what was written last is gone."""

    @precondition(lambda self: len(self.model.memories) > 2)
    @rule()
    def lose_something(self):
        id = next(reversed(self.model.memories))
        self.wait(self.engine.forget(id, owner=self.model.memories[id].owner))


def test_a_kernel_that_loses_something_is_found(tmp_path):
    plainly = settings(
        THOROUGHNESS, max_examples=25, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False
    )
    with pytest.raises(AssertionError):
        tell(tmp_path, ("memory",), plainly, Forgetful)
