from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from stable_ids import stable

from lamina.context.manager import ContextEngineManager, EngineListing
from lamina.context.plugin import (
    AssembleResult,
    BaseContextEngine,
    BootstrapResult,
    CompactResult,
    EngineInfo,
)
from lamina.domain.context import DropReason, ItemKind
from lamina.domain.message import ImagePart, Message, OpaquePart, Role, ToolCall
from lamina.domain.message_groups import orphans
from lamina.domain.message_size import messages_tokens
from lamina.errors import EngineNotFound, InvalidInput, InvalidType
from lamina.ports.events import EventName
from lamina.providers.tokens import EstimateCounter
from lamina.settings.context import ContextConfig
from lamina.testing import FrozenClock


class Echo(BaseContextEngine):
    """Gives back what it is given, and notes every call."""

    info = EngineInfo("echo", "Echo", "1.0.0")

    def __init__(self, **does):
        self.calls = []
        self.does = does

    async def act(self, name, params, otherwise):
        self.calls.append((name, params))
        given = self.does.get(name, otherwise)
        return given(params) if callable(given) else given

    async def assemble(self, params):
        return await self.act("assemble", params, lambda given: AssembleResult(given.messages, 1))

    async def compact(self, params):
        return await self.act("compact", params, CompactResult(compacted=True, summary="s", tokens_before=9))

    async def bootstrap(self, params):
        return await self.act("bootstrap", params, BootstrapResult(success=True))

    async def ingest(self, params):
        return await self.act("ingest", params, {"ingested": True})

    async def maintain(self, params):
        return await self.act("maintain", params, {"changed": True})

    async def after_turn(self, params):
        return await self.act("after_turn", params, None)

    async def dispose(self):
        return await self.act("dispose", None, None)

    def names(self):
        return [name for name, _ in self.calls]


def fail(error):
    def failing(_):
        raise error

    return failing


@pytest.fixture
def events():
    return []


@pytest.fixture
def manager(events):
    config = ContextConfig(engine_timeout=0.2, dispose_timeout=0.1)
    return ContextEngineManager(tenant="acme", config=config, clock=FrozenClock(), emit=events.append)


def serve(manager, engine, **options):
    manager.register(engine, **options)
    manager.set_default(engine.info.id)
    return engine


def talk(count, start=1):
    return [
        Message.user(f"message {place}").replace(id=f"m{place}", index=place) for place in range(start, start + count)
    ]


def test_with_nothing_registered_there_is_the_built_in_engine(manager):
    assert manager.list_engines() == [EngineListing("default", "Default Context Engine", is_default=True)]
    assert manager.get("default").info.id == "default"


def test_the_default_is_marked(manager):
    serve(manager, Echo())
    assert [(each.id, each.is_default) for each in manager.list_engines()] == [("default", False), ("echo", True)]


@pytest.mark.parametrize("missing", ["info", "assemble", "compact"])
def test_an_engine_that_lacks_something_is_refused(manager, missing):
    parts = {"info": EngineInfo("x", "X"), "assemble": lambda self, params: None, "compact": lambda self, params: None}
    del parts[missing]
    with pytest.raises(InvalidType, match=missing) as caught:
        manager.register(type("Engine", (), parts)())
    assert isinstance(caught.value, TypeError)
    assert len(manager.list_engines()) == 1


@pytest.mark.parametrize("id", ["", " ", None, 3])
def test_an_engine_needs_an_id_that_can_be_seen(manager, id):
    engine = Echo()
    engine.info = EngineInfo(id, "X")
    with pytest.raises(InvalidType):
        manager.register(engine)


@pytest.mark.parametrize("info", [{"id": "mine"}, {"id": "mine", "owner": "x"}, SimpleNamespace(id="mine")])
def test_an_id_is_all_that_an_engine_must_say_of_itself(manager, info):
    engine = Echo()
    engine.info = info
    manager.register(engine)
    listed = manager.list_engines()[1]
    assert (listed.id, listed.name, listed.version) == ("mine", "mine", "0.0.0")


def test_an_id_is_taken_once_unless_replaced_and_default_never(manager):
    manager.register(Echo())
    with pytest.raises(ValueError, match="taken"):
        manager.register(Echo())
    manager.register(Echo(), replace=True)
    engine = Echo()
    engine.info = EngineInfo("default", "Mine")
    with pytest.raises(InvalidInput, match="built-in"):
        manager.register(engine, replace=True)


async def test_unknown_ids_are_key_errors(manager):
    for call in (manager.set_default, manager.get):
        with pytest.raises(KeyError):
            call("nope")
    with pytest.raises(EngineNotFound, match="nope"):
        await manager.unregister("nope")


async def test_unregistering_the_default_disposes_of_it_and_brings_the_built_in_one_back(manager):
    engine = serve(manager, Echo())
    await manager.unregister("echo")
    assert engine.names() == ["dispose"]
    assert manager.uses_builtin
    with pytest.raises(InvalidInput):
        await manager.unregister("default")


async def test_a_session_is_bootstrapped_once_and_each_message_ingested_once(manager):
    engine = serve(manager, Echo())
    for count in (2, 2, 3):
        await manager.assemble("s", talk(count), 1_000, goal="now?")
    await manager.assemble("other", talk(1), 1_000)
    assert engine.names().count("bootstrap") == 2
    told = [(params.session_id, params.message.id) for name, params in engine.calls if name == "ingest"]
    assert told == [("s", "m1"), ("s", "m2"), ("s", "m3"), ("other", "m1")]
    assert engine.names()[0] == "bootstrap"


async def test_messages_without_an_index_are_ingested_once_too(manager):
    engine = serve(manager, Echo())
    for _ in range(2):
        await manager.assemble("s", [Message.user("hello"), Message.assistant("hi")], 1_000)
    assert engine.names().count("ingest") == 2


async def test_assemblies_side_by_side_bootstrap_once(manager):
    engine = serve(manager, Echo())
    await asyncio.gather(*(manager.assemble("s", talk(3), 1_000) for _ in range(5)))
    assert engine.names().count("bootstrap") == 1
    assert engine.names().count("ingest") == 3


async def test_the_goal_is_the_last_message_and_stays_unsaid(manager):
    engine = serve(manager, Echo())
    result = await manager.assemble("s", talk(1), 1_000, goal="now?", prompt="now?")
    assert [each.text for each in result.messages] == ["message 1", "now?"]
    assert dict(engine.calls)["assemble"].prompt == "now?"
    assert "now?" not in [params.message.text for name, params in engine.calls if name == "ingest"]


async def test_what_the_engine_is_given_and_gives_are_copies(manager):
    kept = []

    def meddle(params):
        params.messages[0].content = "changed"
        params.messages[0].metadata["x"] = 1
        kept.append(AssembleResult(params.messages))
        return kept[0]

    serve(manager, Echo(assemble=meddle, ingest=lambda params: setattr(params.message, "content", "changed")))
    messages = talk(1)
    result = await manager.assemble("s", messages, 1_000)
    assert messages == talk(1)
    kept[0].messages[0].content = "later"
    assert result.messages[0].text == "changed"


RUBBISH = [
    None, 3, "text", [], {}, {"messages": "text"}, {"messages": [3]}, {"messages": None}, {"messages": [{"x": 1}]},
    {"messages": [{"role": "nobody", "content": "x"}]}, AssembleResult([], -1), AssembleResult([], float("nan")),
    AssembleResult([], 1, 3), AssembleResult([Message("user", "x")]), AssembleResult([Message(Role.USER, 3)]),
    AssembleResult([Message(Role.USER, [3])]), AssembleResult([Message(Role.USER, "x", tool_calls=["y"])]),
    AssembleResult([Message(Role.USER, "x", name=object())]), AssembleResult([Message(Role.USER, "x", id=5)]),
    AssembleResult([Message.user([ImagePart(data=7)])]), AssembleResult([Message.user([OpaquePart(5)])]),
    AssembleResult([Message(Role.USER, "x", metadata=5)]),
]  # fmt: skip


@pytest.mark.parametrize("given", RUBBISH, ids=stable)
async def test_rubbish_quarantines_the_engine_and_the_built_in_one_serves(manager, events, given):
    serve(manager, Echo(assemble=given))
    result = await manager.assemble("s", talk(2), 1_000)
    assert result.engine_id == "default"
    assert [each.text for each in result.messages] == ["message 1", "message 2"]
    assert [(each.step, each.code) for each in result.warnings] == [("engine echo", "quarantined")]
    assert [(each.name, each.tenant, each.facts["engine"], each.facts["operation"]) for each in events] == [
        (EventName.ENGINE_QUARANTINED, "acme", "echo", "assemble")
    ]
    assert manager.list_engines()[1].is_quarantined


async def test_text_that_no_backend_can_carry_is_cleaned(manager):
    serve(manager, Echo(assemble=AssembleResult([Message.user("a\ud800")], 0, "b\ud800")))
    result = await manager.assemble("s", talk(1), 1_000)
    assert (result.messages[0].text, result.system_prompt_addition) == ("a\ufffd", "b\ufffd")


@pytest.mark.parametrize("operation", ["bootstrap", "assemble"])
@pytest.mark.parametrize(
    "error", [RuntimeError("SECRET"), asyncio.CancelledError(), KeyError("SECRET"), StopIteration()]
)
async def test_what_the_engine_raises_quarantines_it(manager, events, operation, error, caplog):
    engine = serve(manager, Echo(**{operation: fail(error)}))
    result = await manager.assemble("s", talk(1), 1_000)
    assert result.engine_id == "default"
    assert events[0].facts["operation"] == operation
    assert "SECRET" not in caplog.text
    calls = len(engine.calls)
    again = await manager.assemble("s", talk(1), 1_000)
    assert again.warnings
    assert len(engine.calls) == calls
    assert len(events) == 1


async def test_a_bootstrap_without_success_quarantines(manager):
    serve(manager, Echo(bootstrap=BootstrapResult(success=False, reason="no index")))
    assert (await manager.assemble("s", talk(1), 1_000)).engine_id == "default"


async def test_registering_anew_ends_the_quarantine(manager):
    serve(manager, Echo(assemble=None))
    await manager.assemble("s", talk(1), 1_000)
    engine = Echo()
    manager.register(engine, replace=True)
    assert (await manager.assemble("s", talk(1), 1_000)).engine_id == "echo"
    assert not manager.list_engines()[1].is_quarantined


async def test_an_engine_that_hangs_is_given_up(manager, events):
    class Hanging(Echo):
        async def assemble(self, params):
            await asyncio.Event().wait()

    serve(manager, Hanging())
    result = await manager.assemble("s", talk(1), 1_000)
    assert result.engine_id == "default"
    assert events[0].facts["error"] == "TimeoutError"


async def test_an_engine_that_will_not_be_cancelled_does_not_hold_the_host(manager):
    release = asyncio.Event()

    class Stubborn(Echo):
        async def assemble(self, params):
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    serve(manager, Stubborn())
    assert (await manager.assemble("s", talk(1), 1_000)).engine_id == "default"
    release.set()
    await asyncio.sleep(0)


async def test_being_cancelled_cancels_the_engine_and_does_not_quarantine_it(manager, events):
    seen = []
    began = asyncio.Event()

    class Slow(Echo):
        async def assemble(self, params):
            seen.append("began")
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

    serve(manager, Slow())
    task = asyncio.create_task(manager.assemble("s", talk(1), 1_000))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["began", "cancelled"]
    assert events == []
    assert not manager.list_engines()[1].is_quarantined


@pytest.mark.parametrize("operation", ["ingest", "after_turn", "maintain", "dispose"])
async def test_other_failures_are_logged_and_cost_nothing(manager, operation, caplog):
    engine = serve(manager, Echo(**{operation: fail(RuntimeError("SECRET"))}))
    assert (await manager.assemble("s", talk(3), 1_000)).engine_id == "echo"
    await manager.after_turn("s", talk(4), 3)
    assert await manager.maintain() == {"echo": operation != "maintain"}
    await manager.dispose()
    assert operation in caplog.text
    assert "SECRET" not in caplog.text
    assert "after_turn" in engine.names()
    assert manager.list_engines()[0].is_default


async def test_a_failing_ingestion_lets_the_rest_wait_for_the_next_time(manager):
    engine = serve(manager, Echo(ingest=lambda params: fail(RuntimeError())(0) if params.message.id == "m2" else None))
    await manager.assemble("s", talk(4), 1_000)
    assert engine.names().count("ingest") == 2
    await manager.assemble("s", talk(4), 1_000)
    assert [params.message.id for name, params in engine.calls if name == "ingest"] == ["m1", "m2", "m3", "m4"]


async def test_after_a_turn_its_messages_are_ingested_and_told_of(manager):
    engine = serve(manager, Echo())
    await manager.assemble("s", talk(2), 1_000, goal="now?")
    await manager.after_turn("s", talk(4), 2, token_budget=50)
    assert [params.message.id for name, params in engine.calls if name == "ingest"] == ["m1", "m2", "m3", "m4"]
    params = dict(engine.calls)["after_turn"]
    assert (len(params.messages), params.pre_prompt_message_count, params.token_budget) == (4, 2, 50)


async def test_an_engine_with_the_two_required_methods_and_no_coroutine_will_do(manager):
    class Small:
        info = EngineInfo("small", "Small")

        def assemble(self, params):
            return {
                "messages": [{"role": "user", "content": "hi"}],
                "estimatedTokens": 1,
                "systemPromptAddition": "Go.",
            }

        def compact(self, params):
            return {"compacted": False, "tokensBefore": 1, "tokensAfter": 1}

    serve(manager, Small())
    result = await manager.assemble("s", talk(1), 1_000)
    assert ([each.text for each in result.messages], result.system_prompt_addition) == (["hi"], "Go.")
    assert (await manager.compact("s", talk(1))).compacted is False
    await manager.after_turn("s", talk(2), 1)
    assert await manager.maintain() == {"small": True}
    await manager.dispose()


async def test_what_exceeds_the_budget_is_cut_from_the_oldest_whatever_the_engine_says_it_costs(manager):
    calls = [
        Message.system("stay"),
        Message.user("old " * 50),
        Message.assistant("", tool_calls=[ToolCall("a", "find"), ToolCall("b", "find")]),
        Message.tool("A " * 50, call_id="a"),
        Message.tool("B", call_id="b"),
        Message.user("new"),
        Message.tool("orphan", call_id="zz"),
        Message.user("last"),
    ]
    serve(manager, Echo(assemble=lambda params: AssembleResult(calls, 1)))
    result = await manager.assemble("s", talk(1), 40)
    assert [each.text for each in result.messages] == ["stay", "new", "last"]
    assert orphans(result.messages) == []
    assert result.estimated_tokens == messages_tokens(result.messages, EstimateCounter().count) <= 40
    assert not result.over_budget
    assert [each.code for each in result.warnings] == ["trimmed"]
    assert {(each.kind, each.reason) for each in result.dropped} == {(ItemKind.MESSAGE, DropReason.BUDGET)}
    assert len(result.dropped) == 4


async def test_the_last_message_is_never_cut(manager):
    result = await manager.assemble("s", talk(2), 1)
    assert [each.text for each in result.messages] == ["message 2"]
    assert result.over_budget


async def test_a_compaction_is_the_engines_or_the_built_in_ones(manager):
    engine = serve(manager, Echo())
    assert (await manager.compact("s", talk(2), force=True)).summary == "s"
    assert dict(engine.calls)["compact"].force is True
    engine.does["compact"] = {"compacted": True, "summary": " "}
    said = [Message.user(f"The launch of project {place} is on 2026-03-{place:02}.") for place in range(1, 25)]
    result = await manager.compact("s", said, force=True)
    assert result.compacted
    assert 0 < result.tokens_after < result.tokens_before / 2
    assert "2026-03-" in result.summary
    assert manager.list_engines()[1].is_quarantined


async def test_the_built_in_engine_compacts_only_what_does_not_fit(manager):
    assert (await manager.compact("s", talk(3))).compacted is False
    assert (await manager.compact("s", talk(3), token_budget=1_000)).reason == "fits the budget"
    assert (await manager.compact("s", talk(30), token_budget=50)).compacted is True


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("", [], 1), InvalidInput),
        (("s", "text", 1), InvalidType),
        (("s", [{"role": "user"}], 1), InvalidType),
        (("s", [], -1), InvalidInput),
        (("s", [], True), InvalidInput),
    ],
)
async def test_wrong_arguments_are_refused(manager, arguments, error):
    with pytest.raises(error):
        await manager.assemble(*arguments)


async def test_arguments_of_a_wrong_type_are_refused_by_name(manager):
    with pytest.raises(InvalidType, match="goal"):
        await manager.assemble("s", [], 1, goal=5)
    with pytest.raises(InvalidInput, match="token_budget"):
        await manager.compact("s", talk(1), token_budget="5")
    for call in (manager.get, manager.set_default):
        with pytest.raises(EngineNotFound):
            call([])


async def test_a_replaced_engine_is_disposed_of(manager):
    first = serve(manager, Echo())
    manager.register(Echo(), replace=True)
    await manager.maintain()
    assert first.names() == ["dispose"]


async def test_a_dispose_that_hangs_is_given_up(manager):
    class Hanging(Echo):
        async def dispose(self):
            await asyncio.Event().wait()

    serve(manager, Hanging())
    await manager.dispose()
    await manager.dispose()
    assert len(manager.list_engines()) == 1
