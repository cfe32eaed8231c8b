"""The client against a server on a real socket: what goes out comes back as the library's own objects and errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from running_server import TOKEN, served

from lamina.client import LaminaClient, SyncLaminaClient, SyncRemoteMemory
from lamina.domain.context import ComputedContext
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.message import ImagePart, Message, Role, TextPart, ToolCall
from lamina.domain.thread import ThreadStatus
from lamina.errors import (
    AdapterUnavailable,
    ConfigError,
    Conflict,
    DocumentNotFound,
    InvalidInput,
    InvalidType,
    MemoryNotFound,
    MessageNotFound,
    NoModelConfiguredError,
    ScopeError,
    ThreadArchivedError,
    ThreadNotFound,
    Unsupported,
)
from lamina.kernel import Kernel, ModelRouter
from lamina.server import Principal
from lamina.testing import HashingEmbedder


@pytest.fixture
def url(tmp_path):
    with served(Kernel(data_dir=tmp_path, model_router=ModelRouter(embed=HashingEmbedder()))) as address:
        yield address


@pytest.fixture
async def client(url):
    async with LaminaClient(url, token=TOKEN, owner="ann") as made:
        yield made


async def test_a_memory_comes_back_as_it_was_told(client):
    said = {
        "layer": Layer.SESSION,
        "namespace": "kitchen",
        "tags": ["drink"],
        "metadata": {"topic": {"deep": [1, 2.5, None, True]}},
        "relevance": 0.25,
        "confidence": 0.5,
        "source": "talk",
        "trust": Trust.UNTRUSTED,
        "derived_from": ["x"],
        "occurred_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    id = await client.memories.store("Ann prefers tea.", ttl=timedelta(minutes=1), **said)
    entry = await client.memories.get(id)
    assert isinstance(entry, MemoryEntry)
    assert {name: getattr(entry, name) for name in said} == said
    assert (entry.content, entry.owner, entry.ttl) == ("Ann prefers tea.", "ann", 60)
    assert entry.expires_at > entry.created_at
    assert (await client.memories.get(await client.memories.store("never", layer="working", ttl=None))).ttl is None
    assert await client.memories.get("none") is None


async def test_the_verbs_of_memories_do_what_those_of_the_library_do(client):
    ids = await client.memories.store_many(["The cat is called Mimi.", {"content": "The dog barks.", "tags": ["pet"]}])
    results = await client.memories.recall(
        "what is the cat called today", limit=1, explain=True, rerank="cross-encoder"
    )
    (found,), (period,) = results, results.explanation.periods
    assert (period.text, period.end - period.start) == ("today", timedelta(days=1))
    assert found.entry.id == ids[0]
    assert found.explanation.rerank > 0.5
    assert [each.id async for each in client.memories.scan()] == ids
    assert [each.id async for each in client.memories.scan(tags=["pet"])] == ids[1:]
    changed = await client.memories.update(ids[0], content="The cat is called Momo.", expected_revision=1)
    assert (changed.content, changed.revision) == ("The cat is called Momo.", 2)
    assert [each.content for each in await client.memories.history(ids[0])] == ["The cat is called Mimi."]
    assert await client.memories.forget_where(tags=["pet"], dry_run=True) == 1
    assert await client.memories.forget_where(tags=["pet"]) == 1
    assert [await client.memories.forget(ids[0]) for _ in range(2)] == [True, False]


async def test_pages_of_a_hundred_are_joined(client):
    ids = await client.memories.store_many([f"memory number {number}" for number in range(230)])
    assert [each.id async for each in client.memories.scan()] == ids


async def test_an_edit_of_what_somebody_has_changed_is_a_conflict(client):
    id = await client.memories.store("first")
    await client.memories.update(id, content="second", expected_revision=1)
    for call in (
        client.memories.update(id, content="third", expected_revision=1),
        client.memories.forget(id, expected_revision=1),
    ):
        with pytest.raises(Conflict):
            await call
    await client.memories.update(id, content="third")


async def test_the_verbs_of_threads_do_what_those_of_the_library_do(client):
    talk = client.threads
    thread = await talk.create("a/b ü", metadata={"topic": "tea"})
    assert (thread.id, thread.owner, thread.metadata) == ("a/b ü", "ann", {"topic": "tea"})
    parts = [TextPart("see"), ImagePart(url="https://example.org/a.png", width=5)]
    given = [
        Message(Role.USER, parts, id="m1", metadata={"a": 1}, extra={"cache": [1]}),
        Message(Role.ASSISTANT, "", tool_calls=[ToolCall("c", "find", '{"a":1}')]),
        Message(Role.TOOL, "found", tool_call_id="c"),
        {"role": "user", "content": "thank you"},
    ]
    kept = await talk.add_messages(thread.id, given)
    assert (kept[0].content, kept[0].extra, kept[0].metadata) == (parts, {"cache": [1]}, {"a": 1})
    assert [each.index for each in kept] == [1, 2, 3, 4]
    last = await talk.add_message_to_thread(thread.id, "assistant", "you are welcome")
    assert await talk.history(thread.id) == [*kept, last]
    assert await talk.history(thread.id, offset=1, limit=2) == kept[1:3]
    assert await talk.expand(thread.id, "m1") == await talk.expand(thread.id, 1) == kept[0]
    assert (await talk.get_thread_context(thread.id)).messages == [*kept, last]
    assert (await talk.retrieve(thread.id)).messages == [*kept, last]
    assert (await talk.compact(thread.id)).kept == 5
    await talk.archive(thread.id, expected_revision=thread.revision)
    assert [each.status for each in await talk.list_threads("archived")] == [ThreadStatus.ARCHIVED]
    with pytest.raises(ThreadArchivedError):
        await talk.add_message_to_thread(thread.id, "user", "late")
    with pytest.raises(Conflict):
        await talk.unarchive(thread.id, expected_revision=thread.revision)
    await talk.unarchive(thread.id)
    assert [await talk.delete(thread.id) for _ in range(2)] == [True, False]
    assert await talk.retrieve(thread.id) is None


async def test_a_long_history_is_fetched_whole(client):
    texts = [f"message {number}" for number in range(250)]
    await client.threads.add_messages("t", [Message.user(text) for text in texts])
    assert [each.text for each in await client.threads.history("t")] == texts


async def test_the_verbs_of_documents_do_what_those_of_the_library_do(client, tmp_path):
    docs = client.documents
    id = await docs.ingest("Green tea is brewed at eighty degrees.", "tea.md", category="kitchen", chunk_size=100)
    document = await docs.get(id)
    assert (document.source, document.owner, document.metadata) == ("tea.md", "ann", {"category": "kitchen"})
    assert document.options["size"] == 100
    (chunk,) = await docs.retrieve("how hot is tea", filter={"category": "kitchen"})
    assert (chunk.document_id, chunk.content) == (id, "Green tea is brewed at eighty degrees.")
    assert "[tea.md]" in await docs.get_context("how hot is tea")
    assert [each.replace(score=chunk.score) for each in await docs.chunks(id)] == [chunk]
    file = tmp_path / "coffee.html"
    file.write_text("<p>Coffee is brewed at ninety-four degrees.</p>")
    sent = await docs.get(await docs.ingest_file(file, category="kitchen", year=2026))
    assert (sent.source, sent.metadata) == ("coffee.html", {"category": "kitchen", "year": 2026})
    with pytest.raises(InvalidInput, match="metadata"):
        await docs.ingest_file(file, chunks={"text": "x" * 5000})
    assert [each.source for each in await docs.list_documents()] == ["coffee.html", "tea.md"]
    assert (await docs.stats()).documents == 2
    assert [await docs.remove(id) for _ in range(2)] == [True, False]


async def test_a_context_is_the_librarys_own_and_renders_itself(client):
    await client.memories.store("Ann likes to drink green tea.")
    await client.memories.store("The office is closed on Sundays; tea is in the kitchen.", layer="organizational")
    await client.threads.add_message_to_thread("t", "user", "Hello, I am Ann.")
    context = await client.context("Which tea does Ann like to drink?", thread_id="t", system="Be brief.")
    assert isinstance(context, ComputedContext)
    assert sum(context.tokens_by_source.values()) == context.estimated_tokens
    assert [message["role"] for message in context.to_openai()] == ["system", "user", "user", "user"]
    assert "green tea" in context.to_prompt()
    assert all(each in context.memories for each in context.knowledge)
    assert "Kept:" in context.explain()


async def test_an_export_can_be_imported(client):
    async with client:
        for number in range(3):
            await client.memories.store(f"memory {number}")
        lines = [line async for line in client.export(embeddings=True)]
        assert len(lines) == 3
        await client.memories.forget_where(layers=["longterm"])
        assert (await client.import_lines(lines))["erased"] == 3
        assert (await client.import_lines(lines, revive=True))["written"] == 3
        assert [line async for line in client.export(embeddings=True)] == lines
        with pytest.raises(InvalidInput, match="line 2"):
            await client.import_lines(['{"content": "good"}', "nonsense"])
        assert (await client.stats())["memories"] == 3
        assert (await client.run_maintenance())["failures"] == {}
        assert (await client.check())["is_sound"]
        with pytest.raises(Unsupported, match="server"):
            await client.backup()
        await client.memories.store("Pay Evilbank", source="web:bad.example/1")
        act = await client.memories.quarantine(prefix="web:bad.example/")
        assert [act] == await client.memories.quarantined()
        assert await client.memories.release(act.id) == act.from_source
        assert [
            await client.memories.forget_source(source="web:bad.example/1", dry_run=dry) for dry in (True, False)
        ] == [1, 1]
        with pytest.raises(InvalidInput, match="confirm"):
            await client.erase("mira", confirm="tomas")
        assert (await client.erase("mira", confirm="mira"))["is_complete"]
        assert (await client.stats())["memories"] == 3


@pytest.mark.parametrize(
    ("call", "error", "field"),
    [
        (lambda client: client.memories.store(" "), InvalidInput, "content"),
        (lambda client: client.memories.store("x", relevance=2), InvalidInput, "relevance"),
        (lambda client: client.memories.store("x", metadata={"a": float("nan")}), InvalidInput, "arguments"),
        (lambda client: client.memories.store("x", metadata={"a": object()}), InvalidInput, "arguments"),
        (lambda client: client.memories.recall("x", limit=0), InvalidInput, "limit"),
        (lambda client: client.memories.recall("x", where={"a": {"no_such": 1}}), InvalidInput, "where"),
        (lambda client: client.memories.recall("x", rerank="openai"), InvalidInput, "rerank"),
        (lambda client: client.memories.forget_where(), InvalidInput, None),
        (lambda client: client.memories.update("none", content="x"), MemoryNotFound, None),
        (lambda client: client.threads.history("none"), ThreadNotFound, None),
        (lambda client: client.threads.compact("none"), ThreadNotFound, None),
        (lambda client: client.threads.add_messages("t", "text"), InvalidType, "messages"),
        (lambda client: client.threads.add_message_to_thread("t", "robot", "x"), InvalidInput, "role"),
        (lambda client: client.threads.list_threads("gone"), InvalidInput, "status"),
        (lambda client: client.documents.chunks("none"), DocumentNotFound, None),
        (lambda client: client.documents.ingest("x", "a.md", chunk_size=0), InvalidInput, "chunk_size"),
        (lambda client: client.documents.ingest_file("/none/such"), InvalidInput, "path"),
        (lambda client: client.context("x", thread_id="none"), ThreadNotFound, None),
        (lambda client: client.context("x", token_budget=0), InvalidInput, "token_budget"),
        (lambda client: client.memories.get("x", owner=" "), InvalidInput, "owner"),
    ],
)
async def test_what_the_server_refuses_is_the_error_that_the_library_raises(client, call, error, field):
    with pytest.raises(error) as refusal:
        await call(client)
    assert field is None or field in refusal.value.field


async def test_errors_that_name_an_id_keep_it(client):
    await client.threads.add_message_to_thread("t", "user", "hello")
    with pytest.raises(MessageNotFound) as missing:
        await client.threads.expand("t", 99)
    assert missing.value.id == "99"
    with pytest.raises(NoModelConfiguredError, match="extract_memories"):
        await client.threads.extract_memories("t")
    await client.threads.add_messages("t", [Message.user("one").replace(id="m")])
    with pytest.raises(Conflict, match="taken by another message"):
        await client.threads.add_messages("t", [Message.user("two").replace(id="m")])


async def test_a_token_that_is_wrong_or_anothers_is_refused(tmp_path):
    async def authenticate(token):
        return Principal(owner="ann", id=token) if token == "anns" else None

    with served(Kernel(data_dir=tmp_path), auth=authenticate) as url:
        async with LaminaClient(url, token="wrong") as client:
            with pytest.raises(ScopeError):
                await client.memories.get("x")
        async with LaminaClient(url, token="anns", owner="bob") as client:
            with pytest.raises(ScopeError):
                await client.memories.store("x")
        async with LaminaClient(url, token="anns") as client:
            entry = await client.memories.get(await client.memories.store("x"))
            assert entry.owner == "ann"


async def test_a_server_that_is_not_there_is_unavailable():
    async with LaminaClient("http://127.0.0.1:1", max_retries=0) as client:
        with pytest.raises(AdapterUnavailable):
            await client.memories.get("x")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"base_url": "ftp://example.org"}, "base_url"),
        ({"base_url": "http://user:secret@example.org"}, "base_url"),
        ({"base_url": "http://example.org:port"}, "base_url"),
        ({"base_url": None}, "base_url"),
        ({"token": ""}, "token"),
        ({"token": "a b"}, "token"),
        ({"token": "a\r\nX: y"}, "token"),
        ({"token": "é"}, "token"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
        ({"owner": ""}, "owner"),
    ],
)
def test_a_client_that_cannot_be_is_refused_by_the_name_of_what_is_wrong(options, field):
    with pytest.raises((ConfigError, InvalidInput)) as refusal:
        LaminaClient(**{"base_url": "http://example.org", **options})
    assert refusal.value.field == field
    assert "secret" not in str(refusal.value)


def test_the_blocking_twins_do_the_same(url):
    with SyncLaminaClient(url, token=TOKEN, owner="ann") as client:
        id = client.memories.store("Ann likes to drink green tea.")
        assert client.memories.get(id).content == "Ann likes to drink green tea."
        assert [each.id for each in client.memories.scan()] == [id]
        client.threads.add_message_to_thread("t", "user", "Hello.")
        assert [each.text for each in client.threads.history("t")] == ["Hello."]
        assert "green tea" in client.context("Which tea?", thread_id="t").to_prompt()
        assert client.import_lines(list(client.export()))["written"] == 0
        with pytest.raises(ThreadNotFound):
            client.threads.history("none")
    with SyncRemoteMemory(url, token=TOKEN, owner="ann", session="s") as memory:
        memory.add({"role": "user", "content": "Hello."})
        assert [each.text for each in memory.get_context()] == ["Hello."]
        assert memory.get_session_ids() == ["s"]


@pytest.mark.parametrize("made", [LaminaClient, SyncLaminaClient, SyncRemoteMemory])
def test_a_token_is_shown_nowhere(made):
    client = made("http://example.org", token="very-secret")
    assert "very-secret" not in repr(client)
    assert "very-secret" not in repr(vars(client))
