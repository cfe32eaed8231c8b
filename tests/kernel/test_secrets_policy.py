"""One setting guards every way into the stores: what it masks is in no file, what it refuses changes nothing."""

from __future__ import annotations

import pytest

from lamina.domain.memory import MemoryEntry
from lamina.domain.message import Message, ToolCall
from lamina.errors import ConfigError, InvalidInput
from lamina.importers.ndjson import import_ndjson
from lamina.ports.events import EventName

TOKEN = "ghp_" + "k3Yq9ZtR2mWx8LpV5sNb7HcJ4dFg6TuQ1eAo"
PASSWORD = "hunter2-and-more"
CARD = "4111 1111 1111 1111"
SAID = f"push with {TOKEN}, pay with {CARD}"
MASKED = "push with [secret: github_token], pay with [secret: card_number]"
KINDS = ["card_number", "github_token"]


def writes(kernel, clock):
    """Every way in by its name, each with a secret in every field that takes a caller's own words."""
    memory, packs = kernel.memory_engine, kernel.packs
    beside = {"tags": [TOKEN], "metadata": {"password": PASSWORD, "n": {"cards": [4111111111111111]}, TOKEN: 1}}
    entry = MemoryEntry(id="m9", content=SAID, created_at=clock(), updated_at=clock(), source=TOKEN, **beside)
    call = ToolCall("c1", "pay", f'{{"password": "{PASSWORD}", "card": 4111111111111111}}')

    async def edit():
        id = await memory.store("harmless at first")
        await memory.update(id, content=SAID, metadata=beside["metadata"])

    async def edit_session():
        kept = await kernel.sessions().add(Message.user("harmless"), "s2")
        await kernel.sessions().update(kept.message.id, "s2", content=SAID)

    async def edit_pack():
        await packs.create("p2", "project")
        kept = await packs.add("p2", "harmless")
        await packs.update_memory(kept.id, content=SAID, metadata=beside["metadata"])

    async def pack():
        await packs.create("p1", "project")
        await packs.add("p1", SAID, provenance=TOKEN, **beside)

    return {
        "store": lambda: memory.store(SAID, source=TOKEN, **beside),
        "store_many": lambda: memory.store_many([{"content": "one"}, {"content": f"two, {SAID}"}]),
        "update": edit,
        "restore": lambda: memory.restore([entry], replace=True),
        "import": lambda: import_ndjson(memory, [f'{{"content": "three, {SAID}"}}']),
        "message": lambda: kernel.conversation.add_messages("t1", [Message.user(SAID).replace(metadata={"k": TOKEN})]),
        "call": lambda: kernel.conversation.add_message_to_thread("t2", "assistant", "", tool_calls=[call]),
        "thread": lambda: kernel.conversation.create("t3", metadata=beside["metadata"]),
        "session": lambda: kernel.sessions().add({"message": {"role": "user", "content": SAID}, "state": {"s": TOKEN}}),
        "session edit": edit_session,
        "document": lambda: kernel.rag.ingest(f"# Keys\n\n{SAID}\n", "keys.md", note=TOKEN),
        "pack": pack,
        "pack head": lambda: packs.create("p3", "project", description=SAID, tags=[TOKEN]),
        "pack edit": edit_pack,
    }


def leaks(folder):
    found = []
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        found += [(file.name, each) for each in (TOKEN, PASSWORD, CARD, "4111111111111111") if each.encode() in data]
    return found


async def test_what_is_masked_is_in_no_file_whatever_way_it_came_in(open_kernel, clock, tmp_path):
    kernel = await open_kernel(data_dir=tmp_path / "data", memory={"secrets": "mask"})
    told = []
    kernel.on(EventName.SECRETS_FOUND, told.append)
    for name, write in writes(kernel, clock).items():
        before = len(told)
        await write()
        assert len(told) > before, name
    assert leaks(tmp_path) == []
    assert {each.facts["where"] for each in told} == {"document", "memory", "message", "pack", "pack_memory", "thread"}
    assert TOKEN not in repr(told)
    entry = await kernel.memory_engine.get("m9")
    assert (entry.content, entry.tags, entry.source) == (MASKED, ["[secret: github_token]"], "[secret: github_token]")
    assert entry.metadata == {
        "password": "[secret: password]",
        "n": {"cards": ["[secret: card_number]"]},
        "[secret: github_token]": 1,
    }
    (called,) = await kernel.conversation.history("t2")
    assert called.tool_calls[0].arguments == '{"password": "[secret: password]", "card": "[secret: card_number]"}'
    (kept,) = await kernel.conversation.add_messages("t1", [Message.user(SAID).replace(id="again")])
    assert [kept] == await kernel.conversation.add_messages("t1", [Message.user(SAID).replace(id="again")])


async def test_without_the_policy_the_same_search_finds_what_was_stored(open_kernel, clock, tmp_path):
    kernel = await open_kernel(data_dir=tmp_path / "data")
    for write in writes(kernel, clock).values():
        await write()
    assert {secret for _, secret in leaks(tmp_path)} >= {TOKEN, PASSWORD, CARD}


async def test_what_is_refused_names_field_and_kind_and_never_the_secret_and_nothing_is_kept(
    open_kernel, clock, tmp_path
):
    kernel = await open_kernel(data_dir=tmp_path / "data", memory={"secrets": "refuse"})
    for name, write in writes(kernel, clock).items():
        with pytest.raises(InvalidInput, match="looks like a secret") as refused:
            await write()
        text = str(refused.value)
        assert TOKEN not in text, name
        assert PASSWORD not in text, name
        assert "4111" not in text, name
        assert refused.value.field in {"content", "metadata", "description", "tool_calls", "state", "tags"}, name
    assert leaks(tmp_path) == []
    assert [entry.content for entry in await kernel.memory_engine.query()] == ["harmless at first"]
    assert await kernel.rag.list_documents() == []


async def test_what_is_flagged_is_kept_with_its_kinds_until_an_edit_takes_the_secret_out(open_kernel):
    kernel = await open_kernel(memory={"secrets": "flag"}, conversation={"secrets": "off"})
    memory = kernel.memory_engine
    id = await memory.store(SAID, metadata={"of": "mira"})
    entry = await memory.get(id)
    assert (entry.content, entry.metadata) == (SAID, {"of": "mira", "secrets_found": KINDS})
    assert (await memory.update(id, content="nothing")).metadata == {"of": "mira"}
    document = await kernel.rag.get(await kernel.rag.ingest(SAID, "keys.md"))
    assert document.metadata == {"secrets_found": KINDS}
    await kernel.packs.create("p", "project")
    kept = await kernel.packs.add("p", SAID)
    assert (await kernel.packs.update_memory(kept.id, tags=["x"])).metadata == {"secrets_found": KINDS}
    (message,) = await kernel.conversation.add_messages("t", [Message.user(SAID)])
    assert (message.text, message.metadata) == (SAID, {})  # a block's own word goes before the memory's


async def test_under_refusal_what_is_there_can_still_be_deleted(open_kernel, tmp_path):
    before = await open_kernel(data_dir=tmp_path / "data")
    id = await before.memory_engine.store(SAID)
    await before.packs.create("p", "project", description=SAID)
    kept = await before.packs.add("p", SAID, tags=[TOKEN])
    await before.stop()
    kernel = await open_kernel(data_dir=tmp_path / "data", memory={"secrets": "refuse"})
    with pytest.raises(InvalidInput):
        await kernel.memory_engine.update(id, tags=["new"])
    assert await kernel.memory_engine.forget(id)
    assert await kernel.packs.delete_memory(kept.id)
    assert await kernel.packs.delete("p", permanent=True)


async def test_a_policy_that_there_is_not_is_refused_when_it_is_set(open_kernel):
    with pytest.raises(ConfigError, match="secrets"):
        await open_kernel(memory={"secrets": "hide"})
