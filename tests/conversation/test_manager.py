from __future__ import annotations

import asyncio

import pytest

from lamina.conversation.manager import ConversationManager
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import ImagePart, Message, OpaquePart, ReasoningPart, TextPart, ToolCall
from lamina.domain.message_groups import orphans
from lamina.domain.thread import SummarySource, ThreadKind, ThreadRef, ThreadStatus
from lamina.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    InvalidType,
    ScopeError,
    ThreadArchivedError,
    ThreadNotFound,
)
from lamina.state.sqlite import SqliteStateStore

SMALL = WindowPolicy(fold_at=7, keep=4)


def texts(messages):
    return [message.text for message in messages]


async def test_a_thread_is_made_once_and_then_returned_as_it_is(manager, clock):
    first = await manager.create("ticket-7", owner="mira", namespace="support", metadata={"plan": "gold"})
    clock.advance(60)
    assert await manager.create("ticket-7", owner="mira", metadata={"plan": "none"}) == first
    assert (first.owner, first.namespace, first.metadata) == ("mira", "support", {"plan": "gold"})


async def test_adding_to_an_unknown_thread_makes_it(manager):
    message = await manager.add_message_to_thread("new", "user", "Hello", owner="mira", metadata={"channel": "web"})
    assert (message.index, message.role, message.text) == (1, "user", "Hello")
    assert message.id.startswith("msg_")
    assert message.metadata == {"channel": "web"}
    assert message.timestamp is not None
    thread = await manager.retrieve("new")
    assert (thread.owner, thread.messages) == ("mira", [message])


@pytest.mark.parametrize("id", ["", "  ", "\u200b"])
async def test_a_blank_id_is_refused(manager, id):
    with pytest.raises(InvalidInput):
        await manager.create(id)
    with pytest.raises(InvalidInput):
        await manager.add_message_to_thread(id, "user", "Hello")


async def test_at_two_hundred_messages_the_summary_stands_for_150_and_fifty_are_shown(manager, fill):
    await fill(manager, 200)
    context = await manager.get_thread_context("t")
    assert [message.index for message in context.messages] == list(range(151, 201))
    assert context.summary
    (summary,) = (await manager.retrieve("t")).summaries
    assert (summary.from_index, summary.to_index, summary.source) == (1, 150, SummarySource.EXTRACTIVE)
    assert context.warnings == []


async def test_up_to_fifty_messages_there_is_no_summary(manager, fill):
    await fill(manager, 50)
    context = await manager.get_thread_context("t")
    assert (context.summary, len(context.messages)) == (None, 50)


async def test_history_reaches_every_message_in_order_page_by_page(manager, fill):
    await fill(manager, 130)
    pages = [await manager.history("t", offset=offset, limit=50) for offset in (0, 50, 100, 150)]
    assert [len(page) for page in pages] == [50, 50, 30, 0]
    assert [message.index for page in pages for message in page] == list(range(1, 131))


async def test_order_is_that_of_adding_even_if_the_clock_steps_back(manager, clock):
    for number in range(5):
        clock.advance(-3600)
        await manager.add_message_to_thread("t", "user", str(number))
    assert texts((await manager.get_thread_context("t")).messages) == ["0", "1", "2", "3", "4"]


async def test_system_messages_stay_first_and_in_full_whatever_is_folded(make, fill):
    manager = make(policy=SMALL)
    await manager.add_message_to_thread("t", "system", "Answer in Turkish only.")
    await fill(manager, 20)
    await manager.add_message_to_thread("t", "system", "Never mention prices.")
    await fill(manager, 9, start=21)
    context = await manager.get_thread_context("t", max_messages=2)
    assert texts(context.messages)[:2] == ["Answer in Turkish only.", "Never mention prices."]
    assert texts(context.messages)[2:] == [f"Message {number} of the harbour log." for number in (28, 29)]


async def test_fewer_messages_than_the_window_leave_the_others_in_extracts(make):
    manager = make()
    for number in range(1, 31):
        await manager.add_message_to_thread("t", "user", f"Crane {number} is out of order.")
    context = await manager.get_thread_context("t", max_messages=20)
    assert [message.index for message in context.messages] == list(range(11, 31))
    assert "[10 messages that are not shown here, in extracts:]" in context.summary
    assert all(f"Crane {number} " in context.summary for number in range(1, 11))
    everything = await manager.get_thread_context("t")
    assert everything.summary is None


async def test_a_late_result_of_a_folded_call_is_covered_and_no_orphan(make, fill):
    manager = make(policy=SMALL)
    await manager.add_message_to_thread("t", "assistant", "", tool_calls=[ToolCall("c1", "weigh")])
    await fill(manager, 30)
    await manager.add_message_to_thread("t", "tool", "The crate weighs 412 kg.", tool_call_id="c1")
    context = await manager.get_thread_context("t")
    assert orphans(context.messages) == []
    assert "412 kg" in context.summary
    await fill(manager, 12, start=31)
    context = await manager.get_thread_context("t")
    assert orphans(context.messages) == []
    assert texts(context.messages) == [f"Message {number} of the harbour log." for number in range(39, 43)]


async def test_tokens_are_those_of_the_summary_and_of_every_message_shown(make, fill):
    class Words:
        name = "words"
        is_exact = True

        def count(self, text):
            return len(text.split())

    manager = make(counter=Words(), policy=SMALL)
    await fill(manager, 10)
    context = await manager.get_thread_context("t")
    words = len(context.summary.split()) + sum(len(message.text.split()) for message in context.messages)
    assert context.tokens == words + 4 * (1 + len(context.messages))
    other = await make(policy=SMALL).get_thread_context("t")
    assert other.tokens != context.tokens


async def test_an_unknown_thread_has_an_empty_context_and_nothing_else(manager):
    context = await manager.get_thread_context("nothing")
    assert (context.summary, context.messages, context.tokens) == (None, [], 0)
    assert await manager.retrieve("nothing") is None
    assert await manager.delete("nothing") is False
    for call in (manager.archive, manager.unarchive, manager.history, manager.compact):
        with pytest.raises(ThreadNotFound) as caught:
            await call("nothing")
        assert isinstance(caught.value, KeyError)


async def test_an_archived_thread_takes_no_message_shows_nothing_and_keeps_everything(manager, fill, events):
    await fill(manager, 3)
    await manager.archive("t")
    await manager.archive("t")
    assert [name for name, _ in events] == ["thread.archived"]
    with pytest.raises(ThreadArchivedError):
        await manager.add_message_to_thread("t", "user", "Are you there?")
    assert (await manager.get_thread_context("t")).messages == []
    thread = await manager.retrieve("t")
    assert (thread.status, len(thread.messages)) == (ThreadStatus.ARCHIVED, 3)
    assert (await manager.create("t")).status is ThreadStatus.ARCHIVED
    await manager.unarchive("t")
    assert (await manager.add_message_to_thread("t", "user", "Yes")).index == 4


async def test_threads_are_listed_by_status_newest_activity_first(manager, clock):
    for name in ("a", "b", "c"):
        clock.advance(60)
        await manager.create(name, owner="mira" if name != "c" else None)
    clock.advance(60)
    await manager.add_message_to_thread("a", "user", "Again")
    await manager.archive("b")
    assert [thread.id for thread in await manager.list_threads()] == ["a", "c"]
    assert [thread.id for thread in await manager.list_threads("archived")] == ["b"]
    assert {thread.id for thread in await manager.list_threads("all")} == {"a", "b", "c"}
    assert {thread.id for thread in await manager.list_threads("all", owner="mira")} == {"a", "b"}
    assert await manager.list_threads("all", owner="tomas") == []
    assert len(await manager.list_threads("all", limit=1, offset=1)) == 1
    with pytest.raises(InvalidInput):
        await manager.list_threads("gone")


async def test_a_thread_of_one_owner_is_refused_to_any_other_on_every_path(manager, fill):
    await manager.create("t", owner="mira")
    await fill(manager, 3, owner="mira")
    calls = [
        lambda: manager.create("t", owner="mira2"),
        lambda: manager.add_message_to_thread("t", "user", "Hi", owner="mira2"),
        lambda: manager.add_messages("t", [Message.user("Hi")], owner="Mira"),
        lambda: manager.get_thread_context("t", owner="mir"),
        lambda: manager.retrieve("t", owner="tomas"),
        lambda: manager.history("t", owner="tomas"),
        lambda: manager.archive("t", owner="tomas"),
        lambda: manager.unarchive("t", owner="tomas"),
        lambda: manager.compact("t", owner="tomas"),
        lambda: manager.delete("t", owner="tomas"),
    ]
    for call in calls:
        with pytest.raises(ScopeError) as caught:
            await call()
        assert isinstance(caught.value, PermissionError)
    assert len(await manager.history("t", owner="mira")) == 3


async def test_a_thread_without_an_owner_takes_several_speakers(manager):
    await manager.create("ticket")
    await manager.add_message_to_thread("ticket", "user", "It stops.", owner="mira")
    await manager.add_message_to_thread("ticket", "user", "Mine too.", owner="tomas")
    assert (await manager.retrieve("ticket", owner="ali")).owner is None


async def test_another_namespace_than_the_threads_is_refused(manager):
    await manager.create("t", namespace="a")
    with pytest.raises(ScopeError):
        await manager.create("t", namespace="b")


async def test_the_same_id_names_another_thread_in_another_tenant(make, fill):
    await fill(make(tenant="one"), 2)
    other = make(tenant="two")
    assert (await other.get_thread_context("t")).messages == []
    assert await other.list_threads() == []
    with pytest.raises(ThreadNotFound):
        await other.history("t")


async def test_a_memory_engine_of_another_tenant_is_refused(make, memory):
    with pytest.raises(ConfigError):
        make(tenant="other", memory=memory)


async def test_threads_leak_nothing_to_each_other(manager, fill):
    await fill(manager, 60, thread="plan-a")
    await fill(manager, 2, thread="plan-a-final")
    context = await manager.get_thread_context("plan-a-final")
    assert (context.summary, len(context.messages)) == (None, 2)


async def test_messages_are_added_together_or_not_at_all(manager):
    with pytest.raises(InvalidInput):
        await manager.add_messages("t", [Message.user("Fine"), Message.user("  ")])
    assert await manager.retrieve("t") is None
    added = await manager.add_messages("t", [Message.user("One"), Message.assistant("Two")])
    assert [message.index for message in added] == [1, 2]
    assert [message.parent for message in added] == [None, added[0].id]
    assert await manager.add_messages("t", []) == []
    with pytest.raises(InvalidType):
        await manager.add_messages("t", "Hello")


async def test_adding_under_the_same_id_again_changes_nothing_and_other_words_are_a_conflict(manager):
    first = await manager.add_message_to_thread("t", "user", "Pay the rent", id="turn-1")
    assert await manager.add_message_to_thread("t", "user", "Pay the rent", id="turn-1") == first
    with pytest.raises(Conflict):
        await manager.add_messages(
            "t",
            [
                Message.user("And this"),
                Message.user(
                    "Do not",
                ).replace(id="turn-1"),
            ],
        )
    assert texts(await manager.history("t")) == ["Pay the rent"]


@pytest.mark.parametrize(
    ("role", "content", "options"),
    [
        ("narrator", "Hm", {}),
        (None, "Hm", {}),
        ("user", "", {}),
        ("user", " \n\u200b", {}),
        ("user", [], {}),
        ("user", [TextPart(" "), ImagePart()], {}),
        ("user", "x", {"tool_calls": [ToolCall("a", "b")]}),
        ("assistant", "x", {"tool_calls": [ToolCall("a", "b"), ToolCall("a", "c")]}),
        ("assistant", "x", {"tool_calls": [ToolCall("", "b")]}),
        ("user", "x", {"tool_call_id": "a"}),
        ("user", "x", {"metadata": {"when": object()}}),
        ("user", "x", {"id": " "}),
    ],
)
async def test_what_is_no_message_is_refused_and_nothing_is_written(manager, role, content, options):
    with pytest.raises((InvalidInput, InvalidType)):
        await manager.add_message_to_thread("t", role, content, **options)
    assert await manager.retrieve("t") is None


@pytest.mark.parametrize("content", [7, None, b"x", {"a": 1}, ["x"]])
async def test_content_of_another_type_is_refused(manager, content):
    with pytest.raises(InvalidType):
        await manager.add_message_to_thread("t", "user", content)


async def test_parts_calls_thoughts_and_what_a_provider_adds_come_back_as_they_were(manager):
    parts = [
        ReasoningPart("The user wants a picture.", {"signature": "sig=="}),
        TextPart("Look", {"cache_control": {"type": "ephemeral"}}),
        ImagePart(data="aGk=", media_type="image/png", width=10, height=10),
        OpaquePart("redacted_thinking", {"data": "xx"}),
    ]
    calls = [ToolCall("c1", "draw", '{"n": 1}', {"index": 0}), ToolCall("c2", "draw", "not json")]
    sent = Message.assistant(parts, tool_calls=calls).replace(extra={"refusal": None, "audio": {"id": "a"}})
    await manager.add_messages("t", [sent, Message.tool("", call_id="c2"), Message.tool("ok", call_id="c1")])
    (kept, empty, _) = (await manager.get_thread_context("t")).messages
    assert (kept.content, kept.tool_calls, kept.extra) == (parts, calls, sent.extra)
    assert (empty.text, empty.tool_call_id) == ("", "c2")


async def test_a_lone_surrogate_and_a_nul_are_replaced_before_anything_is_counted_or_kept(manager):
    message = await manager.add_message_to_thread("t", "user", "pay\x00roll \ud83d is due")
    assert message.text == "pay\ufffdroll \ufffd is due"
    assert (await manager.get_thread_context("t")).messages[0].text == message.text


async def test_a_million_characters_without_a_space_are_kept_folded_and_never_cut(make):
    manager = make(policy=WindowPolicy(fold_at=3, keep=1))
    text = "x" * 1_000_000
    await manager.add_message_to_thread("t", "user", text)
    await manager.add_message_to_thread("t", "assistant", "That was long.")
    assert (await manager.get_thread_context("t")).messages[0].text == text
    await manager.add_message_to_thread("t", "user", "Yes.")
    context = await manager.get_thread_context("t")
    assert texts(context.messages) == ["Yes."]
    assert len(context.summary) < 10_000
    assert (await manager.history("t", limit=1))[0].text == text


async def test_many_adders_at_once_leave_every_message_once_and_the_window_folded(make):
    manager = make(policy=SMALL)
    adding = (manager.add_message_to_thread("t", "user", f"Message {number}") for number in range(1, 61))
    added = await asyncio.gather(*adding)
    assert [message.index for message in added] == list(range(1, 61))
    assert texts(await manager.history("t")) == [f"Message {number}" for number in range(1, 61)]
    assert SMALL.keep <= len((await manager.get_thread_context("t")).messages) < SMALL.due_at


async def test_two_managers_on_two_stores_of_one_file_lose_nothing(make, path, clock):
    async with SqliteStateStore(path) as second:
        managers = [make(policy=SMALL), ConversationManager(second, policy=SMALL, clock=clock)]
        adding = (
            manager.add_message_to_thread("t", "user", f"{name} {number}")
            for number in range(20)
            for name, manager in enumerate(managers)
        )
        await asyncio.gather(*adding)
        kept = texts(await managers[0].history("t"))
        for name in range(2):
            assert [text for text in kept if text.startswith(f"{name} ")] == [f"{name} {n}" for n in range(20)]
        context = await managers[1].get_thread_context("t")
        (summary,) = (await managers[0].retrieve("t")).summaries
        assert [message.index for message in context.messages] == list(range(summary.to_index + 1, 41))


async def test_a_thread_goes_on_where_it_was_after_the_file_is_opened_again(path, clock):
    for round in range(3):
        async with SqliteStateStore(path) as store:
            manager = ConversationManager(store, policy=SMALL, clock=clock)
            for number in range(4):
                await manager.add_message_to_thread("t", "user", f"Round {round}, message {number}")
    async with SqliteStateStore(path) as store:
        context = await ConversationManager(store).get_thread_context("t")
        assert [message.index for message in context.messages] == list(range(7, 13))
        assert "Round 0" in context.summary


async def test_a_deleted_thread_is_gone_and_its_name_begins_anew(manager, fill, store):
    await fill(manager, 60)
    assert await manager.delete("t") is True
    assert await manager.retrieve("t") is None
    assert (await manager.add_message_to_thread("t", "user", "New")).index == 1
    assert (await manager.get_thread_context("t")).summary is None


async def test_reserved_metadata_is_refused_and_never_shown(make, fill):
    with pytest.raises(InvalidInput):
        await make().create("t", metadata={"lamina:summarizer": {"failures": 9}})

    async def broken(previous, messages):
        raise RuntimeError("no")

    manager = make(policy=SMALL, summarizer=broken)
    await manager.create("t", metadata={"plan": "gold"})
    await fill(manager, 8)
    assert (await manager.retrieve("t")).metadata == {"plan": "gold"}
    assert [thread.metadata for thread in await manager.list_threads()] == [{"plan": "gold"}]


async def test_a_session_of_the_same_name_is_another_conversation(manager, store, fill):
    await fill(manager, 2)
    assert await store.events(ThreadRef("default", "t", ThreadKind.SESSION)) == []


async def test_one_manager_serves_several_event_loops_at_once(store, tmp_path):
    manager = ConversationManager(store, policy=SMALL)

    async def add(loop):
        await asyncio.gather(*(manager.add_message_to_thread("t", "user", f"{loop}-{n}") for n in range(30)))

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, add(loop)) for loop in range(3)))
    said = texts(await manager.history("t", limit=1000))
    assert sorted(said) == sorted(f"{loop}-{n}" for loop in range(3) for n in range(30))
    for loop in range(3):
        own = [text for text in said if text.startswith(f"{loop}-")]
        assert own == [f"{loop}-{n}" for n in range(30)]


async def test_a_counter_or_a_handler_of_events_that_fails_after_the_message_is_kept_does_not_say_otherwise(store):
    class Counter:
        name, is_exact = "own", False

        def count(self, text):
            if "word" not in text:
                raise RuntimeError("not a message")
            return len(text)

    def emit(event):
        raise RuntimeError(event.name)

    for id, options in (("a", {"counter": Counter()}), ("b", {"emit": emit})):
        manager = ConversationManager(store, policy=WindowPolicy(3, 2), **options)
        for number in range(6):
            await manager.add_message_to_thread(id, "user", f"word {number}")
        assert texts(await manager.history(id)) == [f"word {number}" for number in range(6)]


async def test_an_id_that_looks_like_an_index_is_an_id_first(manager):
    await manager.add_message_to_thread("t", "user", "first", id="2")
    await manager.add_message_to_thread("t", "user", "second", id="1")
    assert (await manager.expand("t", "2")).text == "first"
    assert (await manager.expand("t", "#2")).text == (await manager.expand("t", 2)).text == "second"


@pytest.mark.parametrize("odd", [5, "text", [1], True, {1: 2}], ids=repr)
@pytest.mark.parametrize("field", ["metadata", "extra"])
async def test_what_a_message_carries_beside_its_words_is_a_mapping(manager, field, odd):
    with pytest.raises(InvalidType, match=field):
        await manager.add_message_to_thread("t", "user", "Hello", **{field: odd})
    assert await manager.retrieve("t") is None


@pytest.mark.parametrize("name", ["policy", "summarizer", "summary", "context_engineering", "memory"])
def test_a_setting_of_another_class_is_refused_before_any_message_is_kept(make, name):
    with pytest.raises(ConfigError, match=name):
        make(**{name: {"fold_at": 5}})
