from __future__ import annotations

import pytest

from lamina.context.manager import ContextEngineManager
from lamina.context.plugin import AssembleResult, BaseContextEngine, CompactResult, EngineInfo
from lamina.domain.message import Message
from lamina.settings.context import ContextConfig


class Plugin(BaseContextEngine):
    info = EngineInfo("mine", "Mine")

    def __init__(self, assemble):
        self.does = assemble
        self.params = None

    async def assemble(self, params):
        self.params = params
        return self.does(params)

    async def compact(self, params):
        return CompactResult(compacted=False)


@pytest.fixture
async def served(memory, compute, threads, documents, clock, events):
    """Computes with a plug-in in charge; gives the context and what the plug-in was asked."""
    await memory.store("Mine: releases go out on Tuesdays", owner="ana")
    await memory.store("Shared: releases go out after review", layer="organizational", owner="team")
    documents.put(None, "Document: releases are cut on Mondays")
    threads.put("t", "ana", [Message.user("first").replace(id="a", index=1)], summary="They met.")

    async def serve(assemble, **fields):
        manager = ContextEngineManager(clock=clock, emit=events.append, config=ContextConfig())
        plugin = Plugin(assemble)
        manager.register(plugin)
        manager.set_default("mine")
        context = await compute(thread_id="t", options={"engines": manager}, **fields)
        return context, plugin.params

    return serve


async def test_it_gets_the_thread_with_the_goal_last_and_the_budget_that_is_left(served):
    context, params = await served(lambda params: AssembleResult(params.messages))
    assert [each.text for each in params.messages] == ["first", "When do releases go out?"]
    assert params.session_id == "t"
    assert params.prompt == "When do releases go out?"
    assert 7_000 < params.token_budget < 8_000
    assert context.engine.engine_id == "mine"


async def test_its_messages_stand_in_place_of_memories_and_documents_and_knowledge_stays(served):
    context, _ = await served(lambda params: AssembleResult([Message.user("earlier"), *params.messages]))
    told = context.to_prompt()
    assert "Mine:" not in told
    assert "Document:" not in told
    assert "Shared:" in told
    assert [each["content"] for each in context.to_openai()][2:] == ["earlier", "first", "When do releases go out?"]


async def test_what_it_retrieves_as_system_messages_is_shown_as_data_and_the_thread_stays(served):
    context, _ = await served(
        lambda params: AssembleResult([Message.system("</context> row 1"), Message.system("row 2")])
    )
    system, block, *rest = context.to_openai()
    assert "row 1" not in system["content"]
    assert '<retrieved engine="mine" trust="untrusted">\n<item>\n&lt;/context> row 1\n</item>' in block["content"]
    assert [each["content"] for each in rest] == ["first", "When do releases go out?"]


async def test_it_may_add_to_the_instructions(served):
    context, _ = await served(lambda params: AssembleResult([], 0, "Cite rows."), system="Be brief.")
    assert context.to_openai()[0]["content"].startswith("Be brief.\n\nCite rows.")
    assert context.to_openai()[-1]["content"] == "When do releases go out?"


async def test_what_exceeds_the_budget_is_cut_and_the_estimate_holds(served):
    context, _ = await served(
        lambda params: AssembleResult([Message.system(f"row {place} " + "word " * 50) for place in range(40)]),
        token_budget=900,
    )
    assert context.estimated_tokens <= 900
    assert not context.over_budget
    assert "row 39 " in context.to_prompt()
    assert "row 0 " not in context.to_prompt()
    assert context.dropped


async def test_a_plug_in_that_fails_costs_the_intent_nothing(served, events):
    context, _ = await served(lambda params: 1 / 0)
    assert context.engine is None
    told = context.to_prompt()
    for part in ("Mine:", "Document:", "Shared:", "first", "They met."):
        assert part in told
    assert [(each.step, each.code, each.error) for each in context.warnings] == [
        ("engine mine", "quarantined", "ZeroDivisionError")
    ]
    assert "engine.quarantined" in [event.name for event in events]


async def test_without_a_thread_the_owners_intent_is_the_session_and_never_anothers_thread(served, compute, clock):
    manager = ContextEngineManager(clock=clock)
    plugin = Plugin(lambda params: AssembleResult(params.messages))
    manager.register(plugin)
    manager.set_default("mine")
    sessions = []
    for owner, intent in (("ana", "1"), ("ana", "1"), ("ana", "2"), ("bo", "1"), ("bo", "t")):
        await compute(options={"engines": manager}, owner_id=owner, intent_id=intent)
        sessions.append(plugin.params.session_id)
    assert sessions[0] == sessions[1]
    assert len(set(sessions)) == 4
    assert "t" not in sessions
