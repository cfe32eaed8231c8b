"""Computed context over HTTP."""

from __future__ import annotations

import pytest


async def computed(http, **fields):
    answer = await http.post("/v1/context", json={"goal": "What does Ann like to drink?", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_context_accounts_for_all_of_its_tokens(http, kernel):
    await kernel.memory_engine.store("Ann likes to drink green tea.", owner="ann")
    await kernel.rag.ingest("Green tea is what Ann does like to drink, at 80 degrees.", "tea.md", owner="ann")
    await kernel.conversation.add_message_to_thread("t", "user", "Hello, I am Ann.", owner="ann")
    tool = {"type": "function", "function": {"name": "brew", "parameters": {}}}
    context = await computed(http, owner="ann", thread_id="t", system="Be brief.", tools=[tool], reserved_tokens=7)
    assert [each["content"] for each in context["memories"]] == ["Ann likes to drink green tea."]
    assert [each["source"] for each in context["documents"]] == ["tea.md"]
    assert [each["content"] for each in context["conversation"]["messages"]] == ["Hello, I am Ann."]
    assert sum(context["tokens_by_source"].values()) == context["estimated_tokens"] <= context["token_budget"]
    assert context["tokens_by_source"]["reserved"] == 7
    assert context["tokens_by_source"]["tools"] > 0
    assert (context["instructions"], context["user"]["user_id"]) == ("Be brief.", "ann")
    assert context["rendered"] is None


async def test_what_does_not_fit_is_named_with_its_reason(http, kernel):
    for number in range(30):
        await kernel.memory_engine.store(f"Ann likes to drink tea of kind {number}, from the hills.", owner="ann")
    context = await computed(http, owner="ann", token_budget=400)
    assert context["estimated_tokens"] <= 400
    assert {each["reason"] for each in context["dropped"]} >= {"budget"}


async def test_a_context_comes_in_the_shapes_that_are_asked_for(http, kernel):
    await kernel.memory_engine.store("Ann likes to drink green tea.", owner="ann")
    rendered = (await computed(http, owner="ann", render=["prompt", "openai", "anthropic"]))["rendered"]
    assert "green tea" in rendered["prompt"]
    assert rendered["openai"][-1] == {"role": "user", "content": "What does Ann like to drink?"}
    assert rendered["anthropic"]["messages"][0]["role"] == "user"
    assert (await computed(http, owner="ann", render=["prompt"]))["rendered"]["openai"] is None


async def test_a_look_without_touch_counts_no_access(http, kernel):
    id = await kernel.memory_engine.store("Ann likes to drink green tea.", owner="ann")
    await computed(http, owner="ann", touch=False)
    assert (await http.get(f"/v1/memories/{id}")).json()["access_count"] == 0


async def test_a_thread_that_there_is_not_is_404(http):
    answer = await http.post("/v1/context", json={"goal": "x", "thread_id": "none"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("goal", None),
        ("goal", 5),
        ("token_budget", 0),
        ("token_budget", -1),
        ("token_budget", 10**9),
        ("token_budget", True),
        ("reserved_tokens", -1),
        ("tools", [5]),
        ("form", "html"),
        ("render", ["html"]),
        ("touch", "yes"),
        ("thread_id", ""),
        ("unknown", 1),
    ],
)
async def test_what_cannot_be_taken_is_422_and_names_the_field(http, field, value):
    answer = await http.post("/v1/context", json={"goal": "x", field: value})
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["errors"][0]["field"]
