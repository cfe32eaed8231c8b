"""Every check is shown a state that it is for, and one that it is not for."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from lamina.conversation.compaction import COMPACTION_KEY
from lamina.conversation.short_term_stores import SQLiteMemory
from lamina.domain.message import Message, ToolCall
from lamina.domain.thread import Thread, ThreadEvent, ThreadKind, ThreadRef
from lamina.errors import ProviderError
from lamina.kernel.checks import CHECKS, Status
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel, HashingEmbedder

MODEL = {"provider": "openai", "model": "gpt-4o", "api_key": "sk-nobody"}
NONE = {"embed": None, "embedding": "none"}


@dataclass
class Place:
    running: Any
    clock: Any
    path: Any
    folder: Any


@dataclass
class State:
    """How to come to it, and the settings that it is looked at with."""

    fill: Any = None
    settings: dict[str, Any] = field(default_factory=dict)


def memories(*texts, advance=None, after=None, **options):
    async def fill(place):
        async with place.running() as kernel:
            for text in texts:
                await kernel.memory_engine.store(text, owner=options.get("owner", "default"), **_but_owner(options))
            if advance:
                place.clock.advance(advance)
            if after:
                await after(kernel)

    return fill


def _but_owner(options):
    return {key: value for key, value in options.items() if key != "owner"}


async def without_vectors(place):
    async with place.running(memory=NONE) as kernel:
        await kernel.memory_engine.store("the harbour lamp is green")


async def chunks_without_vectors(place):
    async with place.running(memory=NONE) as kernel:
        await kernel.rag.ingest("The harbour lamp is green.", "lamp.txt")


async def vectors_of_another(place):
    async with place.running(embed=lambda text: [float(len(text)), 1.0]) as kernel:
        await kernel.memory_engine.store("the harbour lamp is green")


async def chunk_vectors_of_another(place):
    async with place.running(embed=lambda text: [float(len(text)), 1.0]) as kernel:
        await kernel.rag.ingest("The harbour lamp is green.", "lamp.txt")


async def open_to_others(place):
    await memories("a note")(place)
    place.path.chmod(0o644)


async def garbage(place):
    place.path.write_bytes(b"this is no database at all" * 400)


def decaying(factor):
    async def after(kernel):
        await kernel.memory_engine.decay(factor=factor)

    return after


def documents(**options):
    async def fill(place):
        async with place.running() as kernel:
            text = "\n\n".join(f"# Part {n}\n\n{'The lamp is green. ' * 200}" for n in range(5))
            await kernel.rag.ingest(text, "guide.md", **options)

    return fill


def ingested(touched):
    async def fill(place):
        file = place.folder / "lamp.txt"
        file.write_text("The harbour lamp is green.", encoding="utf-8")
        changed = (place.clock.now + touched).timestamp()
        os.utime(file, (changed, changed))
        async with place.running() as kernel:
            await kernel.rag.ingest_file(file)

    return fill


def thread(*messages, complete=None, **settings):
    async def fill(place):
        async with place.running(complete=complete, **settings) as kernel:
            await kernel.conversation.add_messages("harbour", messages)

    return fill


def talk(count):
    return [Message.user(f"The lamp number {n} is green.") for n in range(count)]


def threads(count, messages):
    async def fill(place):
        async with place.running() as kernel:
            for number in range(count):
                await kernel.conversation.add_messages(f"thread-{number}", talk(messages))

    return fill


def session(text):
    async def fill(place):
        memory = SQLiteMemory(place.path, enable_context_management=False, clock=place.clock)
        await memory.add({"role": "user", "content": text}, session_id="big")
        await memory.close()

    return fill


def compacted(record):
    async def fill(place):
        async with SqliteStateStore(place.path) as store:
            ref = ThreadRef("default", "damaged", ThreadKind.SESSION)
            now = place.clock.now
            await store.create_thread(Thread(ref.id, ref.tenant, now, now, kind=ref.kind))
            message = Message.user("[COMPACTED: a lamp; expand #1]").replace(id="m1")
            await store.append(ref, [ThreadEvent(message, {COMPACTION_KEY: record})], now=now)

    return fill


def packs(damage=None):
    async def fill(place):
        async with place.running() as kernel:
            await kernel.packs.create("harbour", "project")
            await kernel.packs.add("harbour", "the harbour lamp is green")
        if damage:
            with closing(sqlite3.connect(place.path)) as file:
                file.execute(damage)
                file.commit()

    return fill


async def version_one(place):
    with closing(sqlite3.connect(place.folder / "old.db")) as old:
        old.execute("CREATE TABLE agent_memories (id, content, user_id)")
        old.execute("INSERT INTO agent_memories VALUES ('m1', 'the lamp is green', 'mira')")
        old.commit()
    async with place.running():
        pass


async def version_one_copied(place):
    await version_one(place)
    async with place.running() as kernel:
        await kernel.memory_engine.migrate_v1(place.folder / "old.db")


CALL = Message.assistant("", tool_calls=[ToolCall("call-1", "look")])
FAILING = [ProviderError("The model", "is out of order") for _ in range(50)]
NOTE = memories("the harbour lamp is green")
FADING = [f"lamp number {n} is green" for n in range(6)]
MANY = [f"fact number {n} of the harbour" for n in range(100)]
HOUSE = {"conversation": {"window": 8}}

SICK = {
    "settings-invalid": [State(settings={"memmory": {}})],
    "model-unusable": [State(settings={"model": "openai:gpt-4o"}), State(settings={"model": "nobody:x"})],
    "no-model": [State(thread(*talk(1)))],
    "auto-recall-off": [
        State(settings={"context": {"auto_recall": False}}),
        State(settings={"memory": {"auto_recall": False}}),
        State(settings={"context": {"longterm_limit": 0}}),
    ],
    "window-small": [
        State(settings={"conversation": {"window": 3}}),
        State(settings={"memory": {"compaction": {"keep_recent": 2}}}),
    ],
    "database-open-to-others": [State(open_to_others)],
    "database-unusable": [State(garbage)],
    "no-embedder": [State(without_vectors, {"memory": NONE}), State(chunks_without_vectors, {"memory": NONE})],
    "vectors-missing": [State(without_vectors), State(chunks_without_vectors)],
    "vectors-of-another-model": [State(vectors_of_another), State(chunk_vectors_of_another)],
    "owner-without-memories": [State(memories("a note", owner="mira"))],
    "namespace-hidden": [State(memories("a note", namespace="work"), {"memory": {"strict_namespace": True}})],
    "memories-faded": [State(memories(*FADING, advance=timedelta(days=2), after=decaying(0.05)))],
    "never-decayed": [State(memories(*MANY, advance=timedelta(days=31)))],
    "packs-damaged": [
        State(packs("UPDATE lamina_pack_memories SET due_at = 5")),
        State(packs("DELETE FROM lamina_packs_text")),
    ],
    "version-one-waiting": [State(version_one, {"memory": {"v1_path": "old.db"}})],
    "memories-long": [State(memories("all of our talk " * 200))],
    "documents-cut-badly": [State(documents(chunk_strategy="fixed")), State(documents(chunk_size=2_000))],
    "documents-outdated": [State(ingested(timedelta(hours=1)))],
    "context-over-budget": [State(thread(Message.user("green lamp " * 300)), {"context": {"token_budget": 100}})],
    "summariser-failing": [State(thread(*talk(20), complete=EchoModel(FAILING), **HOUSE), HOUSE)],
    "summaries-by-rules": [State(thread(*talk(20), **HOUSE), HOUSE)],
    "tool-call-unanswered": [State(thread(Message.user("look"), CALL, Message.user("and?")))],
    "threads-short": [State(threads(20, 1))],
    "session-over-threshold": [
        State(session("lamp " * 200_000)),
        State(thread(*talk(9)), {"conversation": {"context_engineering": {"pre_rot_threshold": 50}}}),
    ],
    "session-over-hard-limit": [State(session("\u706f" * 1_100_000))],
    "original-unreadable": [State(compacted({})), State(compacted({"original_content": 7}))],
}
"""For each check the states that it tells of."""

WELL = {
    "settings-invalid": [State()],
    "model-unusable": [State(), State(settings={"model": MODEL})],
    "no-model": [State(), State(thread(*talk(1)), {"model": MODEL})],
    "auto-recall-off": [State()],
    "window-small": [State(), State(settings={"memory": {"compaction": {}}})],
    "database-open-to-others": [State(), State(NOTE)],
    "database-unusable": [State(), State(NOTE)],
    "no-embedder": [State(NOTE), State(memories(), {"memory": NONE})],
    "vectors-missing": [State(NOTE), State(without_vectors, {"memory": NONE}), State(documents())],
    "vectors-of-another-model": [State(NOTE), State(documents())],
    "owner-without-memories": [
        State(NOTE),
        State(memories("a rule", owner="team", layer="organizational")),
        State(memories("a note", owner="mira"), {"memory": {"default_owner": "mira"}}),
    ],
    "namespace-hidden": [
        State(memories("a note", namespace="work")),
        State(NOTE, {"memory": {"strict_namespace": True}}),
    ],
    "memories-faded": [State(memories(*FADING, advance=timedelta(days=2), after=decaying(0.95)))],
    "never-decayed": [
        State(memories(*MANY)),
        State(memories(*MANY, advance=timedelta(days=31), after=decaying(0.95))),
    ],
    "memories-long": [State(NOTE)],
    "packs-damaged": [State(NOTE), State(packs())],
    "version-one-waiting": [State(NOTE), State(version_one_copied, {"memory": {"v1_path": "old.db"}})],
    "documents-cut-badly": [State(documents())],
    "documents-outdated": [State(ingested(-timedelta(hours=1))), State(documents())],
    "context-over-budget": [State(thread(*talk(3)))],
    "summariser-failing": [State(thread(*talk(20), **HOUSE), HOUSE)],
    "summaries-by-rules": [State(thread(*talk(3)))],
    "tool-call-unanswered": [
        State(thread(Message.user("look"), CALL, Message.tool("green", call_id="call-1"), Message.user("and?"))),
        State(thread(Message.user("look"), CALL)),
    ],
    "threads-short": [State(threads(19, 1)), State(threads(20, 3))],
    "session-over-threshold": [State(session("a green lamp"))],
    "session-over-hard-limit": [State(session("lamp " * 200_000))],
    "original-unreadable": [State(compacted({"original_content": "the whole story of the lamp"}))],
}
"""For each check states that it has nothing to say of."""

WARNS = {
    "settings-invalid": Status.ERROR,
    "model-unusable": Status.ERROR,
    "database-open-to-others": Status.ERROR,
    "database-unusable": Status.ERROR,
    "vectors-missing": Status.ERROR,
    "packs-damaged": Status.ERROR,
    "vectors-of-another-model": Status.ERROR,
    "session-over-hard-limit": Status.ERROR,
    "original-unreadable": Status.ERROR,
}
"""How bad it is, where it is more than a warning."""


def cases(states):
    return [pytest.param(id, state, id=f"{id}-{n}") for id, some in states.items() for n, state in enumerate(some)]


@pytest.fixture
async def enter(running, clock, path, tmp_path, found, monkeypatch):
    """Come to a state, and tell what a check finds in it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)

    async def come_to(id, state):
        if state.fill is not None:
            await state.fill(Place(running, clock, path, tmp_path))
        return await found(id, **state.settings)

    return come_to


@pytest.mark.parametrize(("id", "state"), cases(SICK))
async def test_each_check_tells_of_the_states_that_it_is_for(enter, id, state):
    if id == "database-open-to-others" and os.name == "nt":
        pytest.skip("files have no modes there")
    finding = await enter(id, state)
    assert finding.status is WARNS.get(id, Status.WARNING), finding
    assert finding.found
    assert finding.remedy.endswith(".")


@pytest.mark.parametrize(("id", "state"), cases(WELL))
async def test_each_check_has_nothing_to_say_of_other_states(enter, id, state):
    finding = await enter(id, state)
    assert (finding.status, finding.remedy) == (Status.OK, ""), finding
    assert finding.found


def test_every_check_is_shown_both():
    others = {"tokens-estimated"}
    assert {check.id for check in CHECKS} - others == SICK.keys() == WELL.keys()
    assert len({check.id for check in CHECKS}) == len(CHECKS)


async def test_estimated_tokens_are_told_where_the_vocabulary_is_known_and_by_a_mock_not_installed(found, monkeypatch):
    assert (await found("tokens-estimated", model=MODEL)).status is Status.OK
    assert (await found("tokens-estimated")).status is Status.OK
    monkeypatch.setattr("lamina.providers.tokens._is_installed", lambda: False)
    finding = await found("tokens-estimated", model=MODEL)
    assert (finding.status, "openai:gpt-4o" in finding.found) == (Status.WARNING, True)
    unknown = await found("tokens-estimated", model={**MODEL, "model": "some-model"})
    assert (unknown.status, "not public" in unknown.found) == (Status.OK, True)


async def test_no_finding_holds_what_was_said_or_stored(running, found, path):
    secret = "pomegranate"
    async with running() as kernel:
        await kernel.memory_engine.store(secret * 300, owner="mira")
        await kernel.conversation.add_messages("harbour", [Message.user(secret), CALL, Message.user(secret)])
        findings = await kernel.diagnose()
    assert {each.status for each in findings} == {Status.OK, Status.WARNING}
    assert not any(secret in f"{each.found} {each.remedy}" for each in findings)


async def test_the_threads_of_another_tenant_are_not_looked_at(running, found):
    async with running(memory={"tenant": "other", "embed": HashingEmbedder()}) as kernel:
        await kernel.conversation.add_messages("harbour", [Message.user("look"), CALL, Message.user("and?")])
        await kernel.memory_engine.store("x" * 3_000)
    assert (await found("tool-call-unanswered")).status is Status.OK
    assert (await found("memories-long")).status is Status.OK
