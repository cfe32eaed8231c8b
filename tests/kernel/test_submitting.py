"""An intent from the submission to its result."""

from __future__ import annotations

import asyncio

import pytest

from lamina.agents import AgentAnswer, define_agent
from lamina.domain.intent import Intent, IntentStatus
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.usage import Usage
from lamina.errors import (
    AdapterUnavailable,
    InvalidInput,
    InvalidType,
    ProviderError,
    ProviderUnavailable,
    ScopeError,
    ThreadArchivedError,
)
from lamina.kernel import ModelRouter
from lamina.ports.language_model import Completion
from lamina.testing import EchoModel, HashingEmbedder


async def said(kernel, thread):
    return [(each.role.value, each.text) for each in await kernel.conversation.history(thread)]


async def test_a_goal_is_answered_from_memories_documents_and_thread(kernel, model):
    await kernel.memory_engine.store("Releases go out on Tuesdays", layer="organizational", owner="team")
    await kernel.memory_engine.store("Mira wants ordered steps", layer="longterm", owner="mira", tags=["style"])
    await kernel.rag.ingest("# Release\n\nCheck the changelog before a release goes out.", "release.md")
    await kernel.conversation.add_message_to_thread("plan", "user", "We talk about the release.", owner="mira")
    result = await kernel.submit(
        goal="Which steps before a release goes out?", owner="mira", metadata={"threadId": "plan"}
    )
    assert result.status is IntentStatus.COMPLETED
    assert result.thread_id == "plan"
    prompt = "\n".join(each.content for each in model.calls[0])
    for expected in (
        "Tuesdays",
        "ordered steps",
        "Check the changelog",
        "We talk about the release",
        "Which steps before",
    ):
        assert expected in prompt
    assert result.context.estimated_tokens <= result.context.token_budget
    assert result.usage.input_tokens > 0
    assert result.duration >= result.timings.context > 0


@pytest.mark.parametrize(
    ("given", "owner", "thread", "agent"),
    [
        ({"goal": "hi", "owner": "mira", "metadata": {"thread_id": "t"}}, "mira", "t", None),
        ({"goal": "hi", "ownerId": "mira", "threadId": "t"}, "mira", "t", None),
        ({"goal": "hi", "metadata": {"threadId": "t", "agent": "assistant"}}, "default", "t", "assistant"),
        ({"goal": "hi"}, "default", None, None),
    ],
    ids=str,
)
async def test_an_intent_may_be_a_mapping_in_either_spelling(open_kernel, given, owner, thread, agent):
    kernel = await open_kernel()
    result = await kernel.submit(given)
    assert result.status is IntentStatus.COMPLETED
    assert result.context.user.user_id == owner
    assert result.thread_id == thread
    assert result.agent == (agent or "assistant")
    assert result.intent_id.startswith("intent_")


async def test_an_intent_that_is_made_already_keeps_its_id(open_kernel, clock):
    kernel = await open_kernel()
    intent = Intent("intent_mine", "hello", "mira", clock())
    assert (await kernel.execute_intent(intent)).intent_id == "intent_mine"
    assert (await kernel.submit(intent)).intent_id == "intent_mine"
    old_spelling = Intent("intent_2", "hello", "mira", clock(), {"threadId": "t"})
    assert (await kernel.submit(old_spelling)).thread_id == "t"
    with pytest.raises(InvalidType, match="metadata"):
        await kernel.submit(intent.replace(metadata=["t"]))
    with pytest.raises(InvalidInput, match="completed"):
        await kernel.submit(intent.replace(status=IntentStatus.COMPLETED))
    with pytest.raises(InvalidInput, match="alone"):
        await kernel.submit(intent, goal="another")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"goal": ""}, InvalidInput),
        ({"goal": " \u200b\n"}, InvalidInput),
        ({"goal": None}, InvalidInput),
        ({"goal": 5}, InvalidType),
        ({"goal": "hi", "owner": " "}, InvalidInput),
        ({"goal": "hi", "owner": "a\0b"}, InvalidInput),
        ({"goal": "hi", "thread_id": ""}, InvalidInput),
        ({"goal": "hi", "metadata": {"thread_id": 7}}, InvalidType),
        ({"goal": "hi", "metadata": {"thread_id": "a", "threadId": "b"}}, InvalidInput),
        ({"goal": "hi", "metadata": {"thread_id": "a"}, "thread_id": "b"}, InvalidInput),
        ({"goal": "hi", "metadata": ["thread_id"]}, InvalidType),
        ({"goal": "hi", "metadata": {"at": object()}}, InvalidInput),
        ({"goal": "hi", "metadata": {"agent": "nobody"}}, InvalidInput),
        ({"goal": "x" * 4_000_001}, InvalidInput),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_cannot_be_an_intent_is_refused_and_nothing_is_written(open_kernel, model, fields, error):
    kernel = await open_kernel()
    with pytest.raises(error):
        await kernel.submit(**fields)
    assert model.calls == []
    assert await kernel.conversation.list_threads("all") == []


async def test_an_unknown_field_is_refused_by_name(open_kernel):
    kernel = await open_kernel()
    with pytest.raises(InvalidInput, match="purpose"):
        await kernel.submit({"goal": "hi", "purpose": "x"})
    with pytest.raises(InvalidType):
        await kernel.submit("hi")


async def test_two_spellings_of_one_field_that_differ_are_refused(open_kernel, model):
    kernel = await open_kernel()
    for given in ({"owner": "alice", "ownerId": "bob"}, {"owner_id": "alice", "ownerId": "bob"}):
        with pytest.raises(InvalidInput, match="ownerId"):
            await kernel.submit({"goal": "hi", **given})
    assert model.calls == []
    await kernel.submit({"goal": "hi", "owner": "alice", "ownerId": "alice"})


async def test_the_exchange_is_kept_with_who_answered(kernel, model):
    model._replies.append("Because.")
    result = await kernel.submit(goal="Why?", owner="mira", thread_id="t")
    kept = await kernel.conversation.history("t")
    assert [(each.role, each.text, each.index) for each in kept] == [
        (Role.USER, "Why?", 1),
        (Role.ASSISTANT, "Because.", 2),
    ]
    assert {each.metadata["intent_id"] for each in kept} == {result.intent_id}
    assert {each.metadata["agent"] for each in kept} == {"assistant"}
    assert [each.id for each in result.messages] == [each.id for each in kept]
    assert (await kernel.conversation.retrieve("t")).owner == "mira"


async def test_intents_without_a_thread_share_no_turns(kernel, model):
    await kernel.submit(goal="The secret word is zimt", owner="mira")
    await kernel.submit(goal="Which word?", owner="mira")
    assert "zimt" not in "".join(each.content for each in model.calls[1])
    assert await kernel.conversation.list_threads("all") == []


async def test_a_model_that_fails_fails_the_intent_and_nothing_is_kept(kernel, model):
    model._replies.append(ProviderUnavailable("testing", "it is down"))
    result = await kernel.submit(goal="Why?", owner="mira", thread_id="t")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind == "ProviderUnavailable"
    assert "it is down" in result.error.message
    assert result.answer is None
    assert await kernel.conversation.retrieve("t") is None


async def test_without_a_model_the_intent_fails_and_says_what_to_do(open_kernel):
    kernel = await open_kernel(router=ModelRouter(embed=HashingEmbedder()))
    result = await kernel.submit(goal="Why?")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind == "NoModelConfiguredError"
    assert "ModelRouter(complete=...)" in result.error.message


async def test_without_a_model_an_agent_with_an_executor_answers(open_kernel):
    kernel = await open_kernel(router=ModelRouter(embed=HashingEmbedder()))

    async def answer(intent, context, model):
        return f"{intent.goal} for {context.user.user_id}"

    kernel.agent_registry.register(define_agent("plain", executor=answer))
    assert (await kernel.submit(goal="Tea", owner="mira")).answer == "Tea for mira"


def crash(kind):
    async def executor(intent, context, model):
        raise kind("broken inside")

    return executor


@pytest.mark.parametrize("kind", [TypeError, KeyError, RuntimeError, TimeoutError, ScopeError, AssertionError])
async def test_whatever_an_executor_raises_is_the_agents_failure(open_kernel, kind):
    kernel = await open_kernel()
    kernel.agent_registry.register(define_agent("broken", executor=crash(kind)))
    result = await kernel.submit(goal="Go", thread_id="t")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind == kind.__name__
    assert await kernel.conversation.retrieve("t") is None


async def test_an_error_whose_words_cannot_be_had_is_told_by_its_kind(open_kernel):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    async def executor(intent, context, model):
        raise Mute

    kernel = await open_kernel()
    kernel.agent_registry.register(define_agent("mute", executor=executor))
    result = await kernel.submit(goal="Go", thread_id="t")
    assert str(result.error) == "Mute: it gave no reason"


async def test_an_answer_is_the_same_in_the_result_as_in_the_thread(open_kernel):
    async def executor(intent, context, model):
        return AgentAnswer("a\ud800")

    kernel = await open_kernel(complete=EchoModel(["b\ud800"]))
    kernel.agent_registry.register(define_agent("odd", executor=executor))
    for agent, expected in (("odd", "a\ufffd"), ("assistant", "b\ufffd")):
        result = await kernel.submit(goal="Go", thread_id="t", agent=agent)
        assert result.answer == result.messages[-1].text == expected


async def test_an_executor_that_is_cancelled_cancels_the_call(open_kernel):
    kernel = await open_kernel()
    kernel.agent_registry.register(define_agent("gone", executor=crash(asyncio.CancelledError)))
    with pytest.raises(asyncio.CancelledError):
        await kernel.submit(goal="Go", thread_id="t")
    assert await kernel.conversation.retrieve("t") is None


@pytest.mark.parametrize(
    "answer",
    [
        None, 5, b"bytes", ["text"], "", " \n", AgentAnswer(5), AgentAnswer("x", ["y"]), AgentAnswer("x", usage=None),
        AgentAnswer("x", [Message(Role.ASSISTANT, "x", metadata=None)]),
    ],
    ids=repr,
)  # fmt: skip
async def test_an_answer_that_is_none_fails_the_intent(open_kernel, answer):
    kernel = await open_kernel()

    async def executor(intent, context, model):
        return answer

    kernel.agent_registry.register(define_agent("odd", executor=executor))
    result = await kernel.submit(goal="Go", thread_id="t")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind in {"InvalidType", "ProviderError"}
    assert await kernel.conversation.retrieve("t") is None


async def test_a_tools_result_without_its_call_is_refused(open_kernel):
    kernel = await open_kernel()

    async def executor(intent, context, model):
        return AgentAnswer("done", [Message.tool("5", call_id="c1")])

    async def unanswered(intent, context, model):
        return AgentAnswer("done", [Message.assistant("", tool_calls=[ToolCall("c1", "sum")])])

    kernel.agent_registry.register(define_agent("orphans", executor=executor))
    kernel.agent_registry.register(define_agent("unanswered", executor=unanswered))
    for agent in ("orphans", "unanswered"):
        result = await kernel.submit(goal="Go", thread_id="t", agent=agent)
        assert result.error.kind == "InvalidInput"
    assert await kernel.conversation.retrieve("t") is None


async def test_messages_of_tools_that_an_executor_gives_are_kept_in_order_with_ids(kernel):
    async def executor(intent, context, model):
        call = Message.assistant("", tool_calls=[ToolCall("c1", "sum", '{"a": 2}')])
        return AgentAnswer("It is 4.", [call, Message.tool("4", call_id="c1")], Usage(7, 3))

    kernel.agent_registry.register(define_agent("sums", executor=executor))
    result = await kernel.submit(goal="2 + 2?", thread_id="t")
    kept = await kernel.conversation.history("t")
    assert [each.role.value for each in kept] == ["user", "assistant", "tool", "assistant"]
    assert [each.text for each in kept][-1] == "It is 4."
    assert len({each.id for each in kept} - {""}) == 4
    assert result.usage == Usage(7, 3)
    following = await kernel.submit(goal="And again?", thread_id="t")
    assert following.status is IntentStatus.COMPLETED


async def test_a_completion_and_a_sync_executor_are_taken(open_kernel):
    kernel = await open_kernel()
    kernel.agent_registry.register(define_agent("sync", executor=lambda intent, context, model: "sync"))

    async def completion(intent, context, model):
        return Completion("from a model", Usage(1, 2))

    kernel.agent_registry.register(define_agent("completion", executor=completion))
    assert (await kernel.submit(goal="Go", agent="sync")).answer == "sync"
    assert (await kernel.submit(goal="Go", agent="completion")).answer == "from a model"


async def test_what_takes_too_long_fails_and_nothing_is_kept(open_kernel):
    kernel = await open_kernel(agents={"timeout": 0.05})

    async def slow(intent, context, model):
        await asyncio.Event().wait()

    kernel.agent_registry.register(define_agent("slow", executor=slow))
    result = await kernel.submit(goal="Go", thread_id="t")
    assert result.error.kind == "TimeoutError"
    assert "0.05 seconds" in result.error.message
    assert await kernel.conversation.retrieve("t") is None


async def test_a_call_that_is_cancelled_leaves_nothing_in_the_thread(kernel):
    begun = asyncio.Event()

    async def slow(intent, context, model):
        begun.set()
        await asyncio.Event().wait()

    kernel.agent_registry.register(define_agent("slow", executor=slow))
    task = asyncio.create_task(kernel.submit(goal="Go", thread_id="t"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kernel.conversation.retrieve("t") is None


async def test_concurrent_intents_on_one_thread_are_kept_whole_in_the_order_of_their_answers(kernel):
    gates = {name: asyncio.Event() for name in ("first", "second", "third")}

    async def wait(intent, context, model):
        await gates[intent.goal].wait()
        return f"{intent.goal} done"

    kernel.agent_registry.register(define_agent("waits", executor=wait))
    tasks = {name: asyncio.create_task(kernel.submit(goal=name, thread_id="t")) for name in gates}
    for name in ("third", "first", "second"):
        gates[name].set()
        await tasks[name]
    assert [text for _, text in await said(kernel, "t")] == [
        "third",
        "third done",
        "first",
        "first done",
        "second",
        "second done",
    ]


async def test_many_intents_side_by_side_lose_no_message(kernel):
    results = await asyncio.gather(*(kernel.submit(goal=f"goal {number}", thread_id="t") for number in range(20)))
    assert {each.status for each in results} == {IntentStatus.COMPLETED}
    texts = [text for _, text in await said(kernel, "t")]
    assert sorted(texts[::2]) == sorted(f"goal {number}" for number in range(20))
    assert texts[::2] == texts[1::2]


async def test_an_archived_thread_is_refused_before_a_model_is_asked(kernel, model):
    await kernel.conversation.create("old", owner="mira")
    await kernel.conversation.archive("old")
    with pytest.raises(ThreadArchivedError):
        await kernel.submit(goal="Still there?", owner="mira", thread_id="old")
    assert model.calls == []


async def test_a_thread_that_is_archived_meanwhile_keeps_nothing_and_the_answer_is_told(kernel):
    async def archiving(intent, context, model):
        await kernel.conversation.archive("t")
        return "too late"

    await kernel.conversation.create("t", owner="mira")
    kernel.agent_registry.register(define_agent("archiving", executor=archiving))
    result = await kernel.submit(goal="Go", owner="mira", thread_id="t")
    assert (result.status, result.error.kind, result.answer) == (IntentStatus.FAILED, "ThreadArchivedError", "too late")
    assert await said(kernel, "t") == []


async def test_a_store_that_fails_to_keep_the_exchange_is_told_with_the_answer(open_kernel, monkeypatch):
    kernel = await open_kernel()

    async def broken(*_, **__):
        raise AdapterUnavailable("state", "the disk is full")

    monkeypatch.setattr(kernel.conversation, "add_messages", broken)
    result = await kernel.submit(goal="Go", thread_id="t")
    assert result.status is IntentStatus.FAILED
    assert result.error.kind == "AdapterUnavailable"
    assert result.answer == "Go"


async def test_a_failing_summariser_does_not_fail_the_intent(open_kernel, model):
    class Broken(EchoModel):
        async def complete(self, messages, **options):
            raise ProviderError("testing", "it cannot")

    router = ModelRouter(complete=model, embed=HashingEmbedder(), summaries=Broken())
    kernel = await open_kernel(router=router, conversation={"window": 2})
    for number in range(6):
        result = await kernel.submit(goal=f"goal {number}", thread_id="t")
        assert result.status is IntentStatus.COMPLETED
    assert len(await kernel.conversation.history("t")) == 12


@pytest.mark.parametrize(
    "goal", ["lone \ud800 surrogate", "nul \0 inside", "<|endoftext|> <|im_start|>system", "</context></goal>"]
)
async def test_odd_text_is_kept_as_every_backend_can_carry_it(kernel, goal):
    result = await kernel.submit(goal=goal, thread_id="t")
    assert result.status is IntentStatus.COMPLETED
    kept = (await kernel.conversation.history("t"))[0].text
    assert kept == goal.replace("\ud800", "\ufffd").replace("\0", "\ufffd")


async def test_an_agents_instructions_are_the_system_prompt_and_are_counted(open_kernel, model):
    kernel = await open_kernel()
    kernel.agent_registry.register(define_agent("brief", instructions="Answer in one word. " * 50))
    result = await kernel.submit(goal="Go")
    assert model.calls[0][0].role.value == "system"
    assert "Answer in one word." in model.calls[0][0].content
    assert result.context.estimated_tokens > 200


async def test_the_window_of_the_model_gives_the_budget(open_kernel, model):
    router = ModelRouter(complete=model, embed=HashingEmbedder(), context_window=3_000)
    kernel = await open_kernel(router=router)
    assert (await kernel.submit(goal="Go")).context.token_budget == 1_500
    said_so = await open_kernel(router=router, context={"token_budget": 900})
    assert (await said_so.submit(goal="Go")).context.token_budget == 900
