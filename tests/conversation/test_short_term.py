"""Sessions of short-term memory, in memory and in a file; managing their size is tested beside this."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from running_server import TOKEN, served

from lamina.client import RemoteMemory
from lamina.conversation.memory_events import MemoryEvent
from lamina.conversation.short_term import BaseMemory
from lamina.conversation.short_term_stores import InMemoryMemory, PostgresMemory, SQLiteMemory
from lamina.domain.message import ImagePart, Message, Role, TextPart
from lamina.domain.thread import ThreadKind
from lamina.errors import (
    ConfigError,
    Conflict,
    ContextOverflowError,
    InvalidInput,
    InvalidType,
    LaminaError,
    MessageNotFound,
    ScopeError,
)
from lamina.kernel import Kernel
from lamina.providers.tokens import EstimateCounter
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import FrozenClock, counting_ids

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


THRESHOLDS = {"pre_rot_threshold": 2_000, "recent_to_keep": 4}


@pytest.fixture(params=["in memory", "file", "PostgreSQL", "HTTP"])
async def memory(request, tmp_path):
    new_id = counting_ids("msg_")
    if request.param == "HTTP":
        settings = {"conversation": {"context_engineering": THRESHOLDS}}
        with served(Kernel(data_dir=tmp_path, clock=FrozenClock(NOW), **settings)) as url:
            async with RemoteMemory(url, token=TOKEN, new_id=new_id) as made:
                yield made
        return
    options = {"clock": FrozenClock(NOW), "new_id": new_id, "thresholds": THRESHOLDS}
    if request.param == "in memory":
        made = InMemoryMemory(**options)
    elif request.param == "file":
        made = SQLiteMemory(tmp_path / "a.db", **options)
    else:
        url, schema = (request.getfixturevalue(name) for name in ("postgres_url", "postgres_schema"))
        made = PostgresMemory(url, schema=schema, **options)
    yield made
    await made.close()


def said(role, content, **fields):
    return {"role": role, "content": content, **fields}


def calling(*ids):
    calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(id, content="done"):
    return {"role": "tool", "tool_call_id": id, "content": content}


async def texts(memory, **options):
    return [event.message.text for event in await memory.list(**options)]


async def test_nothing_needs_to_be_opened():
    memory = InMemoryMemory()
    await memory.add({"message": {"role": "user", "content": "hello"}, "state": {"issue": "stall"}})
    (event,) = await memory.list()
    assert (event.message.text, event.state) == ("hello", {"issue": "stall"})


def test_a_memory_can_be_used_in_one_event_loop_after_another():
    memory = InMemoryMemory()
    asyncio.run(memory.add(said("user", "one")))
    asyncio.run(memory.add(said("user", "two")))
    assert asyncio.run(memory.get_count()) == 2


@pytest.mark.parametrize(
    "given",
    [
        MemoryEvent(Message.user("hi")),
        Message.user("hi"),
        {"message": {"role": "user", "content": "hi"}},
        {"message": Message.user("hi"), "state": None},
        {"role": "user", "content": "hi"},
    ],
    ids=["event", "message", "mapping", "mapping with a message", "OpenAI"],
)
async def test_an_event_is_taken_in_every_shape_and_gets_an_id_a_time_and_an_index(memory, given):
    event = await memory.add(given)
    message = event.message
    assert (message.role, message.text, message.id) == (Role.USER, "hi", "msg_000001")
    assert (message.timestamp, message.index) == (NOW, 1)
    assert event.tokens > 0
    assert await memory.list() == [event]


async def test_what_openai_sends_is_understood_with_calls_and_pictures(memory):
    await memory.add(calling("a", "b"))
    await memory.add(answer("a"))
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    await memory.add(said("user", parts, id="m3", timestamp="2026-03-01T10:00:00+02:00"))
    first, second, third = (event.message for event in await memory.list())
    assert [call.id for call in first.tool_calls] == ["a", "b"]
    assert second.tool_call_id == "a"
    assert third.id == "m3"
    assert third.content == [TextPart("see"), ImagePart(url="https://example.org/a.png")]
    assert third.timestamp == datetime(2026, 3, 1, 8, tzinfo=UTC)


async def test_a_picture_costs_tokens(memory):
    event = await memory.add(Message.user([ImagePart(data="A" * 100_000, media_type="image/png")]))
    assert 500 < event.tokens < 2_000


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (5, InvalidType),
        ("hello", InvalidType),
        ({"message": "hello"}, InvalidType),
        ({"message": {"role": "robot", "content": "x"}}, InvalidInput),
        ({"message": {"content": "x"}}, LaminaError),
        ({"message": {"role": "user", "content": 5}}, LaminaError),
        ({"message": {"role": "user", "content": "x"}, "sate": {}}, InvalidInput),
        ({"message": {"role": "user", "content": "x"}, "state": []}, InvalidType),
        ({"message": {"role": "user", "content": "x", "id": ""}}, InvalidInput),
        ({"message": {"role": "user", "content": "x", "timestamp": "soon"}}, InvalidInput),
        ({"message": {"role": "user", "content": "x", "timestamp": datetime(2026, 1, 1)}}, LaminaError),  # noqa: DTZ001
        ({"message": {"role": "user", "content": "x"}, "state": {"at": NOW}}, InvalidInput),
        ({"message": {"role": "user", "content": "x"}, "state": {"x": float("nan")}}, InvalidInput),
        ({"message": {"role": "user", "content": "x"}, "state": {"__summary__": {}}}, InvalidInput),
        ({"message": {"role": "user", "content": "x"}, "state": {"__compaction__": {}}}, InvalidInput),
        (MemoryEvent(Message(Role.USER, 5)), LaminaError),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_nothing_is_written(memory, given, error):
    with pytest.raises(error):
        await memory.add_list([said("user", "good"), given], "s")
    assert await memory.get_session_ids() == []


async def test_the_session_is_the_argument_else_what_the_state_names_else_default(memory):
    message = said("user", "x")
    await memory.add({"message": message, "state": {"session_id": "a"}})
    await memory.add({"message": message, "state": {"sessionId": "b"}})
    await memory.add({"message": message, "state": {"session_id": "a"}}, session_id="c")
    await memory.add(message)
    assert sorted(await memory.get_session_ids()) == ["a", "b", "c", "default"]
    assert [await memory.get_count(each) for each in ("a", "b", "c", None, "d")] == [1, 1, 1, 1, 0]
    assert await memory.has_session("a")
    assert not await memory.has_session("d")
    assert await memory.is_empty("d")
    with pytest.raises(InvalidInput):
        await memory.add({"message": message, "state": {"session_id": " "}})


async def test_an_event_of_a_known_id_is_not_added_twice(memory):
    first = await memory.add(said("user", "x", id="m1"))
    assert await memory.add(said("user", "x", id="m1")) == first
    assert await memory.add_list([said("user", "y", id="m2"), said("user", "y", id="m2")]) == (
        [(await memory.list())[-1]] * 2
    )
    assert await memory.get_count() == 2


async def test_another_message_under_a_known_id_is_refused_and_not_lost(memory):
    await memory.add(said("user", "x", id="m1"))
    with pytest.raises(Conflict):
        await memory.add_list([said("user", "y"), said("user", "other", id="m1")])
    with pytest.raises(Conflict):
        await memory.add_list([said("user", "y", id="m2"), said("user", "z", id="m2")])
    assert [event.message.text for event in await memory.list()] == ["x"]


@pytest.mark.parametrize("odd", [None, 5, "text", [1]], ids=repr)
async def test_state_and_metadata_are_changed_to_mappings_alone(memory, odd):
    event = await memory.add(said("user", "x"))
    for field in ("state", "metadata"):
        with pytest.raises(InvalidType, match=field):
            await memory.update(event.message.id, **{field: odd})
    with pytest.raises(InvalidInput, match="order"):
        await memory.list(order=[])
    assert await memory.list() == [event]


async def test_what_is_read_is_the_callers_own(memory):
    await memory.add({"message": said("user", "x"), "state": {"list": [1]}})
    (event,) = await memory.list()
    event.state["list"].append(2)
    event.message.metadata["a"] = 1
    (again,) = await memory.list()
    assert (again.state, again.message.metadata) == ({"list": [1]}, {})


async def test_order_is_that_of_adding_even_if_the_clock_stands_still(memory):
    await memory.add_list([said("user", str(number)) for number in range(50)])
    assert await texts(memory) == [str(number) for number in range(50)]


async def test_pages_tile_the_list_in_both_orders(memory):
    await memory.add_list([said("user", str(number)) for number in range(7)])
    for order, expected in (("asc", "0123456"), ("desc", "6543210")):
        pages = [await texts(memory, limit=3, offset=offset, order=order) for offset in (0, 3, 6, 9)]
        assert "".join("".join(page) for page in pages) == expected
    assert await texts(memory, limit=0) == []


@pytest.mark.parametrize(
    "options", [{"limit": -1}, {"offset": -1}, {"order": "up"}, {"max_tokens": 0}, {"limit": 1.5}, {"limit": True}]
)
async def test_a_listing_that_makes_no_sense_is_refused(memory, options):
    with pytest.raises(InvalidInput):
        await memory.list(**options)


async def test_max_tokens_keeps_the_newest_and_never_parts_a_call_from_its_results(memory):
    await memory.add_list([said("user", "go"), calling("a", "b"), answer("a"), answer("b"), said("user", "thanks")])
    sizes = [event.tokens for event in await memory.list()]
    for room in range(sizes[-1], sum(sizes)):
        kept = await memory.list(max_tokens=room)
        assert [event.message.index for event in kept] == ([5] if room < sum(sizes[1:]) else [2, 3, 4, 5])


async def test_a_search_finds_by_substring_best_first_and_counts_no_case(memory):
    await memory.add_list([said("user", "The lamp"), said("user", "LAMP, lamp"), said("user", "路線図は灯台の隣")])
    assert [event.message.index for event in await memory.retrieve("lamp")] == [2, 1]
    assert [event.message.index for event in await memory.retrieve("灯台")] == [3]
    assert [event.message.index for event in await memory.retrieve("lamp", limit=1)] == [2]
    assert await memory.retrieve('he said "') == []
    with pytest.raises(InvalidInput):
        await memory.retrieve("  ")


async def test_an_update_changes_content_state_and_size(memory):
    event = await memory.add({"message": said("user", "x", id="m1"), "state": {"a": 1}})
    changed = await memory.update("m1", content="x" * 400, state={"b": 2}, metadata={"c": 3})
    assert await memory.list() == [changed]
    assert (changed.message.content, changed.state, changed.message.metadata) == ("x" * 400, {"b": 2}, {"c": 3})
    assert changed.tokens > event.tokens
    with pytest.raises(MessageNotFound):
        await memory.update("m2", content="y")
    with pytest.raises(InvalidInput):
        await memory.update("m1", state={"__compaction__": {}})
    with pytest.raises(LaminaError):
        await memory.update("m1", content=5)
    assert await memory.list() == [changed]


async def test_a_message_is_deleted_by_id_or_index(memory):
    await memory.add_list([said("user", "a", id="m1"), said("user", "b"), said("user", "c")])
    assert await memory.delete("m1") == 1
    assert await memory.delete(3) == 1
    assert await memory.delete("#9") == await memory.delete("m1") == 0
    assert await texts(memory) == ["b"]
    with pytest.raises(InvalidInput):
        await memory.delete(0)
    with pytest.raises(InvalidType):
        await memory.delete(1.0)


@pytest.mark.parametrize("deleted", [1, 2, 3])
async def test_a_call_goes_with_its_results_and_a_result_with_its_call(memory, deleted):
    await memory.add_list([calling("a", "b"), answer("a"), answer("b"), said("user", "x"), calling("a"), answer("a")])
    assert await memory.delete(deleted) == 3
    assert [event.message.index for event in await memory.list()] == [4, 5, 6]


async def test_clearing_one_session_leaves_the_others_and_clearing_all_leaves_none(memory):
    for session in ("a", "b", "c"):
        await memory.add(said("user", "x"), session)
    assert await memory.clear("a") == 1
    assert await memory.clear("a") == 0
    assert sorted(await memory.get_session_ids()) == ["b", "c"]
    assert await memory.clear() == 2
    assert await memory.get_session_ids() == []


async def test_many_additions_at_once_are_all_kept_once(memory):
    await asyncio.gather(*(memory.add(said("user", str(number), id=f"m{number}"), "s") for number in range(60)))
    events = await memory.list(session_id="s")
    assert sorted(event.message.id for event in events) == sorted(f"m{number}" for number in range(60))
    assert [event.message.index for event in events] == list(range(1, 61))


async def test_a_file_keeps_sessions_for_the_next_process(tmp_path):
    async with SQLiteMemory(tmp_path / "a.db") as memory:
        await memory.add(said("user", "x"), "s")
    async with SQLiteMemory(tmp_path / "a.db") as memory:
        assert await texts(memory, session_id="s") == ["x"]


async def test_tenants_and_owners_never_meet(tmp_path):
    store = SqliteStateStore(tmp_path / "a.db")
    mira, tomas = (BaseMemory(store, tenant="acme", owner=owner) for owner in ("mira", "tomas"))
    other = BaseMemory(store, tenant="acme-2", owner="mira")
    everyone = BaseMemory(store, tenant="acme")
    await mira.add(said("user", "secret", id="m1"), "s")
    for call in (
        tomas.list(session_id="s"),
        tomas.add(said("user", "x"), "s"),
        tomas.retrieve("secret", "s"),
        tomas.get_context("s"),
        tomas.manage_context("s"),
        tomas.tier("s"),
        tomas.expand("m1", "s"),
        tomas.restore("s", "m1"),
        tomas.delete("m1", "s"),
        tomas.update("m1", "s", content="x"),
        tomas.archived("s"),
        tomas.get_summaries("s"),
        tomas.has_session("s"),
        tomas.clear("s"),
    ):
        with pytest.raises(ScopeError):
            await call
    assert await tomas.get_session_ids() == await other.get_session_ids() == []
    assert await tomas.clear() == await other.clear() == 0
    assert await other.list(session_id="s") == []
    assert await everyone.get_session_ids() == await mira.get_session_ids() == ["s"]
    await store.close()


async def test_sessions_and_threads_of_one_store_are_not_mixed(tmp_path):
    store = SqliteStateStore(tmp_path / "a.db")
    memory = BaseMemory(store)
    await memory.add(said("user", "x"), "s")
    assert await store.list_threads("default", ThreadKind.THREAD) == []
    await store.close()


async def test_a_context_is_messages_ready_to_send(memory):
    await memory.add_list([said("system", "Answer in Turkish only."), said("user", "hello")])
    assert [(each.role, each.text) for each in await memory.get_context()] == [
        (Role.SYSTEM, "Answer in Turkish only."),
        (Role.USER, "hello"),
    ]
    assert await memory.get_context("unknown") == []


async def test_a_result_whose_call_is_missing_is_quoted_and_not_sent_as_a_result(memory):
    await memory.add_list([said("user", "x"), answer("lost", "it is 21 degrees")])
    last = (await memory.get_context())[-1]
    assert last.role is Role.USER
    assert "it is 21 degrees" in last.text


async def test_a_context_in_little_room_keeps_system_messages_and_the_newest(memory):
    await memory.add(said("system", "Answer in Turkish only."))
    await memory.add_list([said("user" if number % 2 else "assistant", f"turn {number}") for number in range(30)])
    context = await memory.get_context(max_tokens=60)
    assert context[0].text == "Answer in Turkish only."
    assert context[-1].text == "turn 29"
    assert sum(EstimateCounter().count(each.text) + 4 for each in context) <= 60
    assert context[1].role is Role.USER
    with pytest.raises(ContextOverflowError):
        await memory.get_context(max_tokens=5)


@pytest.mark.parametrize("name", ["summarizer", "labeler", "compaction_filter", "on_before_summarize", "thresholds"])
def test_what_cannot_be_configured_is_refused_by_its_name(name):
    with pytest.raises(ConfigError) as refusal:
        InMemoryMemory(**{name: 5})
    assert refusal.value.field == name


def test_an_unknown_threshold_is_refused():
    with pytest.raises(ConfigError):
        InMemoryMemory(thresholds={"preRot": 5})


async def test_a_text_of_a_million_characters_without_a_space_is_kept(memory):
    await memory.add(said("user", "x" * 1_000_000))
    assert len((await memory.list())[0].message.text) == 1_000_000


async def test_text_that_no_backend_can_hold_is_cleaned(memory):
    event = await memory.add(said("user", "pay\x00roll \ud800 <|endoftext|>"))
    assert event.message.text == "pay\ufffdroll \ufffd <|endoftext|>"


async def test_sessions_are_managed_on_every_store(memory):
    given = [f"Turn {number}: " + "the lamp of the harbour was seen again. " * 6 for number in range(120)]
    for text in given:
        await memory.add(said("user", text))
    events = await memory.list()
    assert events[0].message.text.startswith("[SUMMARY of")
    assert (await memory.restore("default", 118)).message.text == given[117]
    originals = [*await memory.archived(), *memory.decompress_events(events[1:])]
    assert [event.message.text for event in originals] == given


async def test_a_change_of_somebody_else_is_a_conflict(tmp_path):
    store = SqliteStateStore(tmp_path / "a.db")

    class Changing(BaseMemory):
        async def meddle(self):
            await BaseMemory(store).update("m1", content="theirs")

    memory = Changing(store)
    await memory.add(said("user", "x", id="m1"))
    head, old = await memory._sessions.find_or_raise("default", "m1")
    await memory.meddle()
    with pytest.raises(Conflict):
        await memory._sessions.replace(head, old, old)
    await store.close()
