"""What may be asked of a kernel, each deed for an owner of its own, and all that can be seen of that owner."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from faults_injected import NthCall

from lamina.errors import LaminaError, MemoryNotFound
from lamina.kernel import Kernel
from lamina.testing import FrozenClock

State = dict[str, Any]
"""Everything that an owner sees, with `OWNER` in the place of the owner's name."""


@dataclass(frozen=True, slots=True)
class World:
    """A kernel, and the clock that it goes by."""

    kernel: Kernel
    clock: FrozenClock


Step = Callable[[World, str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that a caller asks for, once `prepare` has made what it needs, both for one owner.

    Args:
        between: Whether a state is one that the deed may leave when it fails, though it is neither that before nor
            that after: its documentation says so. It is asked with the state before, that found, and that after.
        can_be_repeated: Whether doing it again leads to the state after from one in between, too.
    """

    prepare: Step
    run: Step
    between: Callable[[State, State, State], bool] = lambda before, found, after: False
    can_be_repeated: bool = True


async def seen(world: World, owner: str) -> State:
    """All that the owner sees. Each current memory is looked up by its own text too, and must be found."""
    kernel = world.kernel
    state = {
        "memories": await _memories(kernel, owner),
        "threads": await _threads(kernel, owner),
        "documents": await _documents(kernel, owner),
        "packs": await _packs(kernel, owner),
    }
    return dict(json.loads(json.dumps(state, ensure_ascii=False).replace(owner, "OWNER")))


async def _memories(kernel: Kernel, owner: str) -> list[Any]:
    engine = kernel.memory_engine
    entries = [each async for each in engine.scan(owner=owner, include_expired=True)]
    current = [each async for each in engine.scan(owner=owner, include_superseded=False)]
    assert await engine.count(owner=owner, include_superseded=False) == len(current)
    for each in current:
        found = await engine.recall(each.content, owner=owner, limit=3, touch=False)
        assert each.id in {hit.entry.id for hit in found}, f"{each.id} is not found by its own text"
        assert all(hit.entry.owner == owner for hit in found)
    rows = [
        [
            each.id if each.id.startswith(owner) else "made",
            each.content,
            each.layer.value,
            sorted(each.tags),
            round(each.relevance, 6),
            each.superseded_by,
            len(await engine.history(each.id, owner=owner)),
            each in current,
        ]
        for each in entries
    ]
    return sorted(rows, key=str)


async def _threads(kernel: Kernel, owner: str) -> list[Any]:
    conversation = kernel.conversation
    found = []
    for head in await conversation.list_threads("all", owner=owner):
        thread = await conversation.retrieve(head.id, owner=owner)
        assert thread is not None
        history = [[each.index, each.text] for each in await conversation.history(head.id, owner=owner)]
        assert [index for index, _ in history] == list(range(1, len(history) + 1))
        live = [each.index for each in thread.messages]
        summaries = [[each.from_index, each.to_index, each.source.value, each.text] for each in thread.summaries]
        folded = max((last for _, last, _, _ in summaries), default=0)
        assert live == list(range(folded + 1, len(history) + 1)), "what is shown begins where the summary ends"
        found.append([head.id, head.status.value, history, live, summaries])
    return sorted(found)


async def _documents(kernel: Kernel, owner: str) -> list[Any]:
    found = []
    for head in await kernel.rag.list_documents(owner=owner):
        chunks = await kernel.rag.chunks(head.id, owner=owner)
        assert len(chunks) == head.chunks
        for chunk in chunks[:: max(1, len(chunks) // 2)]:
            hits = await kernel.rag.retrieve(chunk.content, owner=owner, top_k=3)
            assert chunk.content in {hit.content for hit in hits}, "a chunk is not found by its own text"
        found.append([head.source, [chunk.content for chunk in chunks]])
    return sorted(found)


async def _packs(kernel: Kernel, owner: str) -> list[Any]:
    packs = kernel.packs
    found = []
    for summary in await packs.list(owner=owner):
        memories = await packs.memories(
            summary.name, owner=owner, touch=False, include_superseded=True, include_archived=True
        )
        shown = [
            [each.id if each.id.startswith(owner) else "made", each.content, each.tier.value, each.superseded_by]
            for each in memories
        ]
        found.append([summary.name, sorted(shown, key=str)])
    return sorted(found)


# The deeds


async def _two_memories(world: World, owner: str) -> None:
    engine = world.kernel.memory_engine
    await engine.store("The lamp of the harbour is red", owner=owner, id=f"{owner}-old", tags=["lamp"])
    await engine.store("The keeper sleeps by day", owner=owner, id=f"{owner}-kept")


async def _superseded(world: World, owner: str) -> None:
    await _two_memories(world, owner)
    engine = world.kernel.memory_engine
    await engine.store("The lamp is green now", owner=owner, id=f"{owner}-new", supersedes=[f"{owner}-old"])


async def _store(world: World, owner: str) -> None:
    engine = world.kernel.memory_engine
    await engine.store("The lamp is green now", owner=owner, id=f"{owner}-new", supersedes=[f"{owner}-old"])


async def _store_many(world: World, owner: str) -> None:
    texts = ("Tides turn at noon", "Ropes are tarred in May", "Gulls nest on the crane")
    await world.kernel.memory_engine.store_many(
        [{"content": text, "owner": owner, "id": f"{owner}-{number}"} for number, text in enumerate(texts)]
    )


async def _update(world: World, owner: str) -> None:
    await world.kernel.memory_engine.update(
        f"{owner}-old", owner=owner, content="The lamp of the quay is blue", tags=["quay"]
    )


async def _forget(world: World, owner: str) -> None:
    await world.kernel.memory_engine.forget(f"{owner}-new", owner=owner)


def _old_holds_again(before: State, found: State, _: State) -> bool:
    """What a memory superseded is let go first, so that a failure in between hides nothing: one more is current."""
    old = next(row for row in before["memories"] if row[0] == "OWNER-old")
    expected = [row for row in before["memories"] if row is not old]
    rest = [row for row in found["memories"] if row[0] != "OWNER-old"]
    now = next((row for row in found["memories"] if row[0] == "OWNER-old"), None)
    return rest == expected and now is not None and (now[1], now[5], now[7]) == (old[1], None, True)


async def _forget_all(world: World, owner: str) -> None:
    await world.kernel.memory_engine.forget_where(owner=owner)


async def _supersede(world: World, owner: str) -> None:
    await world.kernel.memory_engine.supersede(f"{owner}-old", by=f"{owner}-kept", owner=owner)


async def _recall(world: World, owner: str) -> None:
    """What is answered is the same, or says what is missing."""
    results = await world.kernel.memory_engine.recall("which lamp of the harbour", owner=owner, limit=2)
    assert results[0].entry.id == f"{owner}-old" or results.degraded


async def _restore(world: World, owner: str) -> None:
    engine = world.kernel.memory_engine
    entries = [each async for each in engine.scan(owner=owner, include_embeddings=True)]
    await engine.restore([each.replace(id=f"{each.id}-copy", content=f"{each.content} too") for each in entries])


async def _decay(world: World, owner: str) -> None:
    await world.kernel.memory_engine.decay(owner=owner, older_than=timedelta(0), min_relevance=0.0)


async def _older(world: World, owner: str) -> None:
    await _two_memories(world, owner)
    world.clock.advance(timedelta(minutes=2))


async def _thread(world: World, owner: str) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Line {n} of the log"} for n in range(8)]
    await world.kernel.conversation.add_messages(f"{owner}-t", said, owner=owner)


async def _add(world: World, owner: str) -> None:
    said = [{"role": "user", "content": "One more"}, {"role": "assistant", "content": "Noted"}]
    await world.kernel.conversation.add_messages(f"{owner}-t", said, owner=owner)


async def _begin(world: World, owner: str) -> None:
    await world.kernel.conversation.add_messages(f"{owner}-new", [{"role": "user", "content": "First"}], owner=owner)


async def _compact(world: World, owner: str) -> None:
    report = await world.kernel.conversation.compact(f"{owner}-t", owner=owner)
    if not report.compacted and report.warnings:
        raise Told(report.warnings[0])


async def _archive(world: World, owner: str) -> None:
    await world.kernel.conversation.archive(f"{owner}-t", owner=owner)


async def _delete_thread(world: World, owner: str) -> None:
    await world.kernel.conversation.delete(f"{owner}-t", owner=owner)


def _lines(count: int, what: str) -> str:
    return "\n\n".join(f"{what} number {number} of the port is inspected in spring." for number in range(count))


async def _document(world: World, owner: str) -> None:
    await world.kernel.rag.ingest(_lines(6, "Crane"), "cranes.md", owner=owner, chunk_size=20, chunk_overlap=0)


async def _reingest(world: World, owner: str) -> None:
    await world.kernel.rag.ingest(_lines(3, "Derrick"), "cranes.md", owner=owner, chunk_size=20, chunk_overlap=0)


async def _remove_document(world: World, owner: str) -> None:
    for head in await world.kernel.rag.list_documents(owner=owner):
        await world.kernel.rag.remove(head.id, owner=owner)


async def _pack(world: World, owner: str) -> None:
    packs = world.kernel.packs
    await packs.create("port", "user", description="What the port is like", owner=owner)
    await packs.add("port", "The quay is long", owner=owner, id=f"{owner}-p1", name="quay")
    await packs.add("port", "The crane is old", owner=owner, id=f"{owner}-p2")


async def _add_to_pack(world: World, owner: str) -> None:
    await world.kernel.packs.add("port", "The quay is longer now", owner=owner, id=f"{owner}-p3", name="quay")


async def _edit_pack(world: World, owner: str) -> None:
    await world.kernel.packs.update_memory(f"{owner}-p1", content="The quay is short", owner=owner)


async def _delete_pack(world: World, owner: str) -> None:
    await world.kernel.packs.delete("port", permanent=True, owner=owner)


async def _things_that_fade(world: World, owner: str) -> None:
    """And nothing of other owners, which a sweep would go through too."""
    await world.kernel.memory_engine.clear(confirm=True)
    for pack in await world.kernel.packs.list():
        await world.kernel.packs.delete(pack.id, permanent=True)
    await _two_memories(world, owner)
    await _pack(world, owner)
    await world.kernel.memory_engine.store("The ferry is late", owner=owner, id=f"{owner}-brief", ttl=60)
    world.clock.advance(timedelta(days=40))


class Told(Exception):
    """A deed says in its answer that it was not done, or not whole."""


async def _sweep(world: World, owner: str) -> None:
    report = await world.kernel.run_maintenance()
    if report.failures or (report.packs is not None and report.packs.unwritten):
        raise Told(str(report.failures))


async def _submit(world: World, owner: str) -> None:
    result = await world.kernel.submit(goal="I live in Ghent", owner=owner, thread_id=f"{owner}-chat")
    if result.error is not None:
        assert result.error.kind != "", result.error
        raise Told(result.error.kind)
    if any(warning.startswith("auto_save failed") for warning in result.warnings):
        raise Told("the turn is kept, and what it says about the user is not")


def _turn_is_kept(before: State, found: State, after: State) -> bool:
    """A turn that succeeded is kept, whatever became of what is saved from it."""
    return found == {**after, "memories": before["memories"]}


def _steps_are_whole(before: State, found: State, after: State) -> bool:
    """A sweep has steps, and the answer names those that failed; memories of packs fade one by one."""
    if any(found[part] not in (before[part], after[part]) for part in ("memories", "threads", "documents")):
        return False
    ((_, had), (_, has), (_, gets)) = (state["packs"][0] for state in (before, found, after))
    return len(has) == len(had) and all(row in had or row in gets for row in has)


async def _nothing(world: World, owner: str) -> None:
    pass


DEEDS: Final[dict[str, Deed]] = {
    "store": Deed(_two_memories, _store),
    "store_many": Deed(_nothing, _store_many),
    "update": Deed(_two_memories, _update),
    "forget": Deed(_superseded, _forget, between=_old_holds_again),
    "forget_where": Deed(_two_memories, _forget_all),
    "supersede": Deed(_two_memories, _supersede),
    "recall": Deed(_two_memories, _recall),
    "restore": Deed(_two_memories, _restore),
    "decay": Deed(_older, _decay),
    "add": Deed(_thread, _add),
    "begin": Deed(_nothing, _begin),
    "compact": Deed(_thread, _compact),
    "archive": Deed(_thread, _archive),
    "delete_thread": Deed(_thread, _delete_thread),
    "ingest": Deed(_nothing, _document),
    "ingest again": Deed(_document, _reingest),
    "remove": Deed(_document, _remove_document),
    "pack.add": Deed(_pack, _add_to_pack),
    "pack.update": Deed(_pack, _edit_pack),
    "pack.delete": Deed(_pack, _delete_pack),
    "sweep": Deed(_things_that_fade, _sweep, between=_steps_are_whole),
    "submit": Deed(_nothing, _submit, between=_turn_is_kept, can_be_repeated=False),
}


async def after_doing(deed: Deed, world: World) -> State:
    """What is seen where nothing fails."""
    owner = "before-after"
    await deed.prepare(world, owner)
    await deed.run(world, owner)
    return await seen(world, owner)


async def do_failing(
    deed: Deed, world: World, nth: NthCall, *, at: int, kind: str, after: State, errors: type[Exception] = LaminaError
) -> Exception | None:
    """Do it while that call fails, look at what there is then, and do it again; what it raised of ours, or told."""
    what = f"{kind} at {at}"
    owner = f"owner-{at}-{list(kind.encode())}-end"  # no name of one may be the beginning of another's
    await deed.prepare(world, owner)
    before = await seen(world, owner)
    nth.arm(at, kind)
    try:
        await deed.run(world, owner)
    except (errors, Told) as error:
        raised = error
    else:
        nth.disarm()
        assert await seen(world, owner) == after, f"{what}: told to be done, and is not"
        return None
    assert nth.disarm(), f"{what}: it failed by itself: {raised!r}"
    assert str(raised)
    found = await seen(world, owner)
    if is_between := found not in (before, after):
        assert deed.between(before, found, after), f"{what}: a half state after {raised!r}"
    if found != after and (deed.can_be_repeated or not is_between):
        with suppress(MemoryNotFound):  # it was done after all
            await deed.run(world, owner)
        assert await seen(world, owner) == after, f"{what}: asking again does not do it"
    return raised
